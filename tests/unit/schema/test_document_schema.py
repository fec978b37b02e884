"""Document schemas of every origin: real ones, values in memory, single files, and what older drafts become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.registry import DRAFT, Example, document_schema, load_file
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import descend

GOOD: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def cases(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return [json.loads(line) for line in lines]


def test_real_schemas_load_and_judge_as_their_labels_say(shared: Path) -> None:
    refused, closed_off = [], 0
    for case in cases(shared):
        try:
            schema = document_schema(case["schema"], case["id"])
        except SchemaError as error:
            refused.append(error.code)
            assert case["id"] in str(error)
            continue
        closed, plain = validator_of(schema.body), validator_of(opened(schema.body, schema.closed))
        for test in case["tests"]:
            assert plain.is_valid(test["data"]) == test["valid"]
            closed_off += plain.is_valid(test["data"]) and not closed.is_valid(test["data"])
    assert refused == ["bad_ref"]  # it refers to the meta-schema of draft-04
    assert closed_off < 30  # of 395 valid records, those with keys that nobody declared


def opened(body: Any, closed: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(body))
    nodes = dict(descend(copy))
    for pointer in closed:
        del nodes[pointer]["additionalProperties"]
    return copy


def test_a_draft_is_a_way_of_writing() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"$ref": "#/x/y"}],
        "x": {"y": GOOD},
    }
    new = {"$schema": DRAFT, "type": "array", "prefixItems": [{"$ref": "#/definitions/y"}], "x": {"y": GOOD}}
    schema = document_schema(old, "t@1")
    assert schema.digest == document_schema({**new, "definitions": {"y": GOOD}}, "u@1").digest
    assert schema.closed == ("/definitions/y",)
    assert not validator_of(schema.body).is_valid([{"a": 1, "b": 2}])


def test_a_value_in_memory_is_copied_and_its_examples_are_checked() -> None:
    source = {**GOOD, "properties": {"a": {"type": "integer"}}}
    schema = document_schema(source, "t@1", instructions="Read.", examples=[Example("x", {"a": 1})])
    source["properties"]["a"]["type"] = "null"
    assert schema.body["properties"]["a"] == {"type": "integer"}
    assert (schema.instructions, len(schema.examples)) == ("Read.", 1)
    with pytest.raises(SchemaError, match="example 2") as caught:
        document_schema(GOOD, "t@1", examples=[Example("x", {"a": 1}), Example("y", {})])
    assert caught.value.code == "bad_example"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("receipt.json", "receipt@0"),
        ("my orders (2).json", "my_orders_2_@0"),
        ("order.schema.json", "order.schema@0"),
        ("-x.json", "x@0"),
        ("é.json", "schema@0"),
        ("a" * 100 + ".json", "a" * 64 + "@0"),
    ],
)
def test_a_single_file_is_named_by_its_stem(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text(json.dumps(GOOD))
    schema = load_file(tmp_path / file)
    assert schema.name == name
    assert schema.digest == document_schema(GOOD, "x").digest


def test_a_single_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nope.json"):
        with pytest.raises(SchemaError, match="no such file") as caught:
            load_file(path)
        assert caught.value.code == "unknown_schema"
