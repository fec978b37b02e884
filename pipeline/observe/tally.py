"""Tally: the counts of a run, layer by layer. Two tallies add up, so each unit is counted where it is written.

Rates are kept apart on purpose: each has its own denominator, and none is a "success rate".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import Outcome
from pipeline.steps.codes import CODES

REPAIRS = ("wrapper_removed", "json_repair")
"""Kinds of repairs that turned the text into JSON."""

REFUSALS = frozenset({"prompt_too_long", "schema_refused", "recording_missing", "recording_stale"})
"""`error` of attempts in which no engine decoded anything."""

MAX_POINTER = 120
MAX_POINTERS = 200
"""How many distinct (schema, code, pointer) are kept; the rarest go first, into the key `other`."""


@dataclass
class Tally:
    """Counts over outcomes. `asked` are documents for which an engine decoded something, and what follows is out of
    these: `first_pass_format`, whose first attempt was JSON as it came, `first_pass_valid`, whose first attempt also
    satisfied the schema, `repaired`, of which any attempt's text was made JSON, `retried`, which the model answered
    more than once. `engine_retries` are requests that were sent again for an engine's failure. Tokens are totals
    over all attempts; `wasted_tokens` are output tokens of attempts that the record is not from.
    """

    documents: int = 0
    asked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    first_pass_format: int = 0
    first_pass_valid: int = 0
    repaired: int = 0
    retried: int = 0
    resolved_by_retry: int = 0
    engine_retries: int = 0
    salvaged: int = 0
    truncated: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    wasted_tokens: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    pointers: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.documents += 1
        self.statuses[outcome.status] += 1
        self.schemas[f"{outcome.schema} {outcome.status}"] += 1
        self.codes.update({problem.code for problem in outcome.problems})
        self.pointers.update({_where(outcome.schema, p.code, p.pointer) for p in outcome.problems if p.pointer})
        self._add_attempts(outcome)
        self._trim()

    def _add_attempts(self, outcome: Outcome) -> None:
        attempts = outcome.attempts
        self.attempts += len(attempts)
        for attempt in attempts:
            self.prompt_tokens += attempt.prompt_tokens
            self.cached_tokens += attempt.cached_tokens
            self.output_tokens += attempt.output_tokens
            self.wasted_tokens += attempt.output_tokens if attempt.number != outcome.record_attempt else 0
        failures = {p.attempt for p in outcome.problems if CODES[p.code].again == "infrastructure"}
        self.engine_retries += sum(attempt.number in failures for attempt in attempts[:-1])
        if any(attempt.output_tokens or attempt.error not in REFUSALS for attempt in attempts):
            self._add_asked(outcome, failures)

    def _add_asked(self, outcome: Outcome, failures: Set[int]) -> None:
        answers = [attempt for attempt in outcome.attempts if attempt.number not in failures and not attempt.error]
        first = {CODES[problem.code].layer for problem in outcome.problems if problem.attempt == 1}
        repaired = {repair.attempt for repair in outcome.repairs if repair.kind in REPAIRS}
        whole = not first & {"engine", "parse"} and 1 not in repaired
        self.asked += 1
        self.first_pass_format += whole
        self.first_pass_valid += whole and "schema" not in first
        self.repaired += bool(repaired)
        self.retried += len(answers) > 1
        self.resolved_by_retry += len(answers) > 1 and outcome.layer == 2
        self.salvaged += outcome.layer == 3
        self.truncated += any(attempt.finish_reason == "length" for attempt in outcome.attempts)

    def merge(self, other: Tally) -> Tally:
        """Add another tally to this one, and return this one."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)
        self._trim()
        return self

    def _trim(self) -> None:
        if len(self.pointers) > 2 * MAX_POINTERS:
            kept = Counter(dict(self.pointers.most_common(MAX_POINTERS)))
            kept["other"] += self.pointers.total() - kept.total()
            self.pointers = kept

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is the inverse."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        counters = {name: Counter(value) for name, value in data.items() if isinstance(value, Mapping)}
        return cls(**{**data, **counters})


def tally(outcomes: Iterable[Outcome]) -> Tally:
    """The tally of some outcomes."""
    total = Tally()
    for outcome in outcomes:
        total.add(outcome)
    return total


def _where(schema: str, code: str, pointer: str) -> str:
    """A problem's place with bounded cardinality and length: array indexes become `*`; keys may be the model's."""
    place = re.sub(r"/[0-9]+(?=/|$)", "/*", pointer[: 2 * MAX_POINTER])
    return f"{schema} {place if len(place) <= MAX_POINTER else place[: MAX_POINTER - 1] + '…'} {code}"
