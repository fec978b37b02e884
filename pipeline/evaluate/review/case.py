"""Case: a document with the answers that a run kept, and the outcome that they came to; played without a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import SchemaError
from pipeline.evaluate.review.changes import equal
from pipeline.job import WorkConfig
from pipeline.records import Document, Outcome, Problem
from pipeline.replay import kept_plan, play_kept
from pipeline.runtime.output.recall import Recalled
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import NO_PLAN, DecodingPlan, refused_plan
from pipeline.steps.rules import Lookups

WORDS = frozenset({"message", "detail"})
"""Members that are written for people: where only they differ, nothing that a program reads does."""
_ATTEMPT = ("number", "finish_reason", "error", "constrained", "max_tokens", "temperature", "seed")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a set. `work` and `schemas` name the config and the schemas that it was frozen with; `attempts` and
    `problems` are what the run kept of the answers; `lookups` has, by path and column, the values that were looked up
    and found; `outcome` is what today's program has to make of it. `notes` say in what it is not as in the run."""

    document: Mapping[str, Any]
    work: str
    schemas: str
    attempts: Sequence[Mapping[str, Any]]
    problems: Sequence[Mapping[str, Any]]
    lookups: Sequence[Mapping[str, Any]]
    outcome: Mapping[str, Any]
    run: str
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from other cases: the document's id, schema and text."""
        return digest([self.document[name] for name in ("id", "schema", "text")])

    def known(self) -> Lookups:
        """The values of its lookups that there are."""
        return {(one["path"], one["column"]): frozenset(one["values"]) for one in self.lookups}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


class Asked(Set[str]):
    """A lookup's values, with note of those that were looked up and found."""

    def __init__(self, values: Set[str]) -> None:
        self._values = values
        self.found: set[str] = set()

    def __contains__(self, value: object) -> bool:
        there = value in self._values
        if there and isinstance(value, str):
            self.found.add(value)
        return there

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Player:
    """Plays cases under one config: plans are made once."""

    def __init__(self, work: WorkConfig) -> None:
        self.work = work
        self._plans: dict[tuple[str, frozenset[str]], DecodingPlan] = {}

    def plan(self, schema: str, attempts: Sequence[Mapping[str, Any]]) -> DecodingPlan:
        """The plan of a schema, as far as it can be the one that the answers were given under."""
        used = frozenset(str(attempt["plan_digest"]) for attempt in attempts)
        if (schema, used) not in self._plans:
            try:
                plan = kept_plan(self.work, schema, used) if schema else NO_PLAN
            except SchemaError as error:
                plan = refused_plan(schema, "", error.message)
            self._plans[schema, used] = plan
        return self._plans[schema, used]

    def play(self, recalled: Recalled, lookups: Lookups) -> tuple[Outcome, list[dict[str, Any]]]:
        """What comes of the kept answers, and the values that were looked up and found, as cases have them."""
        plan = self.plan(recalled.document.schema, recalled.row["attempts"])
        asked = {place: Asked(values) for place, values in lookups.items()}
        outcome = asyncio.run(play_kept(self.work, recalled, plan, asked))
        return outcome, [{"path": p, "column": c, "values": sorted(one.found)} for (p, c), one in asked.items()]


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """What is frozen of an outcome: all but times, texts that stand elsewhere, and what no row keeps."""
    kept = asdict(outcome)
    kept["attempts"] = [{name: one[name] for name in _ATTEMPT} for one in kept["attempts"]]
    for name in ("document_id", "source", "schema", "document_text", "work_digest", "audit", "clipped"):
        del kept[name]
    made: dict[str, Any] = json.loads(json.dumps(kept))
    return made


def recalled_of(case: Case) -> Recalled:
    """A case as a run's row with its document."""
    document = dict(case.document)
    problems = tuple(Problem(**one) for one in document.pop("problems"))
    row = {"attempts": case.attempts, "problems": case.problems}
    return Recalled(row, Document(**document, problems=problems), ())


def differing(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What two outcomes differ in: member → {frozen, now, words}; `words`: only texts for people do."""
    found = {}
    for name in sorted({*frozen, *now}):
        pair = frozen.get(name), now.get(name)
        if not equal(*pair):
            words = equal(*map(_without_words, pair)) if name in ("problems", "repairs") else False
            found[name] = {"frozen": pair[0], "now": pair[1], "words": words}
    return found


def _without_words(items: Any) -> Any:
    return [{name: value for name, value in item.items() if name not in WORDS} for item in items or ()]
