"""Older drafts become 2020-12 without a change of language; what is no known draft is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.dialects import DIALECTS, DRAFT_2020_12, malformed
from pipeline.schema.references import localise
from pipeline.schema.registry import check_schema
from pipeline.schema.upgrade import upgrade
from pipeline.schema.validator import validator_of

URIS = {dialect.name: dialect.uri for dialect in DIALECTS}


def upgraded(draft: str, **schema: Any) -> dict[str, Any]:
    body, name = upgrade({"$schema": URIS[draft], **schema})
    assert name == draft
    assert body.pop("$schema") == DRAFT_2020_12.uri
    assert malformed(DRAFT_2020_12, body) is None
    return body


def refused(schema: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        upgrade(schema)
    return caught.value


@pytest.mark.parametrize("draft", URIS)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("end", ["", "#"])
def test_a_draft_is_known_by_http_and_https_with_and_without_a_fragment(draft: str, scheme: str, end: str) -> None:
    uri = f"{scheme}://{URIS[draft].partition('://')[2]}{end}"
    assert upgrade({"$schema": uri, "type": "object"})[1] == draft


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/draft-03/schema#",
        "http://json-schema.org/schema#",
        "https://example.com/mine",
        "draft-07",
        "ftp://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-07/schema#x",
        "",
        None,
        7,
        ["http://json-schema.org/draft-07/schema#"],
        {},
    ],
)
def test_every_other_draft_is_refused_by_name(uri: Any) -> None:
    error = refused({"$schema": uri})
    assert error.code == "unknown_draft"
    assert repr(uri) in str(error)


@pytest.mark.parametrize(
    ("draft", "old", "new"),
    [
        ("draft-04", {"id": "http://x/y", "type": "object"}, {"$id": "http://x/y", "type": "object"}),
        ("draft-04", {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ("draft-04", {"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ("draft-04", {"const": 1, "contains": {}, "propertyNames": {}, "if": {}, "then": False}, {}),
        ("draft-04", {"examples": {"a": 1}, "deprecated": "yes", "$id": 5, "$defs": 5}, {}),
        ("draft-06", {"const": 1, "if": {}, "then": False}, {"const": 1}),
        ("draft-07", {"if": {}, "then": False}, {"if": {}, "then": False}),
        ("draft-07", {"items": [{}, False], "additionalItems": False}, {"prefixItems": [{}, False], "items": False}),
        ("draft-07", {"items": {"type": "null"}, "additionalItems": False}, {"items": {"type": "null"}}),
        ("draft-07", {"additionalItems": False}, {}),
        (
            "draft-07",
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}, "e": False}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}, "e": False}},
        ),
        (
            "draft-07",
            {"definitions": {"a": {}}, "$ref": "#/definitions/a", "type": "null", "title": "t", "x-y": 1},
            {"definitions": {"a": {}}, "$ref": "#/definitions/a", "title": "t", "x-y": 1},
        ),
        ("draft-07", {"prefixItems": [False], "dependentRequired": {"a": ["b"]}, "$anchor": "a"}, {}),
        ("2019-09", {"dependencies": {"a": ["b"]}, "prefixItems": [False]}, {}),
        ("2019-09", {"items": [{"$ref": "#/items/0/x"}, {}]}, None),
        ("2019-09", {"properties": {"a": {"$recursiveRef": "#"}}}, {"properties": {"a": {"$ref": "#"}}}),
        (
            "2019-09",
            {"$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#", "minProperties": 1}}},
            {"properties": {"a": {"minProperties": 1, "$ref": "#"}}},
        ),
        (
            "2019-09",
            {"contains": {"const": 1}, "maxContains": 2, "unevaluatedItems": False},
            {
                "unevaluatedItems": False,
                "allOf": [{"not": {"not": {"contains": {"const": 1}, "maxContains": 2}}}],
            },
        ),
    ],
)
def test_what_the_drafts_write_differently(draft: str, old: dict[str, Any], new: dict[str, Any] | None) -> None:
    if new is None:
        assert refused({"$schema": URIS[draft], **old}).code == "bad_ref"
    else:
        assert upgraded(draft, **old) == new


def test_keywords_are_only_rewritten_where_schemas_are() -> None:
    data = {"id": "x", "items": [1], "dependencies": {"a": ["b"]}, "$ref": "#/nowhere"}
    old = {"properties": {"id": {"default": data}, "items": {"enum": [data]}}, "required": ["id"]}
    assert upgraded("draft-04", **old) == old


@pytest.mark.parametrize(
    ("reference", "moved"),
    [
        ("#/items/1", "#/prefixItems/1"),
        ("#/additionalItems", "#/items"),
        ("#/dependencies/a/items/0", "#/dependentSchemas/a/prefixItems/0"),
        ("#/definitions/items/items", "#/definitions/items/items"),
        ("#named", "#/definitions/items"),
        ("#/properties", "#/definitions/properties"),
        ("#/$defs/own", "#/definitions/own"),
        ("#/properties/plain", "#/properties/plain"),
        ("#/definitions/an%20odd~1name", "#/definitions/an_odd_name"),
    ],
)
def test_references_follow_what_they_point_to(reference: str, moved: str) -> None:
    body = upgraded(
        "draft-07",
        items=[{}, {"type": "null"}],
        additionalItems={"type": "string"},
        dependencies={"a": {"items": [{}]}},
        definitions={"items": {"$id": "#named", "items": {}}, "an odd/name": {}},
        properties={"plain": {}, "by": {"$ref": reference}},
        **{"$defs": {"own": {}}},
    )
    assert body["properties"]["by"] == {"$ref": moved}
    assert localise(body) == body


@pytest.mark.parametrize(
    ("schema", "draft"),
    [
        ({"type": "object"}, "2020-12"),
        ({"dependencies": {"a": ["b"]}, "additionalItems": False, "id": "x", "definitions": {"a": {}}}, "2020-12"),
        ({"items": [{"type": "null"}], "additionalItems": False}, "2019-09"),
        ({"properties": {"a": {"$recursiveRef": "#"}}}, "2019-09"),
        ({"definitions": {"a": {"$id": "#a"}}, "properties": {"x": {"$ref": "#a"}}}, "draft-07"),
        ({"minimum": 0, "exclusiveMinimum": True}, "draft-04"),
    ],
)
def test_without_schema_the_newest_draft_that_it_can_be(schema: Any, draft: str) -> None:
    body, name = upgrade(schema)
    assert name == draft
    assert "$schema" not in body
    assert draft != "2020-12" or body == schema
    assert malformed(DRAFT_2020_12, body) is None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$schema": URIS["draft-04"], "properties": {"a": {"required": True}}}, "draft-03"),
        ({"$schema": URIS["draft-04"], "properties": {"a": {"type": "any"}}}, "type"),
        ({"$schema": URIS["draft-04"], "properties": {"a": {"type": [{"type": "null"}]}}}, "$.properties.a.type"),
        ({"$schema": URIS["draft-04"], "exclusiveMinimum": True}, "minimum"),
        ({"$schema": URIS["draft-04"], "minimum": 1, "exclusiveMinimum": 1}, "boolean"),
        ({"$schema": URIS["draft-04"], "not": True}, "draft-04"),
        ({"$schema": URIS["draft-07"], "exclusiveMinimum": True}, "exclusiveMinimum"),
        ({"$schema": URIS["draft-04"], "properties": {"a": {"$ref": 5}}}, "/properties/a"),
        ({"$schema": URIS["2020-12"], "items": [{}]}, "2020-12"),
        ({"items": [{}], "exclusiveMinimum": True}, "2020-12"),
        ({"$schema": URIS["draft-07"], "properties": {"a": {"$ref": "#/x/y"}}, "x": {"y": {"type": 5}}}, "type"),
    ],
)
def test_a_schema_is_judged_by_its_own_draft(schema: Any, words: str) -> None:
    error = refused(schema)
    assert error.code == "malformed"
    assert words in str(error)


def test_one_document_has_one_draft() -> None:
    inner = {"$id": "http://x/inner", "$schema": URIS["draft-04"], "type": "object"}
    assert refused({"$schema": URIS["draft-07"], "definitions": {"a": inner}}).code == "unknown_draft"
    same = {**inner, "$schema": URIS["draft-07"] + "#"}
    assert upgraded("draft-07", definitions={"a": same}) == {"definitions": {"a": {"type": "object"}}}


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "2020-12"])
def test_a_long_array_of_mixed_values_takes_no_quadratic_time(draft: str) -> None:
    values = [index if index % 2 else str(index) for index in range(60_000)]
    assert upgrade({"$schema": URIS[draft], "enum": values})[0]["enum"] == values
    assert refused({"$schema": URIS[draft], "required": values}).code == "malformed"


EXCEPTIONS = {
    "optional/format/": "how exact the format checks are is a matter of the validator, not of the draft",
    "optional/content.json": "contentMediaType and contentEncoding are annotations since 2019-09",
    "optional/dependencies-compatibility.json": "2019-09 has no `dependencies`; heeding it is an option of validators",
}


def test_the_official_groups_of_older_drafts_are_judged_as_they_say(shared: Path) -> None:
    drafts = {"draft7": "draft-07", "draft2019-09": "2019-09"}
    judged, refusals = 0, []
    lines = (shared / "data/schemas/json_schema_test_suite.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for group in map(json.loads, lines):
        if group["draft"] not in drafts or not isinstance(group["schema"], dict):
            continue
        if any(part in group["id"] for part in EXCEPTIONS):
            continue
        schema = {"$schema": URIS[drafts[group["draft"]]], **group["schema"]}
        try:
            check_schema(schema, group["id"])
        except SchemaError as error:
            refusals.append((error.code, group["id"]))
            continue
        validator = validator_of(localise(upgrade(schema)[0]))
        for test in group["tests"]:
            assert validator.is_valid(test["data"]) == test["valid"], (group["id"], test["description"])
            judged += 1
    assert judged > 1000
    local = [(code, identifier) for code, identifier in refusals if "emote" not in identifier]
    assert local == [
        (
            "ambiguous_dynamic_ref",
            "tests/draft2019-09/recursiveRef.json#multiple dynamic paths to the $recursiveRef keyword",
        )
    ]
    assert all(code in ("bad_ref", "ambiguous_dynamic_ref") for code, _ in refusals)
