"""Instances: valid ones are valid, violations are violations of their one site, and what was not found is said."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.probe.found import Instances
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.repair import repaired
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER
from pipeline.schema.validator import validator_of
from tests.bounds import processor_seconds
from tests.support import schemas


def found(body: dict[str, Any], seconds: float = 5.0) -> Instances:
    return instances(body, read(body), seconds)


def parsed(text: str) -> Any:
    return json.loads(text)


INVOICE = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"},
        "date": {"type": "string", "format": "date"},
        "total": {"type": "number", "minimum": 0, "multipleOf": 0.01},
        "currency": {"enum": ["EUR", "USD"]},
        "lines": {
            "type": "array",
            "items": {"type": "string", "minLength": 2, "maxLength": 9},
            "minItems": 1,
            "maxItems": 3,
            "uniqueItems": True,
        },
        "note": {"type": ["string", "null"]},
    },
    "required": ["number", "total", "lines"],
    "additionalProperties": False,
}


def test_every_site_of_an_everyday_schema_is_violated_alone() -> None:
    result = found(INVOICE)
    assert result.unfound == () and result.complete
    validator = validator_of(INVOICE)
    assert all(validator.is_valid(parsed(valid.text)) for valid in result.valid)
    for (pointer, keyword), violations in result.violations.items():
        for violation in violations:
            errors = list(validator.iter_errors(parsed(violation.text)))
            assert {error.validator for error in errors} == {keyword}, (pointer, violation.text)


@pytest.mark.parametrize(
    "body",
    [
        {"type": "string", "minLength": 2, "pattern": "^a*$"},
        {"type": "string", "maxLength": 5, "pattern": "^a+b$"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "ipv6"},
        {"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 0.75},
        {"type": "integer", "minimum": -3, "maximum": 12, "multipleOf": 3},
        {"type": "object", "minProperties": 2, "maxProperties": 3, "propertyNames": {"pattern": "^k"}},
        {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
        {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": False, "minItems": 1},
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": False}},
        {"type": "integer", "not": {"enum": [3, 4]}},
        {"type": "object", "required": ["a"], "properties": {"a": {"const": 7}}, "maxProperties": 1},
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "type": "object"},
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": "a"}, "n": {"minimum": 3}}, "required": ["k", "n"]},
                {"type": "object", "properties": {"k": {"const": "b"}, "s": {"minLength": 3}}, "required": ["k", "s"]},
            ]
        },
        {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2}}, "$ref": "#/$defs/t"},
    ],
    ids=lambda body: ",".join(body)[:40],
)
def test_each_kind_of_site_has_violations_and_valid_values(body: dict[str, Any]) -> None:
    result = found(body)
    assert result.unfound == ()
    assert result.valid and all(validator_of(body).is_valid(parsed(valid.text)) for valid in result.valid)


def test_neighbours_differ_from_their_base_where_they_were_aimed_at() -> None:
    result = found({"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}, "b": {"type": "null"}}})
    pairs = [(result.valid[valid.base], valid) for valid in result.valid if valid.base is not None]
    assert any(len(parsed(valid.text)["a"]) == 4 for _, valid in pairs if valid.aim == ("/properties/a", "maxLength"))
    for base, valid in pairs:
        if valid.aim is not None and valid.aim[0] == "/properties/a":
            before, after = parsed(base.text), parsed(valid.text)
            assert {**before, "a": after["a"]} == after


def test_a_site_that_cannot_be_violated_alone_is_unfound_not_dropped_from_the_list() -> None:
    result = found({"type": "string", "maxLength": 4, "minLength": 2, "enum": ["abc"]})
    assert set(result.unfound) <= {("", "maxLength"), ("", "minLength")} and ("", "enum") in result.violations
    assert set(result.sites) >= set(result.unfound)


def test_no_document_satisfies_it_and_nothing_hangs() -> None:
    body = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    result = found(body)
    assert read(body).root == NEVER and result.valid == () and result.complete


def test_the_same_seed_gives_the_same_instances() -> None:
    shapes = read(INVOICE)
    first, second = instances(INVOICE, shapes, 30, 3), instances(INVOICE, shapes, 30, 3)
    assert (first.valid, first.violations) == (second.valid, second.violations)


def test_time_is_bounded() -> None:
    leaf: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        leaf = {"anyOf": [{"type": "object", "properties": {f"p{n}": leaf for n in range(4)}}, {"type": "null"}]}
    with processor_seconds(8):  # reading its shapes is part of it
        result = instances(leaf, read(leaf), 0.02)
    assert not result.complete


@pytest.mark.parametrize(
    ("body", "value", "valid"),
    [
        ({"items": {"items": {}, "uniqueItems": True}}, [[1, 1, True, 2, 1.0]], [[1, True, 2, 1.0]]),
        ({"required": ["a", "b"]}, {"b": 1}, {"b": 1, "a": 0}),
        ({"contains": {"const": 3}}, [1], [1, 3]),
        ({"contains": {"enum": [3]}, "minContains": 2}, [3], [3, 3]),
        ({"anyOf": [{"type": "null"}, {"required": ["a"]}]}, {}, {"a": 0}),
    ],
)
def test_simple_faults_are_repaired(body: dict[str, Any], value: Any, valid: Any) -> None:
    assert repaired(value, list(validator_of(body).iter_errors(value))) == valid


def test_what_is_not_simple_is_not_repaired() -> None:
    assert repaired("a", list(validator_of({"type": "null"}).iter_errors("a"))) is None


_KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"]),
    "enum": st.lists(st.sampled_from([1, 1.5, "a", None, True, [], {}, {"a": 1}]), min_size=1, max_size=3),
    "minLength": st.integers(0, 4),
    "maxLength": st.integers(0, 4),
    "pattern": st.sampled_from(["a", "^a+$", "^(a|b)c?$", "(?=a)b", "\\d{2}", ""]),
    "format": st.sampled_from(["date", "uri", "email", "regex", "unknown"]),
    "minimum": st.integers(-3, 3),
    "exclusiveMaximum": st.sampled_from([0.5, 4, 1e300]),
    "multipleOf": st.sampled_from([1, 0.01, 3]),
    "minItems": st.integers(0, 3),
    "maxItems": st.integers(0, 3),
    "uniqueItems": st.booleans(),
    "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
    "maxProperties": st.integers(0, 3),
    "minProperties": st.integers(0, 2),
    "dependentRequired": st.just({"a": ["b"]}),
}


def _applicators(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(st.sampled_from(["a", "b", "c/~"]), inner, max_size=3),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
        "dependentSchemas": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=1),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), some),
        **dict.fromkeys(("items", "additionalProperties", "contains", "propertyNames", "not"), inner),
        **dict.fromkeys(("if", "then", "else", "unevaluatedProperties", "unevaluatedItems"), inner),
    }
    return st.fixed_dictionaries({}, optional={**keywords, **_KEYWORDS}).map(_few)


def _few(schema: dict[str, Any]) -> dict[str, Any]:
    """At most four keywords: the rarer a conjunction can be met, the less it tries."""
    names = random.Random(len(repr(schema))).sample(sorted(schema), min(4, len(schema)))
    return {name: schema[name] for name in names}


_SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional=_KEYWORDS).map(_few) | st.just({"$ref": "#/$defs/d"}),
    _applicators,
    max_leaves=8,
)


@settings(max_examples=100)
@given(
    _SCHEMAS.filter(lambda schema: isinstance(schema, dict)), st.fixed_dictionaries({}, optional=_KEYWORDS).map(_few)
)
def test_any_schema_that_loads_has_instances_as_they_are_called(body: dict[str, Any], definition: Any) -> None:
    try:
        loaded = document_schema({**body, "$defs": {"d": definition}}, "any@1").body
    except SchemaError:
        return
    result = instances(loaded, read(loaded), 0.1)
    validator = validator_of(loaded)
    assert all(validator.is_valid(parsed(valid.text)) for valid in result.valid)
    for violations in result.violations.values():
        assert not any(validator.is_valid(parsed(violation.text)) for violation in violations)


@settings(max_examples=40)
@given(schemas())
def test_plain_schemas_leave_few_sites_unfound(sample: Any) -> None:
    result = found(sample[0])
    assert len(result.unfound) <= 0.2 * len(result.sites) + 1, result.unfound


def test_handed_schemas_mostly_have_violations_at_every_site(shared: Path) -> None:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text().splitlines()[::12]
    sites = unfound = 0
    for line in lines:
        try:
            body = document_schema(json.loads(line)["schema"], "any@1").body
        except SchemaError:
            continue
        result = instances(body, read(body), 10.0)
        assert result.seconds < 12
        sites += len(result.sites)
        unfound += len(result.unfound)
    assert sites > 500 and unfound < 0.15 * sites
