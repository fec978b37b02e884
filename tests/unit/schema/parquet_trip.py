"""A record's way through Parquet and back, compared leaf by leaf, and random schemas of all that has a column type."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from pipeline.schema.arrow import arrow_field
from pipeline.schema.storage import Column, stored


def through_parquet(column: Column, records: Sequence[Any], *, all_nullable: bool = False) -> list[Any]:
    """The records as plain PyArrow reads them, after a check that the file's schema is that of the column."""
    schema = pa.schema([arrow_field("record", column, all_nullable=all_nullable)])
    rows = [{"record": stored(column, record, all_nullable=all_nullable)} for record in records]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    back = pq.read_table(sink)
    back.validate(full=True)
    assert back.schema.equals(schema)
    return [row["record"] for row in back.to_pylist()]


def assert_same(column: Column, back: Any, value: Any) -> None:
    """What was read says exactly what the value said."""
    if column.kind == "json":
        assert identical(json.loads(back), value)
    elif value is None:
        assert back is None
    elif column.kind == "list":
        assert column.item
        assert len(back) == len(value)
        for one, other in zip(back, value, strict=True):
            assert_same(column.item, one, other)
    elif column.kind == "struct":
        assert list(back) == [name for name, _ in column.fields]
        assert value.keys() <= back.keys()
        for name, child in column.fields:
            if name in value:
                assert_same(child, back[name], value[name])
            else:
                assert back[name] is None
    else:
        types = {"integer": int, "number": float, "decimal": Decimal, "date": date, "boolean": bool, "string": str}
        assert type(back) is types[column.kind]
        assert back == value if column.kind == "number" else plain(back) == plain(value)


def plain(value: Any) -> Any:
    """Numbers as the exact decimals that JSON shows, dates as text."""
    if isinstance(value, bool | str):
        return value
    return value.isoformat() if isinstance(value, date) else Fraction(repr(value) if type(value) is float else value)


def identical(one: Any, other: Any) -> bool:
    """Equality that tells True from 1 and 1.0 from 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# --- random schemas with values that are valid under them, though not all of them fit a column

Sample = tuple[Any, st.SearchStrategy[Any]]

_TEXT = st.text(max_size=6) | st.text(alphabet="a\x00\ud800😀", max_size=3)
_BIG = st.integers(-(10**41), 10**41) | st.integers(-9, 9).map(float) | st.sampled_from([2**63, -(2**63), 1e18, 1e40])
_CENTS = st.integers(-(10**12), 10**12).map(lambda n: float(f"{n}e-2")) | st.sampled_from([10**36, 1e22, 5, -0.0, 7.1])
_JSON = st.none() | st.booleans() | _BIG | _TEXT | st.dictionaries(_TEXT, st.lists(_BIG, max_size=2), max_size=2)
_MOMENTS = st.datetimes().map(lambda moment: f"{moment.isoformat()[:19]}.123456789+01:00")
_DAYS = st.dates().map(date.isoformat)
DEFS = {
    "money": {"type": "number", "multipleOf": 0.01},
    "base": {"properties": {"id": {"type": "string"}, "on": {"type": "string", "format": "date"}}, "required": ["id"]},
}
_SCALARS: list[Sample] = [
    ({"type": "string"}, _TEXT),
    ({"type": "integer"}, _BIG.filter(lambda n: float(n).is_integer())),
    ({"type": "integer", "maximum": 10**30}, st.integers(-(10**40), 10**30)),
    ({"type": "integer", "minimum": -(10**50)}, st.integers(-(10**50), 10**50)),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | _BIG),
    ({"type": "number", "multipleOf": 0.5}, st.integers(-(10**9), 10**9).map(lambda n: n / 2)),
    ({"type": "number", "multipleOf": 5}, st.integers(-(10**20), 10**20).map(lambda n: n * 5)),
    ({"$ref": "#/$defs/money", "minimum": -(10**37)}, _CENTS),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "string", "format": "date"}, _DAYS),
    (
        {"type": ["string", "null"], "format": "date-time"},
        st.none() | _MOMENTS,
    ),
    ({"enum": ["EUR", "USD", None]}, st.sampled_from(["EUR", "USD", None])),
    ({"enum": [1, 2**70]}, st.sampled_from([1, 1.0, 2**70])),
    ({"enum": [0.5, 2**53 + 1]}, st.sampled_from([0.5, 2**53 + 1])),
    ({"const": [1, {"a": None}]}, st.just([1, {"a": None}])),
    ({"type": ["string", "integer"]}, _TEXT | _BIG.map(int)),
    ({"oneOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}, st.sampled_from(["a", "b", None])),
    ({"anyOf": [{"type": "string", "format": "date"}, {"enum": ["", "n/a"]}]}, _DAYS | st.sampled_from(["", "n/a"])),
    ({"type": "object"}, st.dictionaries(_TEXT, _JSON, max_size=2)),
    ({"type": "object", "properties": {}, "additionalProperties": False}, st.just({})),
    ({}, _JSON),
    ({"type": "null"}, st.none()),
    ({"type": "array", "prefixItems": [{"type": "string"}]}, st.tuples(_TEXT).map(list)),
]


def _array(sample: Sample) -> Sample:
    return {"type": "array", "items": sample[0]}, st.lists(sample[1], max_size=3)


def _nullable(sample: Sample) -> Sample:
    return {"anyOf": [sample[0], {"type": "null"}]}, st.none() | sample[1]


@st.composite
def _object(draw: Callable[..., Any], inner: st.SearchStrategy[Sample]) -> Sample:
    """A closed object in one of the spellings that authors use: plain, or put together from a base."""
    members = draw(st.dictionaries(st.text(max_size=5), inner, min_size=1, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    values = {name: sample[1] for name, sample in members.items()}
    needed = {name: values.pop(name) for name in required}
    own = {"properties": {name: sample[0] for name, sample in members.items()}, "required": required}
    kind = draw(st.sampled_from(["plain", "plain", "allOf", "ref"]))
    if kind == "plain":
        return {"type": "object", **own, "additionalProperties": False}, st.fixed_dictionaries(needed, optional=values)
    based = {name: what for name, what in needed.items() if name not in ("id", "on")}
    rest = {name: what for name, what in values.items() if name not in ("id", "on")}
    own["properties"] = {name: what for name, what in own["properties"].items() if name not in ("id", "on")}
    own["required"] = list(based)
    base = {"$ref": "#/$defs/base"}
    joined = {"allOf": [base, own]} if kind == "allOf" else {**base, **own}
    strategy = st.fixed_dictionaries({"id": _TEXT, **based}, optional={"on": _DAYS, **rest})
    return {"type": "object", **joined, "unevaluatedProperties": False}, strategy


_NESTED = st.recursive(
    st.sampled_from(_SCALARS), lambda inner: inner.map(_array) | inner.map(_nullable) | _object(inner), max_leaves=6
)


@st.composite
def schema_and_values(draw: Callable[..., Any]) -> tuple[dict[str, Any], list[Any]]:
    """A schema of a closed object, and some values that are valid under it."""
    schema, values = draw(_object(_NESTED))
    return {**schema, "$defs": DEFS}, draw(st.lists(values, min_size=1, max_size=3))
