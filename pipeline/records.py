"""What flows through a job: frozen, plain, free of Ray, vLLM and Arrow.

Vocabulary in order of appearance: a Document is read, a Prompt is rendered from it, an engine answers with a
Completion, parsing makes a Draft with its Problems and Repairs, one pass of that is an Attempt, and the document
ends in exactly one Outcome. A run that wrote one Outcome for every Document commits a Manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = Any
"""A value that JSON can hold: None, bool, int, float, str, list, dict with string keys."""

Status = Literal["valid", "degraded", "rejected"]
STATUSES: tuple[Status, ...] = ("valid", "degraded", "rejected")

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]

Layer = Literal["read", "engine", "parse", "schema", "rules", "ground", "route"]

Severity = Literal["", "block", "degrade", "observe"]
"""What a declared check's finding does: `block` rejects, `degrade` degrades, `observe` counts; empty: its code says."""

Audit = Literal["", "done", "busy", "too_long", "unavailable", "failed"]
"""What became of an audit (docs/clipped-mass.md); empty: nobody asked for one."""

Match = Literal["", "exact", "normalised", "fuzzy", "none"]
"""How a document supports a value; empty: nobody looked."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One coded finding about one document. `code` is one of `pipeline.steps.codes.CODES`; `pointer` is an RFC 6901
    JSON pointer into the record ("" is the whole); `attempt` counts from 1, and 0 means before any attempt. `severity`
    is set by declared checks."""

    code: str
    pointer: str = ""
    message: str = ""
    attempt: int = 0
    severity: Severity = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that the pipeline made between the model's text and the record, or to the document's text.

    `attempt` counts from 1, and 0 means before any attempt.
    """

    kind: str
    pointer: str = ""
    detail: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Field:
    """What is known about one leaf of a record besides its value.

    [`start`, `end`) are code points of the document's text as it was read; `score` is from 0 to 1. `raw` is the JSON
    text of what the model wrote where a normaliser changed it; `touched`: a repair changed it. `confidence` ranks
    values of one schema against each other; it is no probability.
    """

    pointer: str
    match: Match = ""
    start: int | None = None
    end: int | None = None
    score: float | None = None
    raw: str | None = None
    touched: bool = False
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Clipped:
    """Probability that the constraint took from the `tokens` which wrote a leaf of an answer: the sum (`mass`) and the
    `highest` of one. `structure` is its key and the punctuation before it, `blank` what blanks would have got there."""

    pointer: str
    part: Literal["value", "structure", "blank"]
    tokens: int
    mass: float
    highest: float


@dataclass(frozen=True, slots=True)
class Document:
    """One row of the input. `source` is `path#row`; `problems` are what reading already found (layer `read`);
    `columns` are those of the row that the job asks for by `input.columns`."""

    id: str
    text: str
    source: str
    schema: str
    problems: tuple[Problem, ...] = ()
    columns: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Chat messages. `system` is the same for every document of a schema, so that engines can share its prefix."""

    system: str
    user: str

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode one request. `max_tokens` counts output tokens; `seed` makes temperature > 0 repeatable.
    `engine` names one of the job's `engines`; empty is its main one. `audit` is the most tokens, prompt and answer
    together, of which the probabilities without the constraint are asked for besides; 0: they are not."""

    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    token_ids: bool = False
    constrained: bool = True
    engine: str = ""
    audit: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine answered to one request.

    `constrained` is true only if the engine proved at start that its constraint is in force on this path.
    `error` is empty, or one of `prompt_too_long`, `prompt_truncated`, `schema_refused`, `engine_failed`, `deadline`,
    `recording_missing`, `recording_stale`, and then `detail` holds the engine's words. `refusal` is what a provider's
    model said instead of an answer. Times are seconds.
    `logprobs` holds, per output token, {token id: log probability}; `token_ends` the code point of `text` at which
    each output token's text ends. After an audit (`done`, in `audit_seconds` beyond `seconds`) `unmasked` holds, per
    output token, its log probability without the constraint, and the probability of blanks in its place or before it.
    """

    text: str
    finish_reason: FinishReason
    constrained: bool
    engine: str = ""
    plan_digest: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    queue_seconds: float = 0.0
    seconds: float = 0.0
    error: str = ""
    detail: str = ""
    reasoning: str = ""
    refusal: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[Mapping[int, float], ...] = ()
    token_ends: tuple[int, ...] = ()
    audit: Audit = ""
    audit_seconds: float = 0.0
    unmasked: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A parsed value with what was found and changed on the way. `parsed` tells JSON null from no value at all."""

    value: JsonValue = None
    parsed: bool = False
    salvaged: bool = False
    problems: tuple[Problem, ...] = ()
    repairs: tuple[Repair, ...] = ()
    fields: tuple[Field, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request, how it was decoded and what it cost; `raw_text` is the completion as the engine gave it."""

    number: int
    engine: str
    plan_digest: str
    constrained: bool
    finish_reason: str
    error: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    queue_seconds: float
    seconds: float
    raw_text: str
    max_tokens: int = 0
    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one document: exactly one per row of the input.

    `layer` is 1 (first pass), 2 (repaired or retried), 3 (salvaged), or 0 when no layer produced a record.
    `record_attempt` is the number of the attempt that the record is from, 0 without a record. `problems` and
    `repairs` are those of all attempts; `fields` and `confidence` are the record's. `audit` and `clipped` are of the
    first attempt's answer, and decide nothing.
    """

    document_id: str
    source: str
    schema: str
    status: Status
    layer: int
    record: JsonValue
    problems: tuple[Problem, ...] = ()
    repairs: tuple[Repair, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    document_text: str = ""
    work_digest: str = ""
    record_attempt: int = 0
    fields: tuple[Field, ...] = ()
    confidence: float | None = None
    audit: Audit = ""
    clipped: tuple[Clipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run committed. Readers trust only the files named here.

    `documents` counts rows of the input and equals the sum of `counts`; `ids_digest` is an order-free digest of the
    input's document ids that the written rows were checked against. `incremental` says what an incremental run left out
    and superseded, and is empty for others.
    """

    run_id: str
    job: str
    documents: int
    counts: Mapping[str, int]
    ids_digest: str
    schemas: Mapping[str, str]
    files: tuple[Mapping[str, Any], ...]
    totals: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    started: str = ""
    committed: str = ""
    incremental: Mapping[str, Any] = field(default_factory=dict)
