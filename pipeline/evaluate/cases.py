"""Cases: documents that show how two runs differ, with what either made of them, in short."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.evaluate.match import FieldMatch
from pipeline.evaluate.sides import Key
from pipeline.observe.paths import answers_of
from pipeline.report.rows import outcome_of
from pipeline.report.shown import cut
from pipeline.runtime.output.browse import Browsed

MOST_CASES = 5
"""Of each class."""
MOST_VALUES = 3
"""Of one document."""
MAX_SHOWN = 200
"""Characters of an answer, or of values."""


@dataclass(frozen=True, slots=True)
class Case:
    """An example: what either run has, in short; untrusted as all that comes from documents and models."""

    kind: str
    schema: str
    document_id: str
    constrained: str
    free: str


def cases_of(
    runs: tuple[Browsed, Browsed], members: Mapping[str, Sequence[Key]], differing: Mapping[Key, tuple[str, str]]
) -> list[Case]:
    """Documents of each class but `same`, chosen by a hash of their ids, so that no order of rows chooses them. Of
    those `differing` in content their fields are told, else first answers.

    Raises:
        OutputError: a run cannot be read.
    """
    picked: dict[Key, str] = {}  # a document of two classes is told once
    for kind in (name for name in members if name != "same"):
        others = sorted((key for key in members[kind] if key not in picked), key=_drawn)
        picked |= dict.fromkeys(others[:MOST_CASES], kind)
    told = [_answers(run, set(picked)) for run in runs]
    return [_case(kind, key, differing, told) for key, kind in picked.items()]


def told_of(leaves: Sequence[FieldMatch]) -> tuple[str, str]:
    """The first of some values that differ, as either run has them."""
    ours = "; ".join(f"{leaf.pointer}: {leaf.expected}"[:MAX_SHOWN] for leaf in leaves[:MOST_VALUES])
    theirs = "; ".join(f"{leaf.pointer}: {leaf.found}"[:MAX_SHOWN] for leaf in leaves[:MOST_VALUES])
    return cut(ours, MAX_SHOWN), cut(theirs, MAX_SHOWN)


def _case(kind: str, key: Key, differing: Mapping[Key, tuple[str, str]], told: Sequence[Mapping[Key, str]]) -> Case:
    if kind == "content":
        return Case(kind, *key, *differing[key])
    return Case(kind, *key, told[0].get(key, ""), told[1].get(key, ""))


def _answers(run: Browsed, wanted: set[Key]) -> dict[Key, str]:
    """The first answers of some documents, cut."""
    found: dict[Key, str] = {}
    for row in run.rows({document_id for _, document_id in wanted}) if wanted else ():
        outcome = outcome_of(row)
        key = (outcome.schema, outcome.document_id)
        if key in wanted and key not in found:
            answers = sorted(answers_of(outcome), key=lambda one: one.failed)  # stable: the first that counts, if any
            first = answers[0].attempt if answers else None
            found[key] = "no answer" if first is None else f"{first.finish_reason}: {cut(first.raw_text, MAX_SHOWN)}"
    return found


def _drawn(key: Key) -> bytes:
    return hashlib.blake2b("\0".join(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
