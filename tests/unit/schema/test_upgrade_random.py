"""Random schemas of every draft: upgraded, each judges as the library judges the original by its own draft."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.dialects import DIALECTS, malformed
from pipeline.schema.references import localise
from pipeline.schema.registry import check_schema
from pipeline.schema.upgrade import upgrade
from pipeline.schema.validator import validator_of

URIS = {dialect.name: dialect.uri for dialect in DIALECTS}
LIBRARY = {
    "draft-04": jsonschema.Draft4Validator,
    "draft-06": jsonschema.Draft6Validator,
    "draft-07": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
}


NAMES = st.sampled_from(["a", "b"])
REFERENCES = st.sampled_from(
    ["#", "#/definitions/a", "#/definitions/b", "#/items/0", "#/additionalItems", "#/dependencies/a", "#/properties/a"]
)


def _keywords(inner: st.SearchStrategy[Any], draft: str) -> dict[str, st.SearchStrategy[Any]]:
    flags = st.booleans() if draft == "draft-04" else st.integers(0, 3)
    booleans = inner if draft == "draft-04" else inner | st.booleans()
    some = st.lists(booleans, min_size=1, max_size=2)
    names = st.lists(NAMES, min_size=1, max_size=2, unique=True)
    singles = ["contains", "propertyNames", "if", "then", "else", "not", "additionalProperties"]
    return {
        "type": st.sampled_from(["object", "array", "integer", "null", ["string", "object"]]),
        "minimum": st.integers(0, 3),
        "maximum": st.integers(0, 3),
        "exclusiveMinimum": flags,
        "exclusiveMaximum": flags,
        "const": st.integers(0, 3),
        "required": names,
        "enum": st.just([1, "a", None]),
        "items": (inner if draft == "2019-09" else booleans) | some,  # the library crashes on `items: true` there
        "additionalItems": booleans,
        "prefixItems": some,
        "properties": st.dictionaries(NAMES, booleans, max_size=2),
        "dependencies": st.dictionaries(NAMES, booleans | names, max_size=2),
        "dependentRequired": st.dictionaries(NAMES, names, max_size=2),
        "dependentSchemas": st.dictionaries(NAMES, booleans, max_size=2),
        "unevaluatedItems": booleans,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "$ref": REFERENCES,
        "$recursiveRef": st.just("#"),
        **dict.fromkeys(singles, booleans),
    }


KEYWORDS = st.sampled_from([*_keywords(st.just({}), "draft-07"), "$id", "$anchor", "$defs", "definitions", "id", "a"])


@st.composite
def _schema(draw: Any, draft: str, depth: int = 0) -> dict[str, Any]:
    inner = st.just({}) if depth > 1 else st.deferred(lambda: _schema(draft, depth + 1))
    keywords = _keywords(inner, draft)
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True))
    schema = {keyword: draw(keywords[keyword]) for keyword in chosen}
    if depth == 0:
        schema = {"$schema": URIS[draft], **schema, "definitions": {"a": draw(inner), "b": draw(inner)}}
    return schema


ODD: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "a", "#", "object", "array", {}, []]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYWORDS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("draft", URIS)
@given(ODD)
def test_a_schema_is_malformed_when_the_meta_schema_of_its_draft_says_so(draft: str, source: Any) -> None:
    dialect = next(one for one in DIALECTS if one.name == draft)
    library = LIBRARY.get(draft, jsonschema.Draft202012Validator)
    assert (malformed(dialect, source) is None) == library(library.META_SCHEMA).is_valid(source)


VALUES = st.recursive(
    st.sampled_from([None, 0, 1, 2, 3, "a"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=2) | st.lists(inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("draft", LIBRARY)
@given(data=st.data())
def test_an_upgraded_schema_judges_as_the_original(data: st.DataObject, draft: str) -> None:
    source = data.draw(_schema(draft))
    try:
        check_schema(source, draft)
    except SchemaError:
        return
    body, name = upgrade(source)
    assert name == draft
    ours, theirs = validator_of(localise(body)), LIBRARY[draft](source)
    for value in data.draw(st.lists(VALUES, min_size=1, max_size=4)):
        assert ours.is_valid(value) == theirs.is_valid(value)
