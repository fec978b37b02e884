"""Edges of what is written: ranges without a value, enums too long beside null, patterns that take too long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.probe.instances import instances
from pipeline.schema.registry import document_schema, load_schema
from pipeline.schema.shape.read import read
from pipeline.schema.transport import BACKENDS, transport_of


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


NO_WHOLE_NUMBER = (
    {"type": "integer", "multipleOf": 1.5, "minimum": 1, "maximum": 2},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6},
    {"type": "integer", "minimum": 1.2, "maximum": 1.8},
    {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 1, "exclusiveMaximum": 1.5},
)


@pytest.mark.parametrize("number", NO_WHOLE_NUMBER, ids=json.dumps)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_range_without_a_value_is_no_value(number: dict[str, Any], backend: str) -> None:
    assert not transport_of(document_schema(closed(n=number), "t@1").body, backend).satisfiable
    optional = {**closed(a={"type": "string"}, n=number), "required": ["a"]}
    written = json.loads(transport_of(document_schema(optional, "t@1").body, backend).text)
    assert list(written["properties"]) == ["a"]
    beside = closed(n={"anyOf": [number, {"type": "null"}]})
    written = json.loads(transport_of(document_schema(beside, "t@1").body, backend).text)
    assert written["properties"]["n"] == {"type": "null"}


def test_a_long_enum_is_widened_whatever_stands_beside_it() -> None:
    members = [f"code-{number:06d}" for number in range(20_000)]
    for extra in ([], [None], [None, 7, True]):
        transport = transport_of(document_schema(closed(c={"enum": [*members, *extra]}), "t@1").body, "xgrammar")
        assert len(transport.text) < 1000
        assert ("/properties/c", "enum") in {(left.pointer, left.keyword) for left in transport.left}


def test_a_pattern_that_takes_too_long_costs_its_own_site() -> None:
    slow = {"enum": ["b", "a" * 40 + "!"], "type": "string", "pattern": "^(a|aa)+$|^b$"}
    transport = transport_of(document_schema(closed(c=slow), "t@1").body, "guidance")
    assert transport.satisfiable
    assert any(left.pointer == "/properties/c" for left in transport.left)


@pytest.mark.parametrize("record", ['"' + "a" * 40 + '!"', "NaN", '"\\ud800"'])
def test_an_example_that_cannot_be_judged_refuses_its_schema_and_raises_nothing_else(
    record: str, tmp_path: Path
) -> None:
    folder = tmp_path / "s" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(closed(c={"pattern": "^(a|aa)+$"})))
    (folder / "examples.jsonl").write_text(f'{{"document": "x", "record": {{"c": {record}}}}}\n')
    with pytest.raises(SchemaError) as refused:
        load_schema(tmp_path, "s@1")
    assert refused.value.code == "bad_example"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "keyword",
    [
        {"type": "string", "pattern": "^(?i)abc$"},  # the validator reads it, ECMA 262 does not
        {"type": "string", "maxLength": 2**40},
        {"type": "string", "minLength": 2**33, "maxLength": 2**34},
        {"type": "integer", "minimum": int("7" * 400)},
        {"type": "number", "multipleOf": int("7" * 400)},
        {"type": "object", "patternProperties": {"^(?i)abc$": {}}, "additionalProperties": False},
        {"type": "object", "propertyNames": {"pattern": "^(?i)abc$"}},
    ],
    ids=lambda keyword: json.dumps(keyword)[:60],
)
def test_what_a_back_end_cannot_be_asked_is_left_and_neither_refuses_nor_crashes(keyword: Any, backend: str) -> None:
    body = document_schema(closed(v=keyword), "t@1").body
    transport = transport_of(body, backend)
    assert transport.satisfiable
    assert any(left.pointer.startswith("/properties/v") for left in transport.left)
    found = instances(body, read(body), 0.5)
    assert found.sites
