"""The arms: the demo's documents under plans that differ in one thing each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.documents import SCHEMAS
from jobs.gather_demo import package_rows, sample_rows
from pipeline.records import Document
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import DocumentSchema, document_schema, load_schema
from pipeline.steps.prompt import system_prompt

BACKEND = "xgrammar"
DEMO = ("receipt@1", "package@1", "advisory@1")
MAX_CHARACTERS = 1500
"""Of a document: an audit reads prompt and answer once more."""

SHIPPED = "shipped"
TIGHT = ("EUR", "CNY", "MYR", "USD", "JPY")
"""Currencies that the arm `enum_too_tight` leaves out: most of the documents have one of these."""


@dataclass(frozen=True, slots=True)
class Arm:
    """`name` by what differs from `shipped`, `schema` the schema that it is of."""

    name: str
    schema: str
    plan: DecodingPlan
    documents: tuple[Document, ...]


def arms(count: int) -> list[Arm]:
    """All of them, with at most `count` documents each; those of one schema have the same documents."""
    documents = demo_documents(count)
    made = []
    for name in DEMO:
        schema = load_schema(SCHEMAS, name)
        plans = {SHIPPED: plan_of(schema), "schema_not_shown": plan_of(schema, prefix=without_schema(schema))}
        if name == "receipt@1":
            plans |= receipt_plans(schema)
        made += [Arm(arm, name, plan, documents[name]) for arm, plan in plans.items()]
    return made


def receipt_plans(schema: DocumentSchema) -> dict[str, DecodingPlan]:
    """Fields in the reverse order, told and untold; an enum without the values that documents have."""
    other = changed(schema, {"properties": dict(reversed(schema.body["properties"].items()))})
    currency = schema.body["properties"]["currency"]
    few = {**currency, "enum": [value for value in currency["enum"] if value not in TIGHT]}
    tight = changed(schema, {"properties": {**schema.body["properties"], "currency": few}})
    return {
        "fields_reversed": plan_of(other),
        "fields_reversed_untold": plan_of(other, prefix=system_prompt(schema)),
        "enum_too_tight": plan_of(tight),
        "enum_too_tight_untold": plan_of(tight, prefix=system_prompt(schema)),
    }


def changed(schema: DocumentSchema, members: Mapping[str, Any]) -> DocumentSchema:
    """The schema with other members at its root, and the same instructions and examples. Records of examples have the
    new order, and null for a value that the schema no longer has."""
    made = document_schema({**schema.body, **members}, schema.name)
    examples = tuple(
        dataclasses.replace(example, record=fitting(example.record, made.body["properties"]))
        for example in schema.examples
    )
    return dataclasses.replace(made, instructions=schema.instructions, examples=examples)


def fitting(record: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: record[name] if record[name] in each.get("enum", (record[name],)) else None
        for name, each in properties.items()
    }


def plan_of(schema: DocumentSchema, prefix: str = "") -> DecodingPlan:
    return build_plan(schema, prefix or system_prompt(schema), backend=BACKEND, compact_json=True)


def without_schema(schema: DocumentSchema) -> str:
    """The system message without the schema: instructions still speak of the fields."""
    body = {key: value for key, value in schema.asked.items() if key not in ("$schema", "$id")}
    shown = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    before, told, after = system_prompt(schema).partition(f"The answer follows this JSON Schema:\n{shown}")
    if not told:
        raise ValueError(f"the prompt of {schema.name} shows its schema in another way")
    return f"{before}{after}".strip()


def demo_documents(count: int) -> dict[str, tuple[Document, ...]]:
    """The first documents of each of the demo's schemas that are not too long."""
    found: dict[str, list[Document]] = {name: [] for name in DEMO}
    for row in _rows():
        if len(row["text"]) <= MAX_CHARACTERS and len(found[row["schema"]]) < count:
            found[row["schema"]].append(Document(row["id"], row["text"], "demo", row["schema"]))
    return {name: tuple(documents) for name, documents in found.items()}


def _rows() -> Iterable[dict[str, Any]]:
    yield from package_rows()
    yield from sample_rows()
