"""Which keywords count as sites, and which site an error is of."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.schema.probe.sites import Judge, sites
from pipeline.schema.validator import validator_of

NODE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"label": {"type": "string", "minLength": 1}, "next": {"$ref": "#/$defs/node"}},
            "required": ["label"],
            "additionalProperties": False,
        },
        "unused": {"type": "string", "pattern": "a"},
    },
    "$ref": "#/$defs/node",
}


def test_sites_are_those_that_the_root_leads_to_each_once() -> None:
    node = "/$defs/node"
    assert set(sites(NODE)) == {
        (node, "type"),
        (node, "required"),
        (node, "additionalProperties"),
        (f"{node}/properties/label", "type"),
        (f"{node}/properties/label", "minLength"),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"required": [], "minLength": 0, "minItems": 0, "minProperties": 0, "uniqueItems": False},
        {"title": "a", "x-note": 1, "made-up": {"type": "string"}, "format": "made-up"},
        {"properties": {}, "allOf": [{}], "additionalProperties": True, "items": {}, "then": False, "minContains": 2},
        {"type": ["object", "array", "string", "number", "boolean", "null"]},
        {"if": {"type": "string"}},
    ],
)
def test_what_refuses_nothing_is_no_site(schema: dict[str, Any]) -> None:
    assert sites(schema) == ()


def test_a_keyword_of_another_type_and_a_type_beside_its_constants_are_no_sites() -> None:
    assert sites({"type": "integer", "minLength": 3, "items": {"type": "string"}}) == (("", "type"),)
    assert sites({"type": "string", "enum": ["a", "b"]}) == (("", "enum"),)
    assert sites({"type": "string", "enum": ["a", 1]}) == (("", "type"), ("", "enum"))


def test_what_reports_as_a_whole_is_one_site() -> None:
    body = {"not": {"type": "string", "minLength": 3}, "contains": {"const": 1}, "if": {"minItems": 1}, "then": False}
    assert set(sites(body)) == {("", "not"), ("", "contains"), ("", "then")}


UNION = {
    "anyOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "size": {"type": "integer"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "name": {"minLength": 2}}, "required": ["kind"]},
        {"type": "null"},
    ]
}


def test_the_type_of_a_branch_belongs_to_the_union() -> None:
    found = set(sites(UNION))
    assert ("", "anyOf") in found and not {("/anyOf/0", "type"), ("/anyOf/2", "type")} & found
    assert ("/anyOf/0/properties/size", "type") in found


@pytest.mark.parametrize(
    ("value", "site"),
    [
        ({"kind": "b", "name": "x"}, ("/anyOf/1/properties/name", "minLength")),
        ({"kind": "a", "size": "x"}, ("/anyOf/0/properties/size", "type")),
        ({"kind": "c"}, ("", "anyOf")),
        (1, ("", "anyOf")),
    ],
)
def test_an_error_of_a_union_is_of_the_branch_that_was_meant(value: Any, site: tuple[str, str]) -> None:
    judge = Judge(UNION, frozenset(sites(UNION)))
    assert judge.sites(validator_of(UNION).iter_errors(value)) == {site}


def test_a_branch_that_is_false_is_no_trouble() -> None:
    body = {"anyOf": [False, {"type": "object", "dependentRequired": {"a": ["b"]}}]}
    judge = Judge(body, frozenset(sites(body)))
    assert judge.sites(validator_of(body).iter_errors(1)) == {("", "anyOf")}
    assert judge.sites(validator_of({**body, "not": False}).iter_errors(1)) == {("", "anyOf")}


def test_counts_of_contains_are_sites_of_their_own() -> None:
    body = {"contains": {"const": 1}, "minContains": 2, "maxContains": 3}
    judge = Judge(body, frozenset(sites(body)))
    assert judge.sites(validator_of(body).iter_errors([1])) == {("", "minContains")}
    assert judge.sites(validator_of(body).iter_errors([1, 1, 1, 1])) == {("", "maxContains")}
