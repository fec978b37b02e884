"""Rates by path: an engine, with its constraint in force or not, and the how many-th answer of a document it was.

Format failures on a constrained path are a fault of the engine or of this program; semantic ones are the model's. One
number over both, or over all paths, would hide either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.records import STATUSES, Attempt, Outcome
from pipeline.steps.codes import CODES, again_of, cap_of, worst
from pipeline.steps.route import DECLARED

NO_TEXT_REPAIRS = DECLARED | {"salvaged", "rest_left_out", "repair_refused", "repair_failed"}
"""Kinds of repairs that made no JSON of a text; all others did."""

MAX_ENGINE = 80
MAX_ENGINES = 8
MAX_COUNTS = 600
"""Beyond so many counts the engines with the fewest answers become one, `other`; `MAX_ENGINES` keep their own, which
take at most 42 counts each."""

LATE = 3
"""Answers from this one on share a line."""

MAX_POINTER = 120
_INDEX = re.compile(r"/[0-9]+(?=/|$)")


@dataclass(frozen=True, slots=True)
class PathRates:
    """The counts of one path. `place` is `1`, `2` or `3+`; an answer that the engine spoilt is asked for again under
    the same one.

    `answers` is the denominator of all others: `format_first` are JSON as they came, `format_repaired` were made JSON,
    `schema` satisfy the schema, too, `semantic` also every rule and what `ground` asks for (findings that only
    observe aside), `cut` reached their token limit.
    """

    engine: str
    constrained: bool
    place: str
    answers: int = 0
    format_first: int = 0
    format_repaired: int = 0
    schema: int = 0
    semantic: int = 0
    cut: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of an outcome with what was found in it. `place` counts from 1; `failed`: as the engine's fault;
    `faults`: how bad the worst problem is, and how many keep it from being valid (less is better)."""

    attempt: Attempt
    place: int
    failed: bool
    faults: tuple[int, int]
    format_first: bool
    format_repaired: bool
    schema: bool
    semantic: bool

    def counts(self) -> dict[str, int]:
        """What this answer adds to its path, by key of `Tally.paths`."""
        attempt = self.attempt
        path = "constrained" if attempt.constrained else "free"
        found = {
            "answers": 1,
            "format_first": int(self.format_first),
            "format_repaired": int(self.format_repaired),
            "schema": int(self.schema),
            "semantic": int(self.semantic),
            "cut": int(attempt.finish_reason == "length"),
            "output_tokens": attempt.output_tokens,
        }
        where = f"{path} {place_of(self.place)}"
        return {f"{where} {measure} {attempt.engine[:MAX_ENGINE]}": count for measure, count in found.items() if count}


def place_of(number: int) -> str:
    """The name of the how many-th answer: few of them, however many attempts a job allows."""
    return str(number) if number < LATE else f"{LATE}+"


def starred(pointer: str) -> str:
    """A pointer with bounded cardinality and length: array indexes become `*`; keys may be the model's."""
    place = _INDEX.sub("/*", pointer[: 2 * MAX_POINTER])
    return place if len(place) <= MAX_POINTER else place[: MAX_POINTER - 1] + "…"


def failures_of(outcome: Outcome) -> set[int]:
    """The numbers of the attempts that failed for the engine's fault."""
    return {problem.attempt for problem in outcome.problems if again_of(problem) == "infrastructure"}


def answers_of(outcome: Outcome) -> Iterator[Answer]:
    """The answers of an outcome: attempts that ended with text to judge, though it may have been cut."""
    failures = failures_of(outcome)
    repaired = {repair.attempt for repair in outcome.repairs if repair.kind not in NO_TEXT_REPAIRS}
    place = 1
    for attempt in outcome.attempts:
        if attempt.error or attempt.finish_reason in ("abort", "error"):
            continue
        found = [p for p in outcome.problems if p.attempt == attempt.number and cap_of(p) != "valid"]
        layers = {CODES[problem.code].layer for problem in found}
        is_json = not any(cap_of(p) == "rejected" and CODES[p.code].layer in ("engine", "parse") for p in found)
        first = not layers & {"engine", "parse"} and attempt.number not in repaired
        schema = is_json and "schema" not in layers
        semantic = schema and not layers & {"rules", "ground"}
        failed = attempt.number in failures
        faults = (STATUSES.index(worst(map(cap_of, found))), len(found))
        yield Answer(attempt, place, failed, faults, first, is_json and not first, schema, semantic)
        place += not failed


def rates_of(paths: Mapping[str, int]) -> list[PathRates]:
    """The counts of each path from `Tally.paths`, those of an engine next to each other."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for key, count in paths.items():
        path, place, measure, engine = key.split(" ", 3)
        found.setdefault((engine, path, place), {})[measure] = count
    return [
        PathRates(engine, path == "constrained", place, **counts)
        for (engine, path, place), counts in sorted(found.items())
    ]


def few_engines(paths: Counter[str]) -> Counter[str]:
    """The counts with at most `MAX_ENGINES` engines and `other`."""
    engines: Counter[str] = Counter()
    for key, count in paths.items():
        _, _, measure, engine = key.split(" ", 3)
        engines[engine] += count if measure == "answers" else 0
    kept = {engine for engine, _ in engines.most_common(MAX_ENGINES)}
    few: Counter[str] = Counter()
    for key, count in paths.items():
        *where, engine = key.split(" ", 3)
        few[" ".join([*where, engine if engine in kept else "other"])] += count
    return few
