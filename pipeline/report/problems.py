"""Problems by place, ranked by the documents that they cost, each with the one document that shows it best."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.observe.paths import starred
from pipeline.records import STATUSES, Attempt, Outcome, Problem
from pipeline.report.passages import Passage, in_answer, in_document
from pipeline.report.rows import blamed
from pipeline.steps.codes import CODES

MAX_GROUPS = 1000
"""How many places are told apart; beyond twice as many the rarest are forgotten."""
SHOWN_GROUPS = 60
SHOWN_EXAMPLES = 25
MAX_SHOWN_PLACES = 40
"""Places of one document that it may be the example of: each takes a pass over its answer."""
MAX_MESSAGE = 600

Key = tuple[str, str, str]
"""Schema, place (array indices as `*`), code."""


@dataclass(frozen=True, slots=True)
class Example:
    """A document that has a problem. `passage` is None until the document was read again; `spans` are what supports the
    values at the problem's place. Texts are cut: of `attempt` the raw one is left out."""

    document_id: str
    source: str
    unit: str
    status: str
    problem: Problem
    answer: Passage
    spans: tuple[tuple[int, int], ...]
    attempt: Attempt | None = None
    passage: Passage | None = None


@dataclass(slots=True)
class Group:
    """Documents that share a problem: `documents` have it, in any attempt; `cost` are not valid because of it."""

    key: Key
    documents: int = 0
    cost: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    rank: tuple[Any, ...] | None = None
    example: Example | None = None

    @property
    def schema(self) -> str:
        return self.key[0]

    @property
    def place(self) -> str:
        return self.key[1]

    @property
    def code(self) -> str:
        return self.key[2]

    @property
    def layer(self) -> str:
        return CODES[self.code].layer


class Problems:
    """Groups of problems over outcomes, with bounded memory. `dropped` counts documents of groups that were too rare
    to be kept, as often as they were in one; `layers` counts documents by (schema, layer that cost them validity,
    status)."""

    def __init__(self) -> None:
        self.groups: dict[Key, Group] = {}
        self.layers: Counter[tuple[str, str, str]] = Counter()
        self.dropped = 0

    def add(self, row: Mapping[str, Any], outcome: Outcome, schema: str) -> None:
        """Count one outcome under the name of its schema."""
        blame = blamed(outcome)
        if outcome.status != "valid":
            self.layers[schema, CODES[blame.code].layer if blame else "", outcome.status] += 1
        first: dict[Key, Problem] = {}
        for problem in outcome.problems:
            first.setdefault((schema, starred(problem.pointer), problem.code), problem)
        blame_key = (schema, starred(blame.pointer), blame.code) if blame else None
        for place, (key, problem) in enumerate(first.items()):
            group = self.groups.setdefault(key, Group(key))
            cost = key == blame_key
            group.documents += 1
            group.cost += cost
            group.statuses[outcome.status] += 1
            if cost or place < MAX_SHOWN_PLACES:
                self._show(group, row, outcome, blame if cost and blame else problem, cost=cost)
        if len(self.groups) > 2 * MAX_GROUPS:
            self._forget()

    def ranked(self) -> list[Group]:
        """The groups, those that cost most documents first."""
        return sorted(self.groups.values(), key=lambda group: (-group.cost, -group.documents, group.key))

    def _show(self, group: Group, row: Mapping[str, Any], outcome: Outcome, problem: Problem, *, cost: bool) -> None:
        """Take the outcome for the example if it shows the problem better: a document that it cost, a worse status, a
        short answer; the id decides, so that no order of rows does."""
        attempt = next((one for one in outcome.attempts if one.number == problem.attempt), None)
        raw = attempt.raw_text if attempt else ""
        rank = (not cost, -STATUSES.index(outcome.status), not raw, len(raw), outcome.document_id, outcome.source)
        if group.rank is not None and group.rank <= rank:
            return
        group.rank = rank
        spans = spans_at(outcome, problem)
        group.example = Example(
            document_id=outcome.document_id,
            source=outcome.source,
            unit=row["unit"],
            status=outcome.status,
            problem=dataclasses.replace(problem, message=problem.message[:MAX_MESSAGE]),
            answer=in_answer(raw, problem, attempt.finish_reason if attempt else ""),
            spans=spans,
            attempt=dataclasses.replace(attempt, raw_text="") if attempt else None,
            passage=in_document(outcome.document_text, spans) if outcome.document_text else None,
        )

    def _forget(self) -> None:
        kept = self.ranked()[:MAX_GROUPS]
        self.dropped += sum(group.documents for group in self.groups.values()) - sum(group.documents for group in kept)
        self.groups = {group.key: group for group in kept}


def spans_at(outcome: Outcome, problem: Problem) -> tuple[tuple[int, int], ...]:
    """Where the document supports the values at a problem's place, if they are the record's; at most 12 passages."""
    if problem.attempt not in (0, outcome.record_attempt):
        return ()
    below = f"{problem.pointer}/"
    found = (
        (one.start, one.end)
        for one in outcome.fields
        if one.start is not None
        and one.end is not None
        and (one.pointer == problem.pointer or one.pointer.startswith(below))
    )
    return tuple(sorted(set(found))[:12])
