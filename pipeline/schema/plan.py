"""DecodingPlan: what one document schema becomes for one engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.transport import transport_schema


@dataclass(frozen=True, slots=True)
class DecodingPlan:
    """Everything that `extract` and an engine need to know about one schema.

    `acceptance` is what a record must satisfy; `transport` is the JSON text that the engine decodes under; `prefix`
    is the system message that all documents of the schema share. `grammar_digest` names what may share a compiled
    grammar on one engine, `digest` also what the model is told: engines stamp it on completions, recordings are
    matched by it.
    """

    name: str
    acceptance: Mapping[str, Any]
    transport: str
    prefix: str
    schema_digest: str
    grammar_digest: str
    digest: str


def build_plan(schema: DocumentSchema, prefix: str, *, backend: str, compact_json: bool) -> DecodingPlan:
    """Derive the plan of one schema for engines of one grammar back end.

    Back-end version and tokenizer are not digested here: they are the engine's, and its fingerprint carries them.
    """
    # Not canonical JSON: the order of properties is part of the constraint.
    transport = json.dumps(transport_schema(schema.body), ensure_ascii=False, separators=(",", ":"))
    grammar = digest([transport, backend, compact_json])
    return DecodingPlan(
        name=schema.name,
        acceptance=schema.body,
        transport=transport,
        prefix=prefix,
        schema_digest=schema.digest,
        grammar_digest=grammar,
        digest=digest([grammar, schema.digest, prefix]),
    )


def literal_plan(name: str, value: Any) -> DecodingPlan:
    """A plan whose language is one record, `{"answer": value}`: start-up checks prove a constraint with it."""
    body = {
        "type": "object",
        "properties": {"answer": {"const": value}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    transport = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return DecodingPlan(
        name, body, transport, "You write short poems.", digest(body), digest(transport), digest([name, body])
    )


NO_PLAN = DecodingPlan("", {}, "{}", "", "", "", "")
"""Stands in for documents that name no schema: nothing is asked of an engine for them."""
