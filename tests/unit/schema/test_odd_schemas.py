"""No value crashes the loading of schemas, or keeps it busy: it loads, or is refused with a code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.closing import close_objects
from pipeline.schema.columns import column_of
from pipeline.schema.registry import REFUSALS, check_schema, document_schema
from pipeline.schema.validator import validator_of


def _loop() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["not"] = loop
    return loop


def _shared() -> dict[str, Any]:
    node: dict[str, Any] = {}
    for _ in range(60):
        node = {"anyOf": [node, node]} if _ % 2 else {"not": node, "if": node}
    return node


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        (None, {"malformed"}),
        (5, {"malformed"}),
        ({1: {}}, {"not_json"}),
        ({"enum": {1, 2}}, {"not_json"}),
        ({"default": float("nan")}, {"not_json"}),
        ({"default": b"x"}, {"not_json"}),
        ({"default": 10**5000}, {"not_json"}),
        ({"\ud800": 1}, {"not_json"}),
        ({"type": [["a"]]}, {"malformed"}),
        ({"type": {"a": []}}, {"malformed"}),
        ({"required": [{}]}, {"malformed"}),
        ({"$schema": []}, {"unknown_draft"}),
        ({"$ref": ["#"]}, {"malformed"}),
        (_loop(), {"too_deep", "too_large"}),
        (_shared(), {"too_deep", "too_large"}),
        ({"enum": ["x" * (1 << 20)]}, {"too_large"}),
        ({"enum": [0] * (1 << 20)}, {"too_large"}),
    ],
)
def test_odd_values_in_memory_are_refused_with_a_code(source: Any, codes: set[str]) -> None:
    with pytest.raises(SchemaError) as caught:
        check_schema(source, "odd")
    assert caught.value.code in codes
    assert "odd" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_copies_of_what_references_lead_to_are_bounded() -> None:
    inner: Any = {"const": "x" * 30_000}
    references: list[Any] = []
    for depth in range(40):
        inner, references = {"own": inner}, [*references, {"$ref": "#" + "/own" * (depth + 1)}]
    with pytest.raises(SchemaError) as caught:
        check_schema({**inner, "anyOf": references}, "t")
    assert caught.value.code == "too_large"


_VOCABULARY = """
$ref $id $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $schema $defs definitions id type enum const
items prefixItems additionalItems properties patternProperties additionalProperties required dependencies contentSchema
dependentSchemas dependentRequired allOf anyOf oneOf not if then else contains format pattern minimum multipleOf
exclusiveMinimum unevaluatedProperties propertyNames $comment a b
"""
_WORDS = st.sampled_from(_VOCABULARY.split())
_DRAFTS = st.sampled_from(
    [f"http://json-schema.org/draft-0{number}/schema#" for number in (3, 4, 6, 7)]
    + [f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")]
)
_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(width=16)
    | _WORDS
    | st.sampled_from(
        ["#", "#a", "#/$defs/a", "#/a/b", "a", "a#", "b#/a", "object", "http://[", "(", "%ff", "/", "~", ""]
    )
    | st.text(max_size=3)
)
_JSON = st.recursive(
    _ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_WORDS, _JSON, max_size=5), st.none() | _DRAFTS, _JSON)
@example({"$ref": "#/a", "a": {"$ref": 5}}, None, None)
@example({"dependencies": {"a": []}, "$ref": "#/dependencies/a"}, "http://json-schema.org/draft-07/schema#", None)
@example({"definitions": {"a": {"$ref": "#", "definitions": 5}}}, "http://json-schema.org/draft-07/schema#", None)
def test_any_json_value_loads_or_is_refused(source: Any, draft: Any, value: Any) -> None:
    if draft is not None:
        source = {"$schema": draft, **source}
    try:
        schema = document_schema(source, "t@1")
    except SchemaError as error:
        assert error.code in REFUSALS
        return
    validator_of(schema.body).is_valid(value)
    column_of(schema.body)
    again = document_schema(schema.body, "t@1")
    assert again.body == schema.body
    assert close_objects(schema.body)[1] == ()
