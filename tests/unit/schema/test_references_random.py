"""Random schemas full of references: plain ones judge as the library judges the original."""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.references import localise
from pipeline.schema.registry import check_schema
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import descend

NAMES = st.sampled_from(["a", "b", "a b", "c~d"])
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/a%20b", "#/$defs/c~0d", "#/own/a", "#x", "one", "one#x", "one#/$defs/a", "two#/own/a"]
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAMES, inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "$id": st.sampled_from(["one", "two"]),
            "$anchor": st.sampled_from(["x", "y"]),
            "$defs": members,
            "own": members,
            "properties": members,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "$ref": REFERENCES,
            "type": st.sampled_from(["object", "array", "integer"]),
        },
    )


SCHEMAS = st.recursive(st.sampled_from([{}, {"const": 1}, {"const": "k"}, False]), _schemas, max_leaves=8)
VALUES = st.recursive(
    st.sampled_from([None, 1, "k"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries(
        {"$defs": st.fixed_dictionaries({"a": SCHEMAS, "a b": SCHEMAS}), "own": st.fixed_dictionaries({"a": SCHEMAS})}
    ),
    _schemas(SCHEMAS),
    VALUES,
)
def test_making_references_plain_changes_no_judgement(more: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    schema = {**schema, **more}
    try:
        check_schema(schema, "t")
    except SchemaError:
        return
    body = localise(schema)
    named = {"$anchor", "$dynamicAnchor", "$dynamicRef"}
    assert not any(isinstance(node, dict) and named & node.keys() for _, node in descend(body))
    assert localise(body) == body
    assert validator_of(body).is_valid(value) == jsonschema.Draft202012Validator(schema).is_valid(value)
