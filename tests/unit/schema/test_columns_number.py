"""Which column holds which numbers and dates, and which values it refuses rather than change."""

from __future__ import annotations

from typing import Any

import pytest
from parquet_trip import assert_same, through_parquet

from pipeline.schema.arrow import type_text
from pipeline.schema.columns import column_of
from pipeline.schema.storage import misfits

MANY = "numbers of more than 38 digits: kept as JSON text"


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ({"type": "integer", "maximum": 2**63 - 1}, "int64"),
        ({"type": "integer", "exclusiveMaximum": 2**63, "exclusiveMinimum": -(2**63) - 1}, "int64"),
        ({"type": "integer", "maximum": 2**63}, "decimal128(38, 0)"),
        ({"type": "integer", "minimum": 0, "maximum": 1.8446744073709552e19}, "decimal128(38, 0)"),
        ({"type": "integer", "minimum": -(10**38) + 1}, "decimal128(38, 0)"),
        ({"type": "integer", "maximum": 10**38}, MANY),
        ({"type": "integer", "allOf": [{"maximum": 10**40}, {"maximum": 7}]}, "int64"),
        ({"enum": [1, 2**64]}, "decimal128(38, 0)"),
        ({"enum": [1, 2**64], "type": "integer", "maximum": 10**50}, "decimal128(38, 0)"),
        ({"const": 10**38}, MANY),
        ({"enum": [0.5, 2**53 + 1]}, "numbers that no 64-bit float holds exactly: kept as JSON text"),
        ({"type": "number", "multipleOf": 0.01}, "decimal128(38, 2)"),
        ({"type": ["number", "null"], "multipleOf": 0.5}, "decimal128(38, 1)"),
        ({"type": "number", "multipleOf": 1e-7}, "decimal128(38, 7)"),
        ({"type": "number", "multipleOf": 2.50}, "decimal128(38, 1)"),
        ({"type": "number", "multipleOf": 1e-18}, "decimal128(38, 18)"),
        ({"type": "number", "multipleOf": 1e-19}, "double"),
        ({"type": "number", "multipleOf": 5}, "int64"),
        ({"type": "number", "multipleOf": 1.0, "maximum": 10**20}, "decimal128(38, 0)"),
        ({"type": "number", "multipleOf": 0.01, "maximum": 10**36 - 1}, "decimal128(38, 2)"),
        ({"type": "number", "multipleOf": 0.01, "maximum": 10**36}, MANY),
        ({"type": "integer", "multipleOf": 0.01}, "int64"),
        ({"type": "number", "allOf": [{"multipleOf": 0.1}, {"multipleOf": 0.25}]}, "decimal128(38, 1)"),
    ],
)
def test_numbers_have_the_column_that_holds_them_exactly(schema: Any, arrow: str) -> None:
    column = column_of(schema)
    assert (column.note or type_text(column)) == arrow


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "integer"}, 2**63, "64 bits"),
        ({"type": "integer"}, 1e19, "64 bits"),
        ({"type": "integer"}, 2.0**53, "fewer digits"),
        ({"type": "integer"}, 1e17, "fewer digits"),  # which integer was written there, nobody can tell
        ({"type": "integer", "maximum": 10**30}, 10**38, "38 digits"),
        ({"type": "number"}, 2**53 + 1, "float"),
        ({"type": "number"}, 10**400, "float"),
        ({"type": "number", "multipleOf": 0.01}, 10**36, "36 digits"),
        ({"type": "number", "multipleOf": 0.01}, 123456789012345678.25, "fewer digits"),
        ({"type": "string", "format": "date"}, "0000-01-01", "YYYY-MM-DD"),
        ({"type": "string", "format": "date"}, "2024-1-01", "YYYY-MM-DD"),
        ({"type": "string", "format": "date"}, "20240101", "YYYY-MM-DD"),
        ({"type": "string", "format": "date"}, "2024-01-01\n", "YYYY-MM-DD"),
        ({"type": "array", "items": {"type": "integer"}}, [1.0, -0.0, 2], None),
        ({}, 10**400, None),
        ({"type": "integer"}, 2**63 - 1, None),
        ({"type": "integer"}, 2.0**53 - 1, None),
        ({"type": "number"}, 2**60, None),
        ({"type": "number", "multipleOf": 0.01}, 10**36 - 1, None),
        ({"type": "string", "format": "date"}, "9999-12-31", None),
        ({"type": "string", "format": "date"}, "0001-01-01", None),
    ],
)
def test_values_that_a_column_cannot_hold_are_named_and_others_stored(schema: Any, value: Any, reason: Any) -> None:
    column = column_of(schema)
    found = list(misfits(column, value))
    assert [words for _, words in found if reason in words] if reason else found == []
    if not reason:
        (back,) = through_parquet(column, [value])
        assert_same(column, back, value)
