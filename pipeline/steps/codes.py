"""The closed set of problem codes: what each means, whether another attempt can help, how good the document can get.

This table is policy. Steps find problems by these codes, `retry` and `route` read what to do from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.records import Layer, Status

Again = Literal["never", "feedback", "infrastructure"]
"""`feedback`: ask again and say what was wrong. `infrastructure`: ask again, the model is not to blame."""


@dataclass(frozen=True, slots=True)
class Code:
    """`cap` is the best status a document with this problem can have; layer 3 can lift a `salvageable` one."""

    layer: Layer
    again: Again
    cap: Status
    meaning: str
    salvageable: bool = False


CODES: dict[str, Code] = {
    # read: found before any attempt
    "document_unreadable": Code("read", "never", "rejected", "the row or its text could not be read"),
    "document_not_utf8": Code("read", "never", "rejected", "the bytes are not UTF-8"),
    "document_empty": Code("read", "never", "rejected", "no text; nothing is asked of a model, so nothing is invented"),
    "document_without_id": Code("read", "never", "rejected", "the id column holds no id in this row"),
    "document_without_schema": Code("read", "never", "rejected", "the schema column holds no name in this row"),
    "duplicate_id": Code("read", "never", "rejected", "an earlier row has the same id; that one was extracted"),
    "document_characters_replaced": Code("read", "never", "degraded", "NUL or lone surrogates became U+FFFD"),
    # engine: the request did not end as one should
    "document_too_long": Code("engine", "never", "rejected", "prompt and answer budget exceed the model's context"),
    "deadline_exceeded": Code("engine", "never", "rejected", "the document's time budget is spent"),
    "engine_abort": Code("engine", "infrastructure", "rejected", "the engine aborted the request"),
    "engine_error": Code("engine", "infrastructure", "rejected", "the engine failed on the request"),
    "schema_refused": Code("engine", "never", "rejected", "the engine refuses to decode under this schema"),
    "recording_missing": Code("engine", "never", "rejected", "the recording holds no answer to this prompt"),
    "recording_stale": Code("engine", "never", "rejected", "the recording was made under another plan"),
    "pipeline_failed": Code("engine", "never", "rejected", "a step raised what it should not; see the message"),
    # parse: text to value
    "truncated": Code("parse", "feedback", "rejected", "the answer was cut at its token limit", salvageable=True),
    "repetition": Code("parse", "feedback", "rejected", "the engine stopped a loop", salvageable=True),
    "constraint_failed": Code(
        "parse", "infrastructure", "rejected", "a finished answer on a constrained path is not JSON"
    ),
    "empty_output": Code("parse", "feedback", "rejected", "the answer holds no text"),
    "not_json": Code("parse", "feedback", "rejected", "the answer is not one JSON value", salvageable=True),
    "duplicate_key": Code("parse", "feedback", "rejected", "an object of the answer repeats a key"),
    "number_not_finite": Code(
        "parse", "feedback", "rejected", "the answer holds NaN, Infinity or a number that no double holds"
    ),
    "json_too_large": Code("parse", "never", "rejected", "the answer is larger or deeper than is parsed"),
    "json_repaired": Code("parse", "never", "degraded", "a repairer changed the answer's text; see repairs"),
    "wrapped_in_prose": Code("parse", "never", "degraded", "the answer's JSON stood inside other text; see repairs"),
    # schema: value against the acceptance schema and its columns
    "schema_violation": Code("schema", "feedback", "rejected", "a value breaks the schema", salvageable=True),
    "value_not_storable": Code("schema", "feedback", "rejected", "a value does not fit its column", salvageable=True),
    "lone_surrogate": Code("schema", "feedback", "rejected", "a string is not valid Unicode", salvageable=True),
    "abstained": Code("schema", "never", "degraded", "null for a required field, as the job's policy allows"),
    "not_applicable": Code("schema", "never", "rejected", "the model says that the document is not of this kind"),
    "not_judged": Code("schema", "never", "rejected", "the validator itself failed on the value"),
    # route: what layer 3 had to give up
    "field_dropped": Code("route", "never", "degraded", "a member was cut or invalid and is left out"),
    "required_missing": Code("route", "never", "degraded", "a required member is absent from the salvaged record"),
}
