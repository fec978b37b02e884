"""The published failure cases that concern schemas: each whole kind, through the new compiler and the real matchers."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import transport_of

sys.path.insert(0, str(Path(__file__).parent.parent / "schema"))
from transport_trip import BACKENDS, REFUSED, Trip, parsed, takes

from tests.bounds import processor_seconds

BOTH = pytest.mark.parametrize("backend", BACKENDS)


@cache
def cases(shared: Path) -> dict[str, Any]:
    lines = (shared / "cases/failures.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return {case["id"]: case["input"] for case in map(json.loads, lines)}


def body_of(schema: Any) -> Any:
    return document_schema(schema, "case@1").body


def taken(schema: Any, backend: str, *values: Any) -> list[bool]:
    body = body_of(schema)
    transport = transport_of(body, backend)
    return [takes(transport.text, canonical_text(Source(body), value), backend) for value in values]


def left(schema: Any, backend: str) -> set[tuple[str, str]]:
    return {(item.pointer, item.keyword) for item in transport_of(body_of(schema), backend).left}


@pytest.mark.parametrize("depth", [4, 8, 13])
def test_f002_nested_unions_take_bounded_time_and_lose_nothing(depth: int) -> None:
    schema: Any = {"type": "integer"}
    value: Any = 1
    for _ in range(depth):
        schema = {"oneOf": [{"type": "object", "properties": {name: schema}} for name in "ab"]}
        value = {"b": value}
    with processor_seconds(30):
        transport = transport_of(body_of(schema), "guidance")
    assert transport.satisfiable
    if depth <= 8:
        assert takes(transport.text, json.dumps(value, separators=(",", ":")), "guidance")


def test_f003_an_enum_that_stalls_xgrammar_is_not_given_to_it() -> None:
    schema = {"type": "object", "properties": {"sku": {"enum": [f"code-{n:06d}" for n in range(20_000)]}}}
    assert left(schema, "xgrammar") == {("/properties/sku", "enum")}
    assert left(schema, "guidance") == set()
    assert taken(schema, "xgrammar", {"sku": "code-019999"}) == [True]


def test_f004_annotations_make_no_new_grammar(shared: Path) -> None:
    base = cases(shared)["F004"]["schema"]["base"]
    texts = {transport_of(body_of({**base, "title": f"variant {n}"}), "xgrammar").text for n in range(50)}
    assert len(texts) == 1


@BOTH
def test_f014_a_union_beside_properties_widens_nothing(shared: Path, backend: str) -> None:
    schema = cases(shared)["F014"]["schema"]
    assert left(schema, backend) == set()
    assert taken(schema, backend, {"a": 1}, "anything", {}, {"a": "x"}, {"a": 1, "b": 2}) == [True] + [False] * 4


@BOTH
def test_f015_all_branches_of_allof_hold(shared: Path, backend: str) -> None:
    schema = cases(shared)["F015"]["schema"]
    assert left(schema, backend) == set()
    assert taken(schema, backend, {"a": 1, "b": "x"}, {"a": 1}, {"b": "x"}, {}) == [True, False, False, False]


def test_f016_a_reference_that_leads_nowhere_is_refused_by_name(shared: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        body_of(cases(shared)["F016"]["schema"])
    assert caught.value.code == "bad_ref"


@BOTH
@pytest.mark.parametrize("pattern", [None, r"\bword\b", r"^(a)\1$", r"(?<=a)b", r"^(?!a).*$", r"^\p{Lu}+$"])
def test_f019_what_no_grammar_knows_is_held_or_left(shared: Path, backend: str, pattern: str | None) -> None:
    schema = {"type": "string", "pattern": pattern} if pattern else cases(shared)["F019"]["schema"]
    trip = Trip(body_of(schema), (backend,))
    for value in ["abc", "a1", "word", "a word b", "aa", "ab", "b", "ABC", "", "É"]:
        assert list(trip.faults(value)) == []


@BOTH
def test_f020_length_beside_a_pattern_and_unique_items(shared: Path, backend: str) -> None:
    schema = cases(shared)["F020"]["schema"]
    assert left(schema, backend) == {("/properties/l", "uniqueItems")}
    assert taken(schema, backend, {"c": "abc", "l": [1]}, {"c": "abcdefgh", "l": [1]}, {"c": "", "l": []}) == [
        True,
        False,
        False,
    ]


@BOTH
@pytest.mark.parametrize("pattern", ["^.*$", "", "^[^a]*$", r"^\S.*$", ".", r"^[\s\S]*$"])
def test_f021_free_text_keeps_its_quotes(shared: Path, backend: str, pattern: str) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string", "pattern": pattern}}, "required": ["title"]}
    trip = Trip(body_of(schema), (backend,))
    for title in ['5" pipe "Blue"', "b\\c", "x\ty", "😀", "é", '"', "\\", "\x1f", "line\nline"]:
        assert list(trip.faults({"title": title})) == []


@BOTH
def test_f023_branches_that_overlap_are_left(shared: Path, backend: str) -> None:
    schema = cases(shared)["F023"]["schema"]
    assert left(schema, backend) == {("", "oneOf")}
    assert taken(schema, backend, 3, 1.5, "x") == [True, True, False]


@pytest.mark.parametrize("number", ["F024", "F098"])
def test_f024_f098_what_nothing_satisfies_is_told_before_any_model_call(shared: Path, number: str) -> None:
    schema = cases(shared)[number]["schema"]
    for backend in BACKENDS:
        assert not transport_of(body_of(schema), backend).satisfiable


def test_f025_a_reference_without_end_is_refused(shared: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        body_of(cases(shared)["F025"]["schema"])
    assert caught.value.code == "endless_ref"


@BOTH
def test_f026_a_single_dynamic_anchor_is_a_reference(shared: Path, backend: str) -> None:
    schema = cases(shared)["F026"]["schema"]
    assert left(schema, backend) == set()
    assert taken(schema, backend, {}, {"k": {"k": {}}}, {"k": 5}, {"k": {"k": 5}}) == [True, True, False, False]


@BOTH
def test_f027_f028_keywords_beside_an_enum_are_judged_once(backend: str) -> None:
    schema = {"type": "string", "maxLength": 4, "enum": [f"{n:04d}" for n in range(9800)] + ["too long"]}
    assert left(schema, backend) == set()
    transport = transport_of(body_of(schema), backend)
    assert "maxLength" not in transport.text
    assert "too long" not in transport.text
    assert taken(schema, backend, "0000", "9799", "too long") == [True, True, False]


@BOTH
def test_f048_a_format_is_held_and_checked(shared: Path, backend: str) -> None:
    schema = cases(shared)["F048"]["schema"]
    body = body_of(schema)
    assert not Source(body).validator.is_valid({"t": "yesterday"})
    assert taken(schema, backend, {"t": "2024-02-29T12:00:00Z"}, {"t": "yesterday"}, {"t": ""}) == [True, False, False]


@BOTH
def test_f051_digits_are_ascii(shared: Path, backend: str) -> None:
    schema = cases(shared)["F051"]["schema"]
    assert left(schema, backend) == set()
    assert taken(schema, backend, "123", "١٢٣", "1a") == [True, False, False]


@BOTH
def test_f052_unicode_properties_are_known(shared: Path, backend: str) -> None:
    schema = cases(shared)["F052"]["schema"]
    assert left(schema, backend) == set()
    assert taken(schema, backend, {"name": "Ana"}, {"name": "Éçø中"}, {"name": "a1"}) == [True, True, False]


@BOTH
def test_f053_recursion_is_followed(shared: Path, backend: str) -> None:
    schema = cases(shared)["F053"]["schema"]
    deep: Any = {}
    for _ in range(50):
        deep = {"c": deep}
    assert taken(schema, backend, {}, deep) == [True, True]


def test_every_pair_of_the_differential_table_is_kept_or_announced(shared: Path) -> None:
    """Where a text is not canonical, its value is tried in canonical form."""
    lines = (shared / "cases/grammar_diff.jsonl").read_text(encoding="utf-8").strip().split("\n")
    rows = [row for row in map(json.loads, lines) if "schema" in row]
    tried = 0
    for row in rows:
        try:
            trip = Trip(body_of(row["schema"]))
            value = parsed(row["text"])
        except (SchemaError, ValueError):
            continue
        if value is REFUSED:
            continue
        assert list(trip.refusals()) == [], row["case"]
        assert list(trip.faults(value)) == [], row["case"]
        tried += 1
    assert tried > 50
