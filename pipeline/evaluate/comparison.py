"""What is known of two runs over the same documents, as data: `compared.py` makes it, `gate.py` judges it.

Every test is of pairs: one document, once as run A left it and once as run B did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.observe.shift import Comparison

Group = Literal["outcome", "layer", "cost", "problem", "gold", "field"]
"""What a measure is of: what became of documents, first answers by layer, what was spent, codes of problems, agreement
with gold, single fields."""

Verdict = Literal["changed", "same", "few"]
"""`changed`: beyond chance, all tests together; `same`: chance explains it; `few`: too few documents differ for any
test to say so."""


@dataclass(frozen=True, slots=True)
class Side:
    """A run: where it lies, which it is, and how many documents it has."""

    where: str
    run_id: str
    job: str
    committed: str
    documents: int


@dataclass(frozen=True, slots=True)
class Pairing:
    """How documents were joined. `documents` are the pairs that everything else is of; `only_a` and `only_b` those
    read that the other run has not, with the first ids; `renamed` pairs have another schema's name in B; `repeated`
    are rows that repeat an id, which no pair has. `unread`: rows of a large run that were not read."""

    documents: int
    only_a: int = 0
    only_b: int = 0
    ids_only_a: tuple[str, ...] = ()
    ids_only_b: tuple[str, ...] = ()
    renamed: int = 0
    repeated: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing of each document, in A and in B: a yes or no (1 or 0), a share from 0 to 1, or an amount.

    `documents` are the pairs that have it in both runs, `a` and `b` its means there, `up` and `down` the documents in
    which B has more and less. `worse` is 1 if more is worse, -1 if less is, 0 if neither. `statistic` names the test,
    `p` is its two-sided chance, `adjusted` that for all tests together. `histogram` counts documents by b - a.
    """

    group: Group
    name: str
    documents: int
    a: float
    b: float
    up: int
    down: int
    worse: int
    statistic: str
    p: float
    adjusted: float
    verdict: Verdict
    histogram: tuple[tuple[float, int], ...] = ()
    schema: str = ""
    pointer: str = ""

    @property
    def change(self) -> float:
        """The mean of b - a."""
        return self.b - self.a

    @property
    def is_worse(self) -> bool:
        """Whether B is worse beyond chance."""
        return self.verdict == "changed" and self.worse * self.change > 0


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """One field (`pointer`, `*` for any item) over the `documents` of a schema of which both runs have a record: in how
    many it is the `same`, another value (`changed`), only in B (`appeared`), only in A (`vanished`)."""

    schema: str
    pointer: str
    same: int
    changed: int
    appeared: int
    vanished: int
    documents: int

    @property
    def differ(self) -> int:
        """In how many documents it is not the same."""
        return self.changed + self.appeared + self.vanished


@dataclass(frozen=True, slots=True)
class Example:
    """One document that the runs differ on. `what` is `newly failed`, `newly passed` or a pointer; `a` and `b` are
    short texts of what either has there, untrusted as all that comes from documents and models."""

    what: str
    schema: str
    document_id: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Change:
    """A part of what makes a run that the two do not have alike: `kind` is one of `changes.KINDS`, `name` the key, `a`
    and `b` its values or digests, null where a run has none."""

    kind: str
    name: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Run B held against run A. `transitions` counts pairs by (status in A, status in B). `measures` and `shifts` are
    tested together: where nothing differs, the chance that any is called changed is at most half of `alpha`, the other
    half being the gate's; `tests` is how many share it. `changes` says what was not alike, `warnings` what a reader
    must know before believing the rest. `seconds` are the sums of the engine's seconds, a description: documents of one
    run share the machine's load."""

    a: Side
    b: Side
    pairing: Pairing
    transitions: Mapping[tuple[str, str], int]
    measures: tuple[Measure, ...]
    fields: tuple[FieldDiff, ...]
    shifts: Comparison
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    examples: tuple[Example, ...]
    seconds: tuple[float, float]
    alpha: float
    tests: int

    def measure(self, name: str) -> Measure | None:
        """The measure of this name that is of all schemas."""
        return next((one for one in self.measures if one.name == name and not one.pointer and not one.schema), None)
