"""What whole edits add up to, what may be used again, where pointers lead, and that hostile schemas end."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pipeline.schema.drift import drift, to_json, worst
from pipeline.schema.registry import Example
from tests.unit.schema.test_drift_kinds import (
    ARRAY,
    NULL,
    OBJECT,
    TEXT,
    WHOLE,
    B,
    C,
    N,
    T,
    W,
    compared,
    loaded,
    only,
    record,
)

SHUT = {"unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("old", "new", "language", "readers", "model"),
    [
        (record(a=TEXT), record("b", a=TEXT, b=TEXT), B, W, B),  # a new required field: new key, old records lack it
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, B, W, B),  # no reader breaks, but neither set holds the other
        (record(a=TEXT), record(a={"anyOf": [TEXT, NULL]}), W, B, W),
        (record(a={"type": ["string", "null"]}), record(a={"anyOf": [NULL, TEXT]}), C, C, T),
        (record(a={**TEXT, "title": "A"}), record(a={**TEXT, "title": "B"}), C, C, T),
        ({"not": {"enum": ["a", "b"]}}, {"not": {"enum": ["a"]}}, W, W, W),
        ({"not": {"not": {"enum": ["a", "b"]}}}, {"not": {"not": {"enum": ["a"]}}}, N, N, N),
        ({"if": {"minLength": 1}, "then": TEXT}, {"if": {"minLength": 2}, "then": TEXT}, B, W, B),
        (
            {"if": {"minLength": 1}, "then": {"maxLength": 1}},
            {"if": {"minLength": 1}, "then": {"maxLength": 2}},
            W,
            W,
            W,
        ),
        ({**ARRAY, "contains": TEXT, "maxContains": 2}, {**ARRAY, "contains": {}, "maxContains": 2}, B, B, B),
        ({"oneOf": [{"minLength": 1}, {"maxLength": 3}]}, {"oneOf": [{"minLength": 1}, {"maxLength": 4}]}, B, W, B),
        ({"prefixItems": [TEXT], "items": WHOLE}, {"prefixItems": [TEXT, WHOLE], "items": WHOLE}, C, C, T),
        ({"prefixItems": [TEXT], "items": False}, {"prefixItems": [TEXT, WHOLE], "items": False}, W, W, W),
        ({"exclusiveMinimum": 1}, {"minimum": 1}, W, W, W),
        ({"type": "integer"}, {"type": ["integer", "string"], "maxLength": 3}, W, B, W),
        ({"allOf": [TEXT]}, TEXT, C, C, T),
        # a property that allows anything is nothing new, unless something asks what was evaluated
        ({"allOf": [{"properties": {}}, {}], **SHUT}, {"allOf": [{"properties": {"a": {}}}, {}], **SHUT}, B, W, B),
        ({"allOf": [{"properties": {}}, {}]}, {"allOf": [{"properties": {"a": {}}}, {}]}, C, W, T),
        ({"unevaluatedItems": False, **ARRAY}, {"unevaluatedItems": False, **ARRAY, "prefixItems": [{}]}, B, W, B),
        ({**SHUT, "maxProperties": 1}, {**SHUT, "maxProperties": 2}, W, W, W),
        (ARRAY, {"unevaluatedItems": False, **ARRAY}, N, N, N),
        ({"allOf": [{"minLength": 1}, {"maxLength": 2}]}, {"allOf": [{"maxLength": 2}, {"minLength": 1}]}, C, C, T),
    ],
)
def test_what_whole_edits_add_up_to(old: Any, new: Any, language: str, readers: str, model: str) -> None:
    found = compared(old, new)
    assert (found.language, found.readers, found.model) == (language, readers, model)


def test_what_stands_beside_the_schema_is_a_retest() -> None:
    body = record(a=TEXT)
    for kind, values in (
        ("instructions", {"instructions": "Be brief."}),
        ("few_shot", {"examples": (Example("t", {}),)}),
    ):
        found = drift(loaded(body), loaded(body, **values))
        assert [change.kind for change in found.changes] == [kind]
        assert (found.language, found.readers, found.model, worst(found)) == (C, C, T, T)
        assert found.same_grammar and not found.same_prompt and not found.same_recordings


def test_what_may_be_used_again_is_said() -> None:
    same = compared(record(a=TEXT), record(a=TEXT))
    assert (same.changes, worst(same)) == ((), C)
    assert same.same_grammar and same.same_prompt and same.same_recordings
    told = compared(record(a=TEXT), record(a={**TEXT, "description": "x"}))
    assert told.same_grammar and not told.same_recordings
    moved = compared(record(a=TEXT, b=TEXT), record(b=TEXT, a=TEXT))
    assert not moved.same_grammar
    own = drift(loaded(record(a=TEXT)), loaded({**record(a=TEXT), "additionalProperties": False}))
    assert [change.kind for change in own.changes] == ["closing"]
    assert own.same_prompt and own.same_grammar and not own.same_recordings  # recordings go by the file's digest


def test_pointers_lead_to_the_place_and_values_are_short() -> None:
    body = {**record(**{"a/b": {"$ref": "#/$defs/place"}}), "$defs": {"place": {"enum": ["x" * 99, "y" * 99]}}}
    new = json.loads(json.dumps(body).replace("yyy", "zzz", 1))
    change = only(compared(body, new), "enum_added")
    assert change.pointer == "/$defs/place/enum"
    assert len(only(compared(body, {**body, "title": "t" * 999}), "annotation").after) <= 160
    added = only(compared(record(**{"a/b": TEXT}), record(**{"a/b": TEXT, "c~d": TEXT})), "property_added")
    assert (added.pointer, added.before, added.after) == ("/properties/c~0d", "", '{"type":"string"}')
    deep = compared(record(a={**ARRAY, "items": record(b=TEXT)}), record(a={**ARRAY, "items": record(b=WHOLE)}))
    assert only(deep, "column_type").pointer == "/a/*/b"


def test_a_renamed_definition_and_recursion_are_no_change_of_meaning() -> None:
    def tree(name: str, leaf: Any) -> Any:
        node = record(value=leaf, children={**ARRAY, "items": {"$ref": f"#/$defs/{name}"}})
        return {"$ref": f"#/$defs/{name}", "$defs": {name: node}}

    assert compared(tree("node", TEXT), tree("knot", TEXT)).language == C
    assert compared(tree("node", TEXT), tree("knot", {"enum": ["a"]})).language == N
    assert compared(tree("node", TEXT), tree("knot", TEXT)).readers == C


def test_a_rename_is_only_guessed_where_it_is_the_one_explanation() -> None:
    many = compared(record(a=TEXT, b=TEXT), record(c=TEXT, d=TEXT))
    assert not [change for change in many.changes if change.kind == "renamed?"]
    one = only(compared(record(a=TEXT), record(b={**TEXT, "title": "B"})), "renamed?")
    assert (one.before, one.after) == ('"a"', '"b"')


def test_json_holds_everything() -> None:
    found = compared(record(a=TEXT), record(a=WHOLE))
    shown = json.loads(json.dumps(to_json(found)))
    assert shown["worst"] == shown["language"] == B
    assert shown["changes"][0].keys() >= {"pointer", "kind", "before", "after", "language", "readers", "model", "why"}


def cycle(length: int, **more: Any) -> dict[str, Any]:
    """Definitions that lead to each other in a ring."""
    ring = {
        f"d{i}": {**OBJECT, "properties": {"a": {"$ref": f"#/$defs/d{(i + 1) % length}"}}, **more}
        for i in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": ring}


def chain(length: int, **last: Any) -> dict[str, Any]:
    """Arrays of arrays of arrays, each a definition."""
    links: dict[str, Any] = {f"d{i}": {**ARRAY, "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{length}": last}}


def wide(count: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"properties": {f"p{i}": {"type": kind} for i in range(count)}, **more}


@pytest.mark.parametrize(
    ("old", "new", "language"),
    [
        (cycle(7), cycle(5), C),  # unrolled differently, the same values
        (cycle(999, required=[f"r{i}" for i in range(50)]), cycle(997, required=[f"r{i}" for i in range(50)]), B),
        (chain(3000, type="string"), chain(3000, type=["string", "null"]), W),
        (wide(20_000, "string"), wide(20_000, "string", title="t"), C),
        (wide(20_000, "string"), wide(20_000, "integer"), B),
        ({"enum": list(range(50_000))}, {"enum": list(range(1, 50_000))}, N),
        ({"anyOf": [{"const": i} for i in range(9000)]}, {"anyOf": [{"const": i} for i in range(9001)]}, W),
        ({**ARRAY, "prefixItems": [True] * 90_000}, {**ARRAY, "prefixItems": [True] * 90_001}, C),
        ({"pattern": "(a+)+$", "properties": {"a" * 5000 + "!": {}}}, {"patternProperties": {"(a+)+$": {}}}, B),
    ],
    ids=["unrolled", "entangled", "deep", "wide", "wide-changed", "enum", "union", "tuple", "pattern"],
)
def test_hostile_schemas_are_compared_in_bounded_time(old: Any, new: Any, language: str) -> None:
    started = time.process_time()
    found = compared(old, new)
    assert found.language == language
    assert time.process_time() - started < 30  # the slowest took 5 s on a busy machine of two cores
    assert all(len(change.before) <= 160 and len(change.pointer) < 6000 for change in found.changes)


def test_references_without_progress_end() -> None:
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    found = drift(loaded(loop, close=False), loaded({**loop, "title": "t"}, close=False))
    assert found.model == T
