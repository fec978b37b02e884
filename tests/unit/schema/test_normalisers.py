"""The syntax of `x-normalise`: what cannot be read, or would have no effect, refuses the schema when it is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.registry import document_schema


@pytest.mark.parametrize(
    "spec",
    [
        *("trim", [], {}, ["trimm"], [None], [["trim"]], [{"trim": {}}], ["decimal"], ["date"], [{}]),
        *([{"decimal": {}}], [{"decimal": {"locale": "xx"}}], [{"decimal": {"locale": "de", "digits": 2}}]),
        *(
            [{"decimal": {"locale": 5}}],
            [{"decimal": {"locale": "de", "fraction": True}}],
            ["currency", "decimal-comma"],
        ),
        *([{"decimal": {"locale": "de", "around": ["€", text]}}] for text in ("-", "−", "1", ".", ",-", "00 ")),
        *([{"date": {"locale": "en"}}], [{"date": {"locale": "de", "formats": ["dd.MM"]}}]),
        *([{"date": {"locale": "de", "formats": ["dd.MM.yy"]}}], [{"date": {"locale": "de", "pivot": 20}}]),
        *(
            [{"currency": {"default": ["EURO"]}}],
            ["trim"] * 11,
            [{"decimal": {"locale": "de"}, "date": {"locale": "de"}}],
        ),
    ],
)
def test_a_normaliser_that_cannot_be_read_refuses_the_schema(spec: Any) -> None:
    with pytest.raises(SchemaError, match="at /properties/x: x-normalise") as caught:
        document_schema({"type": "object", "properties": {"x": {"x-normalise": spec}}}, "bad@1")
    assert caught.value.code == "bad_annotation"


@pytest.mark.parametrize(
    "x",
    [
        {"type": "object", "properties": {}, "x-normalise": ["trim"]},
        {"type": "array", "x-normalise": ["trim"]},
        {"type": "boolean", "x-normalise": ["trim"]},
        {"type": "number", "x-normalise": ["currency"]},
        {"not": {"x-normalise": ["trim"]}},
        {"if": {"x-normalise": ["trim"]}, "then": {}},
        {"type": "object", "propertyNames": {"x-normalise": ["trim"]}},
    ],
)
def test_a_normaliser_without_effect_refuses_the_schema(x: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        document_schema({"type": "object", "properties": {"x": x}}, "bad@1")
    assert caught.value.code == "bad_annotation"
