"""Findings: all that the report says of a run, as numbers. One pass over the rows, in bounded memory."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.observe.tally import Tally
from pipeline.records import Outcome
from pipeline.report.clipped import ClippedFields
from pipeline.report.completeness import Completeness
from pipeline.report.lengths import Lengths
from pipeline.report.problems import Problems
from pipeline.report.rows import outcome_of, was_asked
from pipeline.schema.fingerprint import digest

MAX_SCHEMAS = 40
"""How many schemas, those with most documents, have lines of their own; the rest are `OTHER`."""
OTHER = "other schemas"
MAX_NAME = 80
"""Characters of a schema's name. Rows may name schemas that there are not, at any length."""
SLOWEST = 10

PATHS = ("not asked", "first pass", "repaired or retried", "salvaged", "no record")
"""Ways that documents take. `not asked`: no engine decoded anything for it; the others are the layers 1, 2, 3 and 0."""


@dataclass(frozen=True, slots=True, order=True)
class Slow:
    """How long a document took, over all its attempts."""

    seconds: float
    document_id: str
    source: str
    schema: str = field(compare=False)
    status: str = field(compare=False)
    queue_seconds: float = field(compare=False)
    generation_seconds: float = field(compare=False)
    attempts: int = field(compare=False)
    output_tokens: int = field(compare=False)
    ends: str = field(compare=False)


@dataclass(slots=True)
class Findings:
    """Of the documents read: by (path, status) where they went, counts by schema, problems, attempts by number,
    lengths, completeness and clipped mass by schema, the slowest, and the seconds that engines spent on them."""

    documents: int = 0
    flow: Counter[tuple[str, str]] = field(default_factory=Counter)
    tallies: dict[str, Tally] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    attempts: Counter[int] = field(default_factory=Counter)
    lengths: dict[str, Lengths] = field(default_factory=dict)
    completeness: dict[str, Completeness] = field(default_factory=dict)
    clipped: dict[str, ClippedFields] = field(default_factory=dict)
    audits: Counter[str] = field(default_factory=Counter)
    slowest: list[Slow] = field(default_factory=list)
    generation_seconds: float = 0.0
    queue_seconds: float = 0.0
    unknown_codes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> Tally:
        """The counts of all documents read."""
        total = Tally()
        for tally in self.tallies.values():
            total.merge(tally)
        return total

    def add(self, row: Mapping[str, Any], name: str, budget: int) -> None:
        """Count one row under the name of its schema; `budget` are the tokens of an answer where the row has none."""
        outcome = outcome_of(row)
        self.documents += 1
        self.flow[path_of(outcome), outcome.status] += 1
        self.tallies.setdefault(name, Tally()).add(outcome)
        self.problems.add(row, outcome, name)
        self.attempts[len(outcome.attempts)] += 1
        self.lengths.setdefault(name, Lengths()).add(outcome, budget)
        self.completeness.setdefault(name, Completeness()).add(outcome)
        self.clipped.setdefault(name, ClippedFields()).add(row)
        self.audits[row.get("audit") or ""] += 1
        if len(outcome.problems) < len(row["problems"]):
            known = {problem.code for problem in outcome.problems}
            self.unknown_codes.update({problem["code"] for problem in row["problems"]} - known)
        self._add_times(outcome, name)

    def _add_times(self, outcome: Outcome, name: str) -> None:
        queue = sum(attempt.queue_seconds for attempt in outcome.attempts)
        generation = sum(attempt.seconds for attempt in outcome.attempts)
        self.queue_seconds += queue
        self.generation_seconds += generation
        if not outcome.attempts:
            return
        tokens = sum(attempt.output_tokens for attempt in outcome.attempts)
        ends = ", ".join(attempt.error or attempt.finish_reason for attempt in outcome.attempts)
        key = (queue + generation, outcome.document_id, outcome.source)
        slow = Slow(*key, name, outcome.status, queue, generation, len(outcome.attempts), tokens, ends)
        push = heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop
        push(self.slowest, slow)


def path_of(outcome: Outcome) -> str:
    """Which of `PATHS` a document took."""
    if not was_asked(outcome):
        return PATHS[0]
    return PATHS[outcome.layer] if outcome.layer in (1, 2, 3) else PATHS[4]


def names_of(schemas: Mapping[str, int]) -> dict[str, str]:
    """The name that each schema goes by: its own, one that is too long cut and told apart by a digest, or `OTHER`
    beyond `MAX_SCHEMAS`. {schema: documents}."""
    ranked = sorted(schemas, key=lambda schema: (-schemas[schema], schema))
    return {schema: shown_name(schema) if place < MAX_SCHEMAS else OTHER for place, schema in enumerate(ranked)}


def shown_name(schema: str) -> str:
    """A schema's name, or the beginning of a long one with its digest."""
    return schema if len(schema) <= MAX_NAME else f"{schema[: MAX_NAME - 12]}… {digest(schema)[:10]}"


def collect(rows: Iterable[Mapping[str, Any]], names: Mapping[str, str], budget: int = 0) -> Findings:
    """The findings over rows of a run, as `runtime.output.browse` gives them."""
    findings = Findings()
    for row in rows:
        findings.add(row, names.get(row["schema"], OTHER), budget)
    return findings
