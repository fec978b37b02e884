"""Tally: the counts of a run, layer by layer. Two tallies add up, so each unit is counted where it is written.

Rates are kept apart on purpose: each has its own denominator, and none is a "success rate".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.observe.buckets import ANSWER_TOKENS, DOCUMENT_ANSWERS, GENERATION_MS, QUEUE_MS, put
from pipeline.observe.clipped import clipped_counts, few_places
from pipeline.observe.left import left_violations
from pipeline.observe.paths import (
    MAX_COUNTS,
    NO_TEXT_REPAIRS,
    Answer,
    PathRates,
    answers_of,
    failures_of,
    few_engines,
    place_of,
    rates_of,
    starred,
)
from pipeline.observe.required import required_states
from pipeline.records import Outcome
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.codes import CODES

REFUSALS = frozenset({"prompt_too_long", "schema_refused", "recording_missing", "recording_stale"})
"""`error` of attempts in which no engine decoded anything."""

MAX_SECONDS = 1e9
"""Longer than any request; what is said to have taken longer is no time."""

MAX_POINTERS = 200
"""How many distinct (schema, code, pointer) are kept; the rarest go first, into the key `other`."""


@dataclass
class Tally:
    """Counts over outcomes. `asked` are documents for which an engine decoded something, and what follows is out of
    these: `first_pass_format`, whose first answer was JSON as it came, `first_pass_valid`, whose first answer also
    satisfied the schema, `first_pass_semantic`, every rule and grounding, too, `repaired`, of which any answer's text
    was made JSON, `retried`, which the model answered more than once, `resolved_by_retry`, whose record is a later
    answer, unsalvaged and better than the first (`resolved` has them by "place status"). `engine_retries` are requests
    that were sent again for an engine's failure. Tokens are totals over all attempts; `wasted_tokens` are output
    tokens of attempts that the record is not from, and `retry_…` those of all answers but the first of each document.

    `alarms` and `repairs` count documents by code and by kind, `matches` leaves by how the document supports them.
    `paths` is what `rates` reads. `audits` counts documents by what became of their audit, `clipped` what those found
    (`observe.clipped.places_of` reads it).

    `exhausted` are documents that the model answered more than once and that are not valid. `document_answers` (of each
    document asked), `queue_ms`, `generation_ms` and `answer_tokens` (of each request that was answered) are histograms
    (`observe.buckets`). With the plan of a document, `required` counts what its record has of what its schema requires
    (`observe.required`), `left` documents by the sites that they violated although a grammar was in force.
    """

    documents: int = 0
    asked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    first_pass_format: int = 0
    first_pass_valid: int = 0
    first_pass_semantic: int = 0
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
    retry_prompt_tokens: int = 0
    retry_cached_tokens: int = 0
    retry_output_tokens: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    pointers: Counter[str] = field(default_factory=Counter)
    alarms: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    matches: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    paths: Counter[str] = field(default_factory=Counter)
    audits: Counter[str] = field(default_factory=Counter)
    clipped: Counter[str] = field(default_factory=Counter)
    exhausted: int = 0
    document_answers: Counter[str] = field(default_factory=Counter)
    queue_ms: Counter[str] = field(default_factory=Counter)
    generation_ms: Counter[str] = field(default_factory=Counter)
    answer_tokens: Counter[str] = field(default_factory=Counter)
    required: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome, plan: DecodingPlan | None = None) -> None:
        """Count one outcome; what only its plan tells, if that is given."""
        self.documents += 1
        self.statuses[outcome.status] += 1
        self.schemas[f"{outcome.schema} {outcome.status}"] += 1
        codes = {problem.code for problem in outcome.problems}
        self.codes.update(codes)
        self.alarms.update(code for code in codes if CODES[code].alarm)
        self.pointers.update({_where(outcome.schema, p.code, p.pointer) for p in outcome.problems if p.pointer})
        self.repairs.update({repair.kind for repair in outcome.repairs})
        self.matches.update(found.match for found in outcome.fields if found.match)
        self._add_attempts(outcome)
        self._add_audit(outcome)
        if plan is not None:
            self.left.update(left_violations(outcome, plan))
            if outcome.status != "rejected":
                self.required.update(required_states(outcome.record, plan))
        self._trim()

    def _add_audit(self, outcome: Outcome) -> None:
        if outcome.audit:
            self.audits[outcome.audit] += 1
            self.clipped.update(clipped_counts(outcome))

    def _add_attempts(self, outcome: Outcome) -> None:
        attempts = outcome.attempts
        self.attempts += len(attempts)
        for attempt in attempts:
            self.prompt_tokens += attempt.prompt_tokens
            self.cached_tokens += attempt.cached_tokens
            self.output_tokens += attempt.output_tokens
            self.wasted_tokens += attempt.output_tokens if attempt.number != outcome.record_attempt else 0
        failures = failures_of(outcome)
        self.engine_retries += sum(attempt.number in failures for attempt in attempts[:-1])
        if any(attempt.output_tokens or attempt.error not in REFUSALS for attempt in attempts):
            self._add_asked(outcome)

    def _add_asked(self, outcome: Outcome) -> None:
        answers = list(answers_of(outcome))
        own = [answer for answer in answers if not answer.failed]
        self.asked += 1
        self.first_pass_format += bool(own) and own[0].format_first
        self.first_pass_valid += bool(own) and own[0].format_first and own[0].schema
        self.first_pass_semantic += bool(own) and own[0].format_first and own[0].semantic
        self.repaired += any(repair.kind not in NO_TEXT_REPAIRS for repair in outcome.repairs)
        self.retried += len(own) > 1
        self.exhausted += len(own) > 1 and outcome.status != "valid"
        put(self.document_answers, DOCUMENT_ANSWERS, len(own))
        self.salvaged += outcome.layer == 3
        self.truncated += any(attempt.finish_reason == "length" for attempt in outcome.attempts)
        for answer in answers:
            self._add_answer(answer)
        for answer in own[1:]:
            taken = answer.attempt.number == outcome.record_attempt and outcome.layer in (1, 2)
            if taken and answer.faults < own[0].faults:
                self.resolved_by_retry += 1
                self.resolved[f"{place_of(answer.place)} {outcome.status}"] += 1

    def _add_answer(self, answer: Answer) -> None:
        attempt = answer.attempt
        put(self.queue_ms, QUEUE_MS, _milliseconds(attempt.queue_seconds))
        put(self.generation_ms, GENERATION_MS, _milliseconds(attempt.seconds))
        put(self.answer_tokens, ANSWER_TOKENS, attempt.output_tokens)
        if answer.place > 1:
            self.retry_prompt_tokens += attempt.prompt_tokens
            self.retry_cached_tokens += attempt.cached_tokens
            self.retry_output_tokens += attempt.output_tokens
        self.paths.update(answer.counts())

    def rates(self) -> list[PathRates]:
        """The counts of each path, an engine's next to each other."""
        return rates_of(self.paths)

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
            self.pointers = _most(self.pointers)
        if len(self.left) > 2 * MAX_POINTERS:
            self.left = _most(self.left)
        if len(self.paths) > MAX_COUNTS:
            self.paths = few_engines(self.paths)
        self.clipped = few_places(self.clipped)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` is the inverse."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tally:
        """The tally in a manifest's totals, which may hold more than that."""
        data = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        counters = {name: Counter(value) for name, value in data.items() if isinstance(value, Mapping)}
        return cls(**{**data, **counters})


def tally(outcomes: Iterable[Outcome], plans: Mapping[str, DecodingPlan] | None = None) -> Tally:
    """The tally of some outcomes; `plans` by schema."""
    total = Tally()
    for outcome in outcomes:
        total.add(outcome, (plans or {}).get(outcome.schema))
    return total


def _milliseconds(seconds: float) -> int:
    """0 for what is no time: an engine or a recording may say anything, and a count must not end a job."""
    return round(seconds * 1000) if 0 <= seconds < MAX_SECONDS else 0


def _most(counts: Counter[str]) -> Counter[str]:
    kept = Counter(dict(counts.most_common(MAX_POINTERS)))
    kept["other"] += counts.total() - kept.total()
    return kept


def _where(schema: str, code: str, pointer: str) -> str:
    return f"{schema} {starred(pointer)} {code}"
