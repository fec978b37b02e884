"""The token budget: shortest, typical and longest record in tokens, and what it says about a job's max_tokens."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from pipeline.schema.budget.letters import number_characters
from pipeline.schema.budget.measure import Budget, budget
from pipeline.schema.probe.minimal import TooLargeError
from pipeline.schema.shape.policy import Policy, apply
from pipeline.schema.shape.read import read

TEXT = {"type": "string"}


def quarters(text: str) -> int:
    """A tokenizer of four characters a token."""
    return math.ceil(len(text) / 4)


def octets(text: str) -> int:
    """A tokenizer of one byte a token."""
    return len(text.encode("utf-8", "surrogatepass"))


def closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def made(body: dict[str, Any], count: Any = octets, **records: Any) -> Budget:
    return budget(read(body), body, count, **records)


def test_the_shortest_record_has_only_what_is_required_and_the_end_token() -> None:
    found = made(closed(["a"], a=TEXT, b=TEXT))
    assert found.shortest_text == '{"a":""}'
    assert found.shortest_tokens == len('{"a":""}') + 1


def test_members_of_few_tokens_beat_members_of_few_characters() -> None:
    def count(text: str) -> int:
        return len(text.replace("international", "i"))

    found = made(closed(a={"enum": ["zqxv", "international"]}), count)
    assert found.shortest_text == '{"a":"international"}'


def test_options_of_few_tokens_beat_options_of_few_characters() -> None:
    def count(text: str) -> int:
        return len(text.replace("international", "i"))

    inner = {"anyOf": [closed(abc=TEXT), closed(international={"type": "null"})]}
    assert made(closed(a=inner), lambda text: count(text.replace("null", "n"))).shortest_text == (
        '{"a":{"international":null}}'
    )


def test_a_shortest_string_is_filled_with_what_the_tokenizer_joins() -> None:
    def count(text: str) -> int:
        return len(text.replace(" " * 10, " "))

    found = made(closed(a={"type": "string", "minLength": 20, "maxLength": 30}), count)
    assert found.shortest_text == '{"a":"' + " " * 20 + '"}'


def test_a_sample_shorter_than_what_was_made_up_is_the_shortest() -> None:
    record = {"a": "xyz"}

    def count(text: str) -> int:
        return 1 if "xyz" in text else len(text)

    assert made(closed(a=TEXT), count, samples=[record]).shortest_tokens == 2


def test_recursion_ends_where_it_may() -> None:
    tree = {"$defs": {"t": closed(v={"type": "integer"}, n={"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]})}}
    assert made({**tree, "$ref": "#/$defs/t"}).shortest_text == '{"v":0,"n":null}'


@pytest.mark.parametrize("count", [lambda text: 1, lambda text: max(1, 500 - len(text)), lambda text: 0])
def test_a_count_that_makes_no_sense_still_gives_a_budget(count: Any) -> None:
    tree = {"$defs": {"t": closed(n={"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]})}, "$ref": "#/$defs/t"}
    assert made(tree, count).shortest_tokens >= 1


def test_what_is_too_large_to_write_is_said() -> None:
    body: dict[str, Any] = {"type": "integer"}
    for _ in range(5):
        body = {"type": "array", "items": body, "minItems": 100}
    with pytest.raises(TooLargeError, match="characters"):
        made(body)
    with pytest.raises(TooLargeError, match="no record"):
        made({"type": "string", "minLength": 3, "maxLength": 2})


def test_bounded_shapes_have_a_longest_record() -> None:
    body = closed(a={"enum": ["one", "three"]}, b={"type": "array", "items": {"type": "boolean"}, "maxItems": 3})
    longest = '{"a":"three","b":[false,false,false]}'
    found = made(body)
    assert found.unbounded_at == ()
    assert found.worst_tokens is not None and len(longest) + 1 <= found.worst_tokens <= len(longest) + 4


@pytest.mark.parametrize(
    "schema, longest",
    [
        ({"type": "string", "maxLength": 7}, '"' + r"\u0001" * 7 + '"'),
        ({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}, '"2024-12"'),
        ({"type": "string", "pattern": "^[a-zé]+$", "maxLength": 5}, '"ééééé"'),
        ({"type": "string", "pattern": '^["x]{3}$'}, r'"\"\"\""'),
        ({"type": "string", "pattern": r"^[\n]{2}$"}, r'"\n\n"'),
        ({"type": "integer", "minimum": -5, "maximum": 1200}, "-1200"),
        ({"type": "number", "minimum": 0, "maximum": 100, "multipleOf": 0.01}, "100.01"),
        ({"enum": ["x" * 40, "y"]}, '"' + "x" * 40 + '"'),
        ({"type": "null"}, "null"),
    ],
)
def test_leaves_are_bounded_by_their_bytes(schema: dict[str, Any], longest: str) -> None:
    assert made(schema).worst_bytes == octets(longest)


@pytest.mark.parametrize("number", [1e-10, 1.5e-9, -2.25e-300, 5e-324, 1e-7])
def test_constants_are_bounded_as_they_are_spelled_not_as_they_are_shown(number: float) -> None:
    spelled = format(Decimal(repr(number)), "f")
    found = made({"const": [number]})
    assert found.shortest_text == f"[{spelled}]"
    assert len(spelled) + 2 <= (found.worst_bytes or 0) <= len(spelled) + 10


def test_a_limit_on_the_number_of_keys_counts() -> None:
    pair = closed([], a={"const": "x" * 100}, b={"const": "y"})
    assert (made({**pair, "maxProperties": 1}).worst_tokens or 0) < (made(pair).worst_tokens or 0)


def test_numbers_without_bounds_count_as_25_characters() -> None:
    for body in ({"type": "number"}, {"type": "integer", "minimum": 0}):
        assert made(body).worst_bytes == 25 and made(body).unbounded_at == ()
    assert made({"type": "integer"}).to_json()["number_characters_assumed"] == 25
    (huge,) = read({"type": "integer", "minimum": 10**40}).named.values()
    assert number_characters(huge) >= 41  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "schema, at",
    [
        (TEXT, ""),
        ({"type": "string", "pattern": "^a+$"}, ""),
        ({"type": "string", "minLength": 3}, ""),
        ({"type": "array", "items": {"type": "null"}}, ""),
        ({"type": ["array", "null"], "items": {"type": "null"}}, ""),
        ({"type": "object"}, ""),
        ({"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 3}, ""),
        ({}, ""),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "/anyOf/1"),
        (closed([], b=TEXT), "/properties/b"),
        ({"type": "array", "maxItems": 2, "items": TEXT}, "/items"),
        ({"type": "array", "prefixItems": [TEXT], "items": False}, "/prefixItems/0"),
    ],
)
def test_what_has_no_bound_is_named(schema: dict[str, Any], at: str) -> None:
    found = made(closed(**{"a/b": schema}))
    assert (found.worst_tokens, found.worst_bytes) == (None, None)
    assert found.unbounded_at == (f"/properties/a~1b{at}",)


def test_every_place_without_a_bound_is_named_once() -> None:
    line = closed(name=TEXT, count={"type": "integer"})
    body = {**closed(lines={"type": "array", "items": {"$ref": "#/$defs/line"}}, x={"$ref": "#/$defs/line"})}
    found = made({**body, "$defs": {"line": line}})
    assert found.unbounded_at == ("/$defs/line/properties/name", "/properties/lines")


@pytest.mark.parametrize("step", [{"$ref": "#"}, closed(m={"anyOf": [{"$ref": "#"}, {"type": "null"}]})])
def test_recursion_has_no_bound(step: dict[str, Any]) -> None:
    body = closed(n={"anyOf": [{"type": "null"}, step]})
    found = made(body)
    assert found.worst_tokens is None and len(found.unbounded_at) == 1
    assert all(pointer.startswith("/properties/n") or pointer == "" for pointer in found.unbounded_at)


def test_shapes_that_double_at_every_level_take_no_time() -> None:
    levels = {f"d{n}": closed([], a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(40)}
    found = made({"$ref": "#/$defs/d0", "$defs": {**levels, "d40": {"type": "boolean"}}})
    assert found.shortest_text == "{}" and found.worst_tokens is not None and found.worst_tokens > 2**40


def test_narrowing_bounds_what_had_no_bound() -> None:
    body = closed(a=TEXT, b={"type": "array", "items": TEXT})
    shapes, _ = apply(read(body), Policy(max_items=2, max_length=10))
    found = budget(shapes, body, octets)
    assert found.worst_bytes == len('{"a":"","b":["",""]}') + 3 * 60 + 2  # and two commas at most


def test_bounds_that_multiply_too_far_count_as_none() -> None:
    body: dict[str, Any] = {"type": "integer"}
    for _ in range(40):
        body = {"type": "array", "items": body, "maxItems": 10**6}
    found = made(body)
    assert found.worst_tokens is None
    assert all(pointer.endswith("/items") for pointer in found.unbounded_at)
    json.dumps(found.to_json())


def test_percentiles_come_from_samples_and_examples() -> None:
    records = [{"a": "x" * length} for length in range(1, 101)]
    found = made(closed(a=TEXT), samples=records[:99], examples=records[99:])
    base = len('{"a":""}') + 1
    assert (found.calibrated_by, found.sample_count) == ("samples", 100)
    assert (found.typical_tokens, found.p99_tokens) == (base + 50, base + 99)
    assert found.recommended_tokens == 2 * (base + 99)
    assert made(closed(a=TEXT), examples=records[:2]).calibrated_by == "examples"


def test_without_records_some_are_drawn_and_said_to_be() -> None:
    found = made(closed(a={"enum": ["x", "yy"]}))
    assert found.calibrated_by == "drawn" and found.sample_count > 0
    assert found.p99_tokens <= len('{"a":"yy"}') + 1
    assert found == made(closed(a={"enum": ["x", "yy"]}))


def test_only_legal_records_are_drawn() -> None:
    body = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2, "uniqueItems": True}
    assert made(body).p99_tokens == len("[1,2]") + 1


def test_weird_records_are_skipped_and_counted() -> None:
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)
    weird = [None, {"a": 1}, {"a": {1, 2}}, float("nan"), {"a": "\ud800"}, {1: "x"}, b"x", deep, loop, {"a": "fine"}]
    found = made(closed(a=TEXT), samples=weird)
    assert (found.sample_count, found.skipped_samples) == (1, 9)


def test_numbers_survive_json() -> None:
    found = json.loads(json.dumps(made(closed(a=TEXT), samples=[{"a": "x"}, 3]).to_json()))
    assert found["shortest_text"] == '{"a":""}' and found["unbounded_at"] == ["/properties/a"]
    assert (found["worst_tokens"], found["sample_count"], found["skipped_samples"]) == (None, 1, 1)
