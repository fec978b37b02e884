"""The shapes of requests and answers as the OpenAPI document shows them. `web_body.py` reads requests, not these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.records import FinishReason, Match, Severity, Status
from pipeline.serve_app.web_body import MAX_ID, MAX_NAME


class Shape(BaseModel):
    """All members are there, and no others."""

    model_config = ConfigDict(extra="forbid")


class ExtractRequest(Shape):
    """One document. `schema` is the name of a registered schema, or a JSON Schema."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = None
    text: str
    schema_: Annotated[str, Field(max_length=MAX_NAME)] | dict[str, Any] = Field(alias="schema")


class ProblemShape(Shape):
    """`code` is one of docs/troubleshooting.md; `pointer` leads into the record; `attempt` 0 is before any."""

    code: str
    pointer: str
    message: str
    attempt: int
    severity: Severity


class RepairShape(Shape):
    """A change that was made between the model's text, or the document's, and the record."""

    kind: str
    pointer: str
    detail: str
    attempt: int


class FieldShape(Shape):
    """What is known about one leaf of the record. [`start`, `end`) are code points of the text that was sent."""

    pointer: str
    match: Match
    start: int | None
    end: int | None
    score: float | None
    raw: str | None
    touched: bool
    confidence: float | None


class AttemptShape(Shape):
    """One request to the engine. `constrained`: the answer was held to the schema while it was written."""

    number: int
    engine: str
    plan_digest: str
    constrained: bool
    finish_reason: FinishReason
    error: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    queue_seconds: float
    seconds: float
    raw_text: str
    max_tokens: int
    temperature: float
    seed: int | None


class OutcomeShape(Shape):
    """What became of a document. `record` is null if it is rejected. `layer`: 1 the first answer, 2 repaired or
    retried, 3 salvaged, 0 none."""

    document_id: str
    schema_: str = Field(alias="schema")
    status: Status
    layer: Literal[0, 1, 2, 3]
    record: Any
    problems: list[ProblemShape]
    repairs: list[RepairShape]
    attempts: list[AttemptShape]
    work_digest: str
    record_attempt: int
    fields_: list[FieldShape] = Field(alias="fields")
    confidence: float | None


class ErrorWords(Shape):
    """`code` is for programs, `message` for people."""

    code: str
    message: str


class ErrorShape(Shape):
    """A request that came to no outcome."""

    error: ErrorWords


class BatchRow(Shape):
    """What the document would have been answered alone: `outcome` or `error` is set, `http` is the code.
    `retry_after`: seconds after which asking again makes sense."""

    http: int
    retry_after: int | None
    outcome: OutcomeShape | None
    error: ErrorWords | None


class BatchAnswer(Shape):
    """In the order of the documents."""

    results: list[BatchRow]


class LeftSite(Shape):
    """A keyword that the grammar does not hold: a record is held to it afterwards."""

    pointer: str
    keyword: str
    why: str


class SchemaRow(Shape):
    """A registered schema. `schema` is what a record satisfies; `refused` is why it cannot be served, or empty."""

    name: str
    digest: str
    schema_: dict[str, Any] | None = Field(alias="schema")
    backend: str
    left: list[LeftSite]
    refused: str


class SchemaList(Shape):
    """The registered schemas, by name."""

    schemas: list[SchemaRow]


class Health(Shape):
    """`ok`, or `unavailable` with code 503."""

    status: Literal["ok", "unavailable"]
