"""For every code of the lint one schema that has it and a near twin that has not."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.schema.lint import RULES, examine
from pipeline.schema.registry import DocumentSchema, document_schema

TEXT = {"type": "string", "maxLength": 20}
DAY = {"type": "string", "format": "date"}


def schema_of(body: Any, instructions: str = "") -> DocumentSchema:
    return document_schema(body, "twin@1", instructions=instructions)


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def nested(levels: int) -> dict[str, Any]:
    return fields(inner=nested(levels - 1)) if levels > 1 else fields(a=TEXT)


def branch(**constants: Any) -> dict[str, Any]:
    held = {name: {"const": value} if name == "kind" else value for name, value in constants.items()}
    return {"type": "object", "properties": held, "required": list(held), "additionalProperties": False}


def string(**keywords: Any) -> dict[str, Any]:
    return fields(a={"type": "string", **keywords})


def number(**keywords: Any) -> dict[str, Any]:
    return fields(a={"type": "number", **keywords})


def many(count: int, *required: str) -> dict[str, Any]:
    return fields(*required, **{f"f{chr(97 + i % 26)}{chr(97 + i // 26)}": TEXT for i in range(count)})


LOOP = {"$defs": {"node": fields(up={"$ref": "#/$defs/node"})}, **fields(top={"$ref": "#/$defs/node"})}
MUST = {"$defs": {"node": fields("up", up={"$ref": "#/$defs/node"})}, **fields(top={"$ref": "#/$defs/node"})}
FLAT = {"$defs": {"node": fields(up=TEXT)}, **fields(top={"$ref": "#/$defs/node"})}
BASE = {"type": "object", "properties": {"a": TEXT}}
CLOSED = {"properties": {"b": TEXT}, "additionalProperties": False}

SHAPE: dict[str, tuple[Any, Any]] = {
    "deep_nesting": (nested(6), nested(5)),
    "many_optional": (many(9), many(8)),
    "wide_object": (many(41), many(40)),
    "conditional": (fields(a={**TEXT, "not": {"const": "x"}}), fields(a={**TEXT, "anyOf": [{"const": "x"}]})),
    "untold_union": (
        fields(a={"anyOf": [branch(x=TEXT, y=TEXT), branch(x=TEXT, z=TEXT)]}),
        fields(a={"anyOf": [branch(kind="p", y=TEXT), branch(kind="q", z=TEXT)]}),
    ),
    "late_discriminator": (
        fields(a={"anyOf": [branch(y=TEXT, kind="p"), branch(y=TEXT, kind="q")]}),
        fields(a={"anyOf": [branch(kind="p", y=TEXT), branch(kind="q", y=TEXT)]}),
    ),
    "overlapping_one_of": (
        fields(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}),
        fields(a={"oneOf": [{"type": "integer"}, {"type": "string"}]}),
    ),
    "mixed_types": (fields(a={"type": ["string", "integer"]}), fields(a={"type": ["integer", "number", "null"]})),
    "missing_type": (fields(a={"maxLength": 3}), fields(a={"type": "string", "maxLength": 3})),
    "any_value": (fields(a=True), fields(a={"const": 1})),
    "root_not_object": ({"type": "array", "items": TEXT}, fields(a=TEXT)),
    "open_object": ({**fields(a=TEXT), "additionalProperties": True}, fields(a=TEXT)),
    "free_form_object": (fields(a={"type": "object"}), fields(a=fields(b=TEXT))),
    "map_object": (fields(a={"type": "object", "additionalProperties": TEXT}), fields(a=fields(b=TEXT))),
    "tuple_array": (
        fields(a={"type": "array", "prefixItems": [TEXT], "items": False}),
        fields(a={"type": "array", "items": TEXT, "maxItems": 1}),
    ),
    "recursion": (LOOP, FLAT),
    "endless": (MUST, LOOP),
    "unused_definition": (
        {"$defs": {"x": TEXT}, **fields(a=TEXT)},
        {"$defs": {"x": TEXT}, **fields(a={"$ref": "#/$defs/x"})},
    ),
    "undeclared_required": (fields("a", "b", a=TEXT), {**fields("a", "b", a=TEXT), "patternProperties": {"^b$": TEXT}}),
    "closed_against_parts": (fields(o={"allOf": [BASE], **CLOSED}), fields(o={"allOf": [BASE], **CLOSED, **BASE})),
    "impossible": (
        fields(a={"allOf": [{"type": "string"}, {"type": "integer"}]}),
        fields(a={"allOf": [{"type": "number"}, {"type": "integer"}]}),
    ),
}

FREE = {"type": "string"}
VALUES: dict[str, tuple[Any, Any]] = {
    "free_text_share": (fields(a=FREE, b=FREE, c=FREE, d=TEXT), fields(a=FREE, b=FREE, c=TEXT, d=TEXT)),
    "no_unknown": (
        fields("a", a={"enum": ["red", "green"]}),
        fields("a", "b", a={"enum": ["red", "not stated", "Unknown"]}, b={"type": ["string", "null"]}),
    ),
    "optional_and_null": (fields(a={"type": ["string", "null"]}), fields("a", a={"type": ["string", "null"]})),
    "number_as_string": (string(pattern=r"^\d+$"), fields(postal_code={"type": "string", "pattern": r"^\d+$"})),
    "date_as_string": (fields(birth_date=TEXT), fields(birth_date=DAY, date_format=TEXT)),
    "list_as_string": (string(description="Comma-separated names"), string(description="Name, as printed")),
    "unbounded_array": (
        fields(a={"type": "array", "items": TEXT}),
        fields(a={"type": "array", "items": TEXT, "maxItems": 9}),
    ),
    "unbounded_string": (string(pattern="^a+$"), string(pattern="^a{1,9}$")),
    "unbounded_number": (number(minimum=0), number(minimum=0, exclusiveMaximum=10)),
    "huge_bound": (
        fields(a={"type": "array", "items": TEXT, "minItems": 1000, "maxItems": 100000}),
        fields(a={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1000}),
    ),
    "huge_enum": (string(enum=[f"v{i}" for i in range(201)]), string(enum=[f"v{i}" for i in range(200)])),
    "crossed_bounds": (number(minimum=5, maximum=4), number(minimum=4, maximum=4)),
    "unsafe_integer": (number(maximum=2**53 + 1), number(maximum=2**53)),
    "enum_type_mismatch": (string(enum=["1", 2]), string(enum=["1", "2"])),
    "enum_repeats": (string(enum=["a", "b", "a"]), string(enum=["a", "b", "A."])),
    "enum_refused": (string(enum=["ab", "abc"], maxLength=2), string(enum=["ab", "abc"], maxLength=3)),
    "default_refused": (number(default="1"), number(default=1)),
    "example_refused": (string(format="date", examples=["1.2.2024"]), string(format="date", examples=["2024-02-01"])),
    "default_ignored": (number(default=1), number(default=None)),
    "volatile_constant": (
        fields(a={"const": "0b5c1f52-6c39-4c21-9d6a-0a3c1f5e7b11"}),
        fields(a={"const": "https://example.org/schemas/receipt"}, b={"enum": ["2015-08-01"]}),
    ),
    "prose_constraint": (
        string(description="At most 80 characters"),
        string(description="At most 80 characters", maxLength=80),
    ),
    "described_optional": (
        fields("a", a={**TEXT, "description": "Middle name, if any"}),
        fields("a", a={"type": ["string", "null"], "description": "Middle name, if any"}),
    ),
    "cryptic_enum": (string(enum=["A", "B", "C"]), string(enum=["A", "B", "C"], description="A is best, C is worst")),
}

YES = {"type": "boolean"}
NAMES: dict[str, tuple[Any, Any]] = {
    "label_before_rationale": (
        fields(risk_score=TEXT, risk_reason=TEXT),
        fields(risk_reason=TEXT, risk_score=TEXT, closing_reason=TEXT),
    ),
    "lookalike_names": (fields(user_name=TEXT, userName=TEXT), fields(user_name=TEXT, user_mail=TEXT)),
    "lookalike_values": (string(enum=["Cash", "cash "]), string(enum=["cash", "card"])),
    "disguised_text": (fields(**{"pаyer": TEXT}), fields(**{"größe": TEXT, "имя": TEXT})),
    "unsafe_name": (fields(**{'a"b': TEXT}), fields(**{"a b": TEXT})),
    "long_name": (fields(**{"n" * 65: TEXT}), fields(**{"n" * 64: TEXT})),
    "unclear_name": (fields(val=TEXT), fields(val={**TEXT, "description": "What was measured"})),
    "negated_boolean": (fields(is_not_valid=YES), fields(notable=YES, no_of_days={"type": "integer"})),
    "numbered_names": (fields(item_1=TEXT, item_2=TEXT, item_3=TEXT), fields(line1=TEXT, line2=TEXT)),
}

KEYWORDS: dict[str, tuple[Any, Any]] = {
    "misspelt_keyword": (string(maxlength=3), string(maxLength=3)),
    "other_draft_keyword": (string(nullable=True), fields(nullable=YES)),
    "unknown_keyword": (string(wibble=True), string(**{"x-wibble": True})),
    "misplaced_property": ({**fields(a=TEXT), "total": {"type": "number"}}, fields(a=TEXT, total={"type": "number"})),
    "inapplicable_keyword": (string(minimum=3), number(minimum=3)),
    "orphan_keyword": (
        fields(a={**TEXT, "then": {"minLength": 1}}),
        fields(a={**TEXT, "if": {"const": "x"}, "then": {"minLength": 1}}),
    ),
    "annotation_only": (string(contentEncoding="base64"), string(pattern="^[A-Za-z0-9+/]{4,80}$")),
    "unchecked_format": (string(format="datetime"), string(format="date-time")),
    "loose_pattern": (string(pattern="^a|b$"), string(pattern="^(a|b)$")),
    "grammarless_pattern": (string(pattern=r"^(?=a)\w{1,9}$"), string(pattern=r"^[(?=]\\b{1,9}$")),
    "slow_pattern": (string(pattern="^([a-z]+-?)+$"), string(pattern="^[a-z]+(-[a-z]+)*$")),
    "foreign_pattern": (string(pattern=r"\Aab\Z"), string(pattern=r"^\\A$")),
}

TABLE = {**SHAPE, **VALUES, **NAMES, **KEYWORDS}


@pytest.mark.parametrize("code", TABLE)
def test_the_one_has_it_and_its_twin_has_not(code: str) -> None:
    has, has_not = TABLE[code]
    assert code in examine(schema_of(has)).counts
    assert code not in examine(schema_of(has_not)).counts


def test_instructions_that_name_a_field_that_is_gone() -> None:
    body = fields(total_amount={"type": "number"})
    assert "stale_instructions" in examine(schema_of(body, "Put the sum into `total_sum`.")).counts
    assert "stale_instructions" not in examine(schema_of(body, "`total_amount` is the `sum` as printed.")).counts


def test_every_code_has_a_pair() -> None:
    assert set(RULES) == {*TABLE, "stale_instructions"}
