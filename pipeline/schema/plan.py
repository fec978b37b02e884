"""DecodingPlan: what one document schema becomes for one engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import SchemaError
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Abstain, Policy
from pipeline.schema.shape.shapes import Left
from pipeline.schema.transport import Transport, transport_of


@dataclass(frozen=True, slots=True)
class DecodingPlan:
    """Everything that `extract` and an engine need to know about one schema.

    `acceptance` is what a record must satisfy, `asked` what the model is asked for, before normalisers (the same schema
    where there are none; empty: the acceptance schema); `transport` is the JSON text that the engine decodes under, and
    `left` says which sites of the asked schema it leaves to the validator; `prefix` is the system message that all
    documents of the schema share. `grammar_digest` names what may share a compiled grammar on one engine, `digest` also
    what the model is told: engines stamp it on completions, recordings are matched by it. `refused` is why no engine
    is asked under this schema; its documents are rejected with these words.
    """

    name: str
    acceptance: Mapping[str, Any]
    transport: str
    prefix: str
    schema_digest: str
    grammar_digest: str
    digest: str
    backend: str = ""
    left: tuple[Left, ...] = ()
    abstain: Abstain = "none"
    refused: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)


def build_plan(
    schema: DocumentSchema,
    prefix: str,
    *,
    backend: str,
    compact_json: bool,
    policy: Policy | None = None,
    transport: Transport | None = None,
) -> DecodingPlan:
    """Derive the plan of one schema for engines of one grammar back end; `transport`, if it was made before.

    Back-end version and tokenizer are not digested here: they are the engine's, and its fingerprint carries them.

    Raises:
        SchemaError: no document can satisfy the schema.
    """
    policy = policy or Policy()
    transport = transport or transport_of(schema.asked, backend, policy)
    if not transport.satisfiable:
        raise SchemaError(
            f"no document can satisfy schema {schema.name}: look for required properties that are forbidden or need "
            "themselves, bounds that cross, and empty enums.",
            "unsatisfiable",
        )
    grammar = digest([transport.text, backend, compact_json])
    return DecodingPlan(
        name=schema.name,
        acceptance=schema.body,
        transport=transport.text,
        prefix=prefix,
        schema_digest=schema.digest,
        grammar_digest=grammar,
        digest=digest([grammar, schema.digest, prefix]),
        backend=backend,
        left=transport.left,
        abstain=policy.abstain,
        asked=schema.asked,
    )


def refused_plan(name: str, schema_digest: str, why: str) -> DecodingPlan:
    """Stands in for the plan of a schema that no engine can decode under."""
    return DecodingPlan(name, {}, "false", "", schema_digest, "", digest([name, schema_digest, why]), refused=why)


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
