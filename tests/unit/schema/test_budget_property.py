"""No legal record is shorter than the shortest that a budget knows, or longer than the longest."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.models import cached_model, load_tokenizer
from pipeline.errors import EngineError
from pipeline.schema.budget.measure import Budget, budget
from pipeline.schema.budget.meter import Meter
from pipeline.schema.probe.draw import Drawer, covered_by
from pipeline.schema.registry import document_schema, load_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.source import Source

SCHEMAS = Path(__file__).parents[3] / "schemas"

SLACK = 2
"""Tokens by which a legal record may be shorter than `shortest_tokens`: see docs/budget.md."""

Pair = tuple[dict[str, Any], Any]
"""A schema with bounds everywhere, and a longest value of it."""

_WORDS = st.sampled_from(
    ["a", "total", "unit price", "é", "中文", 'say "hi"', "\\", "x" * 40, "", "\n", "code-execution"]
)
_PATTERNS = [
    ("^[0-9]{4}-[0-9]{2}$", "2024-12"),
    ("^[a-zé]{0,6}$", "é" * 6),
    ("^(MYR|EUR|a longer one)?$", "a longer one"),
    ('^["\\\\]{2}x$', '""x'),
    ("^.{3}$", "\x01" * 3),
]


def _string(length: int) -> Pair:
    return {"type": "string", "minLength": length // 2, "maxLength": length}, "\x01" * length


_LEAVES: st.SearchStrategy[Pair] = st.one_of(
    st.integers(0, 40).map(_string),
    st.sampled_from(_PATTERNS).map(lambda item: ({"type": "string", "pattern": item[0]}, item[1])),
    st.lists(_WORDS, min_size=1, max_size=4).map(lambda words: ({"enum": words}, max(words, key=_written))),
    st.integers(1, 10**30).map(lambda most: ({"type": "integer", "minimum": -most, "maximum": most}, -most)),
    st.integers(0, 4).map(
        lambda n: ({"type": "number", "minimum": 0, "maximum": 99, "multipleOf": 10**-n}, 99 - 0.1**n)
    ),
    st.just(({"type": "boolean"}, False)),
    st.just(({"type": "null"}, None)),
)


def _array(pair: Pair, most: int) -> Pair:
    return {"type": "array", "items": pair[0], "minItems": most // 2, "maxItems": most}, [pair[1]] * most


def _object(members: dict[str, Pair], count: int) -> Pair:
    schemas = {name: pair[0] for name, pair in members.items()}
    schema = {"type": "object", "properties": schemas, "required": list(members)[:count], "additionalProperties": False}
    return schema, {name: pair[1] for name, pair in members.items()}


def _either(one: Pair, other: Pair) -> Pair:
    return {"anyOf": [one[0], other[0]]}, max(one[1], other[1], key=_written)


BOUNDED = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(_array, inner, st.integers(0, 4)),
        st.builds(_object, st.dictionaries(_WORDS, inner, max_size=4), st.integers(0, 4)),
        st.builds(_either, inner, inner),
    ),
    max_leaves=8,
)


def _written(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def octets(text: str) -> int:
    return len(text.encode())


def quarters(text: str) -> int:
    return math.ceil(len(text) / 4)


def words(text: str) -> int:
    """Runs of letters and of other marks, six characters at most, like a tokenizer that joins what is alike."""
    count, last, run = 0, "", 0
    for char in text:
        kind = "a" if char.isalpha() else "0" if char.isdigit() else "."
        run = run + 1 if kind == last and run < 6 else 1
        count, last = count + (run == 1), kind
    return count


@cache
def _tokenizer() -> Any:
    try:
        model = cached_model()
    except EngineError:
        pytest.skip("the embedded model is not installed")
    if not model.is_dir():
        pytest.skip("the embedded model is not converted yet")
    return load_tokenizer(str(model))


def real(text: str) -> int:
    return len(_tokenizer().encode(text, add_special_tokens=False))


def _check(body: dict[str, Any], found: Budget, count: Callable[[str], int], records: list[Any]) -> None:
    source = Source(body)
    for record in records:
        if not source.accepts("", record):
            continue
        text = canonical_text(source, record)
        tokens = count(text) + 1
        assert tokens >= found.shortest_tokens - SLACK, (text, found.shortest_text)
        if found.worst_tokens is not None and found.worst_bytes is not None:
            assert tokens <= found.worst_tokens, text
            assert len(text.encode()) <= found.worst_bytes, text


def _drawn(body: dict[str, Any], seed: int, most: int = 25) -> list[Any]:
    drawer = Drawer(read(body), random.Random(seed))
    return [drawn.value for drawn in covered_by(drawer, most)] + [drawer.draw(spare=0).value for _ in range(5)]


@pytest.mark.parametrize("count", [octets, quarters, words], ids=lambda count: count.__name__)
@settings(max_examples=60)
@given(pair=BOUNDED, seed=st.integers(0, 99))
def test_legal_records_lie_between_shortest_and_worst(count: Callable[[str], int], pair: Pair, seed: int) -> None:
    body, longest = pair
    found = budget(read(body), body, count)
    assert found.unbounded_at == ()
    assert Source(body).accepts("", json.loads(found.shortest_text))
    _check(body, found, count, [longest, *_drawn(body, seed)])


@settings(max_examples=40)
@given(pair=BOUNDED, seed=st.integers(0, 99))
def test_the_real_tokenizer_agrees(pair: Pair, seed: int) -> None:
    body, longest = pair
    found = budget(read(body), body, real)
    _check(body, found, real, [longest, *_drawn(body, seed, 12)])


@pytest.mark.parametrize("name", ["advisory@1", "package@1", "receipt@1"])
def test_the_schemas_of_the_repository_have_budgets(name: str) -> None:
    schema = load_schema(SCHEMAS, name)
    body = dict(schema.body)
    found = budget(read(body), body, real, examples=[example.record for example in schema.examples])
    assert found.calibrated_by == "examples" and found.skipped_samples == 0
    assert found.worst_tokens is not None
    assert found.shortest_tokens <= found.typical_tokens <= found.p99_tokens <= found.worst_tokens
    _check(body, found, real, _drawn(body, 1, 100))


def test_handed_schemas_have_true_budgets(shared: Path) -> None:
    with (shared / "data/schemas/jsonschemabench_300.jsonl").open(encoding="utf-8") as file:
        schemas = [json.loads(line)["schema"] for line in file][::25]
    for number, schema in enumerate(schemas):
        body = dict(document_schema(schema, "handed@1").body)
        found = budget(read(body), body, words)
        assert (found.worst_tokens is None) == bool(found.unbounded_at)
        _check(body, found, words, _drawn(body, number, 40))


def test_counting_is_bounded() -> None:
    calls: list[int] = []

    def count(text: str) -> int:
        calls.append(len(text))
        return len(text)

    names = [f"k{number}" for number in range(100)]
    enums = {name: {"enum": [f"member {name} {number}" for number in range(40)]} for name in names}
    body = {"type": "object", "properties": enums, "required": names, "additionalProperties": False}
    found = budget(read(body), body, count, [{name: f"member {name} 7" for name in names}] * 1000)
    assert found.sample_count == 500
    assert len(calls) < 3000
    meter = Meter(octets, calls=2, characters=5)
    assert [meter.tokens(text) for text in ("abc", "abcd", "ab", "abc", "x")] == [3, None, 2, 3, None]
