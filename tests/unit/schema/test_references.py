"""Whatever a reference inside one file is written like, it becomes a plain pointer to what it means, or is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.references import localise
from pipeline.schema.registry import check_schema
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import descend, resolve

PLAIN = re.compile(r"#(/[A-Za-z0-9_.$-]+)*")


def refused(schema: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        localise(schema)
    return caught.value


def meaning(schema: dict[str, Any]) -> Any:
    """What the reference of the property `by` leads to, after everything was made plain."""
    body = localise(schema)
    assert_plain(body)
    return resolve(body, body["properties"]["by"]["$ref"])


def assert_plain(body: dict[str, Any]) -> None:
    nodes = {pointer: node for pointer, node in descend(body) if isinstance(node, dict)}
    for pointer, node in nodes.items():
        assert not {"$anchor", "$dynamicAnchor", "$dynamicRef"} & node.keys()
        assert pointer == "" or "$id" not in node
        if "$ref" in node:
            assert PLAIN.fullmatch(node["$ref"])
            assert node["$ref"][1:] in {place for place, _ in descend(body)}
    assert localise(body) == body


def test_a_plain_schema_stays_as_it_is() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/s",
        "$defs": {"b": {"type": "null"}, "a": {"properties": {"$ref": {"$ref": "#"}}}},
        "properties": {"z": {"$ref": "#/$defs/b", "title": "t"}, "a": {"items": {"$ref": "#/properties/z"}}},
        "enum": [{"$ref": "#nowhere", "$id": "x", "$anchor": "y"}],
    }
    assert json.dumps(localise(schema)) == json.dumps(schema)


@pytest.mark.parametrize(
    ("reference", "rest"),
    [
        ("#here", {"$defs": {"a": {"$anchor": "here", "const": 1}}}),
        ("#here", {"$defs": {"a": {"$dynamicAnchor": "here", "const": 1}}}),
        ("#%68ere", {"$defs": {"a": {"$anchor": "here", "const": 1}}}),
        ("https://x/root#/$defs/a", {"$id": "https://x/root", "$defs": {"a": {"const": 1}}}),
        ("root#/$defs/a", {"$id": "https://x/root", "$defs": {"a": {"const": 1}}}),
        ("/root#here", {"$id": "https://x/root#", "$defs": {"a": {"$anchor": "here", "const": 1}}}),
        ("a.json", {"$defs": {"a": {"$id": "a.json", "const": 1}}}),
        ("a.json#", {"$defs": {"a": {"$id": "a.json", "const": 1}}}),
        ("https://x/d/a.json", {"$id": "https://x/d/root", "$defs": {"a": {"$id": "a.json", "const": 1}}}),
        ("a.json#/$defs/b", {"$defs": {"a": {"$id": "a.json", "$defs": {"b": {"const": 1}}}}}),
        ("a.json#in", {"$defs": {"a": {"$id": "a.json", "not": {"$anchor": "in", "const": 1}}}}),
        ("urn:x:1#here", {"$id": "urn:x:1", "$defs": {"a": {"$anchor": "here", "const": 1}}}),
        ("#/$defs/a%20b~1c~0d%25e", {"$defs": {"a b/c~d%e": {"const": 1}}}),
        ("#/$defs/é", {"$defs": {"é": {"const": 1}}}),
        ("#/$defs/a/anyOf/1", {"$defs": {"a": {"anyOf": [{}, {"const": 1}]}}}),
        ("#/components/schemas/X", {"components": {"schemas": {"X": {"const": 1}}}}),
        ("#/components/0", {"components": [{"const": 1}]}),
        ("#/dependencies/x", {"dependencies": {"x": {"const": 1}}}),
        ("#/enum/0", {"enum": [{"const": 1}]}),
    ],
)
def test_a_reference_of_any_form_means_what_it_meant(reference: str, rest: dict[str, Any]) -> None:
    assert meaning({"properties": {"by": {"$ref": reference}}, **rest}) == {"const": 1}


def test_the_root_by_its_own_name_is_the_root() -> None:
    schema = {"$id": "https://x/root", "properties": {"by": {"$ref": "https://x/root"}, "also": {"$ref": "root#"}}}
    assert localise(schema)["properties"] == {"by": {"$ref": "#"}, "also": {"$ref": "#"}}


def test_a_name_in_an_embedded_resource_is_not_the_one_outside() -> None:
    inner = {"$id": "inner", "$defs": {"a": {"const": "inner"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    body = localise({"$defs": {"a": {"const": "outer"}, "i": inner}, "$ref": "inner"})
    assert body["$defs"]["i"]["properties"]["x"] == {"$ref": "#/$defs/i/$defs/a"}
    assert body["$ref"] == "#/$defs/i"


def test_copies_keep_their_own_references_and_need_no_copy_twice() -> None:
    schemas = {
        "X": {"items": {"$ref": "#/components/schemas/Y"}},
        "Y": {"anyOf": [{}, {"$ref": "#/components/schemas/X"}]},
    }
    schema = {
        "properties": {"x": {"$ref": "#/components/schemas/X"}, "y": {"$ref": "#/components/schemas/X/items"}},
        "components": {"schemas": schemas},
        "$defs": {"Y": {"const": "mine"}},
    }
    body = localise(schema)
    assert_plain(body)
    assert body["$defs"] == {
        "Y": {"const": "mine"},
        "X": {"items": {"$ref": "#/$defs/Y_2"}},
        "Y_2": {"anyOf": [{}, {"$ref": "#/$defs/X"}]},
    }
    assert body["properties"] == {"x": {"$ref": "#/$defs/X"}, "y": {"$ref": "#/$defs/X/items"}}


def test_definitions_with_odd_names_get_plain_ones() -> None:
    list_of = {"items": {"$ref": "#/$defs/List%3CT%3E"}}
    body = localise(
        {"$defs": {"List<T>": list_of, "42": {}}, "allOf": [{"$ref": "#/$defs/List%3CT%3E"}, {"$ref": "#/$defs/42"}]}
    )
    assert body == {
        "$defs": {"42": {}, "List_T": {"items": {"$ref": "#/$defs/List_T"}}},
        "allOf": [{"$ref": "#/$defs/List_T"}, {"$ref": "#/$defs/42"}],
    }


TREE = {"$dynamicAnchor": "node", "properties": {"children": {"items": {"$dynamicRef": "#node"}}}}


@pytest.mark.parametrize(
    ("schema", "pointer", "reference"),
    [
        (TREE, "/properties/children/items", "#"),
        ({"$defs": {"t": {"$id": "tree", **TREE}}}, "/$defs/t/properties/children/items", "#/$defs/t"),
        (
            {"$dynamicAnchor": "node", "$defs": {"t": {"$id": "tree", **TREE}}},
            "/$defs/t/properties/children/items",
            "#",
        ),
        ({"$anchor": "node", "not": {"$dynamicRef": "#node"}}, "/not", "#"),
        ({"not": {"$dynamicRef": "#/$defs/a"}, "$defs": {"a": {}}}, "/not", "#/$defs/a"),
    ],
)
def test_a_dynamic_reference_with_one_meaning_becomes_a_plain_one(schema: Any, pointer: str, reference: str) -> None:
    body = localise(schema)
    assert_plain(body)
    assert resolve(body, f"#{pointer}") == {"$ref": reference}


def test_a_dynamic_reference_beside_a_plain_one_keeps_both() -> None:
    body = localise({**TREE, "$defs": {"a": {}, "b": {"$ref": "#/$defs/a", "$dynamicRef": "#node", "allOf": [{}]}}})
    assert body["$defs"]["b"] == {"$ref": "#/$defs/a", "allOf": [{}, {"$ref": "#"}]}


def test_a_dynamic_reference_with_several_meanings_is_refused() -> None:
    defs = {"t": {"$id": "tree", **TREE}, "u": {"$id": "other", "$dynamicAnchor": "node"}}
    assert refused({"$defs": defs, "$ref": "tree"}).code == "ambiguous_dynamic_ref"


@pytest.mark.parametrize(
    "reference",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/$defs/a",
        "/$defs/a",
        "$defs/a",
        "#/$defs/missing",
        "#/$defs/list/enum/00",
        "#/$defs/list/enum/1",
        "#/$defs/list/enum",
        "#/$defs/list/title",
        "#nowhere",
        "#/definitely not",
        "twice",
        "#twice",
        "http://[",
        "#inside",
    ],
)
def test_a_reference_to_what_is_not_one_schema_of_the_file_is_refused(reference: str) -> None:
    defs = {
        "list": {"enum": [{}], "title": "t"},
        "one": {"$id": "twice", "not": {"$id": "u:1"}},
        "two": {"$id": "twice"},
        "three": {"$anchor": "twice"},
        "four": {"$anchor": "twice"},
        "five": {"$id": "five", "not": {"$anchor": "inside"}},
    }
    error = refused({"$defs": defs, "properties": {"x": {"$ref": reference}}})
    assert error.code == "bad_ref"
    assert "/properties/x" in str(error)
    assert repr(reference) in str(error)


def test_the_official_groups_on_references_are_judged_as_they_say(shared: Path) -> None:
    """Those of 2020-12; older drafts are in `test_upgrade`. Some refer to other documents."""
    judged = 0
    refusals: dict[str, list[str]] = {}
    lines = (shared / "data/schemas/json_schema_test_suite.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for group in map(json.loads, lines):
        if not re.search(r"2020-12/(optional/)?(ref|dynamicRef|anchor|id|unknownKeyword|defs)\.json", group["id"]):
            continue
        try:
            check_schema(group["schema"], "t")
        except SchemaError as error:
            refusals.setdefault(error.code, []).append(group["id"])
            continue
        body = localise(group["schema"])
        assert_plain(body)
        for test in group["tests"]:
            assert validator_of(body).is_valid(test["data"]) == test["valid"], (group["id"], test["description"])
            judged += 1
    assert judged >= 70
    assert {code: len(groups) for code, groups in refusals.items()} == {"bad_ref": 4, "ambiguous_dynamic_ref": 3}
