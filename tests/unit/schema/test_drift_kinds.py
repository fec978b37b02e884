"""Every kind of change with an example and its classes for records, readers and the model; the page that says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.schema.closing import close_objects
from pipeline.schema.drift import Change, Drift, drift
from pipeline.schema.drift.kinds import KINDS
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import DocumentSchema

PAGE = Path(__file__).resolve().parents[3] / "docs" / "drift.md"
C, W, N, B, T = "compatible", "widening", "narrowing", "breaking", "retest"
TEXT, NUMBER, WHOLE, NULL = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "null"}
TAGGED = [{"type": "object", "properties": {"k": {"const": c}}, "required": ["k"]} for c in "xyz"]
OBJECT = {"type": "object"}
ARRAY = {"type": "array"}


def loaded(body: Any, *, close: bool = True, **values: Any) -> DocumentSchema:
    closed, pointers = close_objects(body) if close else (body, ())
    parts = {"instructions": "", "examples": (), "closed": pointers, "digest": digest(body), **values}
    return DocumentSchema("s@1", closed, **parts)


def compared(old: Any, new: Any) -> Drift:
    return drift(loaded(old), loaded(new))


def record(required: Any = (), **properties: Any) -> dict[str, Any]:
    """A closed object that requires what is listed."""
    return {**OBJECT, "properties": properties, "required": list(required)}


def free(keyword: str, value: Any, **more: Any) -> dict[str, Any]:
    return {keyword: value, "additionalProperties": True, **more}


def rules(*severities: str) -> dict[str, Any]:
    return {**OBJECT, "x-validations": [{"rule": f"self.a > {i}", "severity": s} for i, s in enumerate(severities)]}


EXAMPLES: list[tuple[str, Any, Any, tuple[str, str, str]]] = [
    ("type", record(a=TEXT), record(a={"type": ["string", "null"]}), (W, B, W)),
    ("type", record(a={"type": ["string", "null"]}), record(a=TEXT), (N, N, N)),
    ("type", record(a=WHOLE), record(a=NUMBER), (W, B, W)),
    ("type", record(a=TEXT), record(a=WHOLE), (B, B, B)),
    ("enum_added", {"enum": ["a"]}, {"enum": ["a", "b"]}, (W, W, W)),
    ("enum_added", {"const": 1}, {"enum": [1.0, 2]}, (W, W, W)),
    ("enum_removed", {"enum": ["a", "b"]}, {"enum": ["a"]}, (N, N, N)),
    ("enum_set", TEXT, {"enum": ["a"]}, (N, N, N)),
    ("enum_dropped", {"enum": ["a"]}, TEXT, (W, W, W)),
    ("enum_order", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}, (C, C, T)),
    ("multiple_of", {"multipleOf": 0.01}, {"multipleOf": 0.05}, (N, N, N)),
    ("multiple_of", {"multipleOf": 0.05}, {"multipleOf": 0.01}, (W, W, W)),
    ("multiple_of", {"multipleOf": 2}, {"multipleOf": 3}, (B, W, B)),
    ("pattern", TEXT, {**TEXT, "pattern": "a"}, (N, N, N)),
    ("pattern", {**TEXT, "pattern": "a"}, TEXT, (W, W, W)),
    ("pattern", {**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, (B, W, B)),
    ("format", TEXT, {**TEXT, "format": "date"}, (N, N, N)),
    ("format", TEXT, {**TEXT, "format": "nobody-checks"}, (C, C, T)),
    ("format", {**TEXT, "format": "date"}, {**TEXT, "format": "email"}, (B, W, B)),
    ("unique_items", ARRAY, {**ARRAY, "uniqueItems": True}, (N, N, N)),
    ("unique_items", {**ARRAY, "uniqueItems": True}, ARRAY, (W, W, W)),
    ("property_added", record(a=TEXT), record(a=TEXT, b=TEXT), (W, W, W)),
    ("property_added", OBJECT, free("properties", {"b": TEXT}), (N, W, N)),
    (
        "property_added",
        {"additionalProperties": TEXT},
        {"properties": {"b": TEXT}, "additionalProperties": TEXT},
        (C, W, T),
    ),
    ("property_removed", record(a=TEXT, b=TEXT), record(a=TEXT), (N, B, N)),
    ("property_removed", free("properties", {"b": TEXT}), OBJECT, (W, B, W)),
    ("renamed?", record(a=TEXT, b=WHOLE), record(a=TEXT, c=WHOLE), (C, C, T)),
    ("property_order", record(a=TEXT, b=WHOLE), record(b=WHOLE, a=TEXT), (C, C, T)),
    ("required_added", record(a=TEXT), record("a", a=TEXT), (N, N, N)),
    ("required_removed", record("a", a=TEXT), record(a=TEXT), (W, B, W)),
    ("allowed", record(a=TEXT), free("properties", {"a": TEXT}, type="object"), (W, W, W)),
    ("forbidden", free("properties", {"a": TEXT}, type="object"), record(a=TEXT), (N, N, N)),
    ("constraint_added", TEXT, {**TEXT, "not": {"const": "a"}}, (N, N, N)),
    ("constraint_added", OBJECT, {**OBJECT, "dependentRequired": {"a": ["b"]}}, (N, N, N)),
    ("constraint_added", TEXT, {**TEXT, "allOf": [{"minLength": 1}, {"maxLength": 2}]}, (N, N, N)),
    ("constraint_removed", {**ARRAY, "contains": TEXT}, ARRAY, (W, W, W)),
    ("constraint_removed", free("patternProperties", {"a": TEXT}), free("patternProperties", {}), (W, W, W)),
    (
        "constraint_removed",
        {"patternProperties": {"a": TEXT}, "additionalProperties": WHOLE},
        {"additionalProperties": WHOLE},
        (B, W, B),
    ),
    ("tuple_length", {"prefixItems": [TEXT], "items": TEXT}, {"items": TEXT}, (C, C, T)),
    ("branch_added", {"anyOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE, NULL]}, (W, B, W)),
    ("branch_added", TEXT, {"anyOf": [TEXT, NULL]}, (W, B, W)),
    ("branch_added", {"oneOf": TAGGED[:2]}, {"oneOf": TAGGED}, (W, W, W)),
    ("branch_removed", {"anyOf": [TEXT, WHOLE, NULL]}, {"anyOf": [TEXT, WHOLE]}, (N, N, N)),
    ("branch_order", {"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE, TEXT]}, (C, C, T)),
    ("overlap", {"oneOf": [TEXT, {}]}, {"oneOf": [TEXT]}, (W, W, W)),
    ("overlap", {"oneOf": [TEXT, {}]}, {"oneOf": [TEXT, {}, WHOLE]}, (B, W, B)),
    ("one_of_any", {"oneOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE]}, (C, C, T)),
    ("one_of_any", {"anyOf": [NUMBER, WHOLE]}, {"oneOf": [NUMBER, WHOLE]}, (N, N, N)),
    (
        "unevaluated",
        {"unevaluatedProperties": False},
        {"unevaluatedProperties": False, "properties": {"a": {}}},
        (B, W, B),
    ),
    ("unknown_keyword", TEXT, {**TEXT, "nullable": True}, (C, C, T)),
    ("annotation", TEXT, {**TEXT, "description": "Seller"}, (C, C, T)),
    ("extension", TEXT, {**TEXT, "x-unit": "EUR"}, (C, C, C)),
    ("rule_added", rules(), rules("block"), (N, N, C)),
    ("rule_added", rules(), rules("observe"), (C, C, C)),
    ("rule_added", rules("observe"), rules("degrade"), (N, N, C)),
    ("rule_removed", rules("block"), rules(), (W, W, C)),
    ("rule_removed", rules("block"), rules("observe"), (W, W, C)),
    ("rules_unread", rules(), {**OBJECT, "x-validations": {}}, (B, W, C)),
    ("definition_added", TEXT, {**TEXT, "$defs": {"a": {}}}, (C, C, T)),
    ("definition_removed", {**TEXT, "$defs": {"a": {}}}, TEXT, (C, C, T)),
    (
        "definition_renamed",
        {"$ref": "#/$defs/a", "$defs": {"a": TEXT}},
        {"$ref": "#/$defs/b", "$defs": {"b": TEXT}},
        (C, C, T),
    ),
    ("definition_unused", {**TEXT, "$defs": {"a": TEXT}}, {**TEXT, "$defs": {"a": WHOLE}}, (C, C, T)),
    ("spelling", {"type": "string", "maxLength": 1}, {"maxLength": 1, "type": "string"}, (C, C, T)),
    ("identity", TEXT, {**TEXT, "$id": "urn:receipt"}, (C, C, C)),
    ("column_added", record(a=TEXT), record(a=TEXT, b=TEXT), (C, W, C)),
    ("column_removed", record(a=TEXT, b=TEXT), record(a=TEXT), (C, B, C)),
    ("column_type", record(a=TEXT), record(a=WHOLE), (C, B, C)),
    ("column_nullable", record("a", a=TEXT), record(a=TEXT), (C, B, C)),
    ("column_required", record(a=TEXT), record("a", a=TEXT), (C, N, C)),
    ("column_order", record(a=TEXT, b=WHOLE), record(b=WHOLE, a=TEXT), (C, C, C)),
]
FAMILIES = {
    "minimum": NUMBER,
    "exclusiveMinimum": NUMBER,
    "minLength": TEXT,
    "minItems": ARRAY,
    "minProperties": OBJECT,
}
for low, base in FAMILIES.items():
    high = low.replace("min", "max").replace("Min", "Max")
    for keyword, strict, mild in ((low, 3, 2), (high, 2, 3)):
        EXAMPLES += [
            ("bound_tightened", base, {**base, keyword: strict}, (N, N, N)),
            ("bound_tightened", {**base, keyword: mild}, {**base, keyword: strict}, (N, N, N)),
            ("bound_loosened", {**base, keyword: strict}, {**base, keyword: mild}, (W, W, W)),
            ("bound_loosened", {**base, keyword: strict}, base, (W, W, W)),
        ]
SEEN_ELSEWHERE = {"instructions", "few_shot", "closing", "undecided", "column_note"}


def only(found: Drift, kind: str) -> Change:
    return next(change for change in found.changes if change.kind == kind)


@pytest.mark.parametrize(
    ("kind", "old", "new", "classes"), EXAMPLES, ids=[f"{i}-{e[0]}" for i, e in enumerate(EXAMPLES)]
)
def test_every_kind_has_its_classes(kind: str, old: Any, new: Any, classes: tuple[str, str, str]) -> None:
    change = only(compared(old, new), kind)
    assert (change.language, change.readers, change.model) == classes
    assert change.why


def test_no_kind_is_without_an_example() -> None:
    assert {example[0] for example in EXAMPLES} | SEEN_ELSEWHERE == KINDS.keys()


def test_the_page_shows_the_rules_as_they_are() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    said = {row[0]: row[1:] for row in rows}
    assert said == {k: (v.meaning, v.language, v.readers, v.model, v.why) for k, v in KINDS.items()}


def test_classes_stay_within_what_the_rules_say() -> None:
    for _, old, new, _ in EXAMPLES:
        for change in compared(old, new).changes:
            kind = KINDS[change.kind]
            assert "L" in kind.language or change.language in kind.language
            assert "L" in kind.readers or change.readers in kind.readers
            assert "L" in kind.model or change.model in kind.model
