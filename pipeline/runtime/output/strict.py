"""The last check before Arrow, which takes 1.5 for an integer, None for what takes no null and keys that it drops.

What is found here is a fault of this program: values were judged before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.schema.storage import is_unicode
from pipeline.schema.walk import escape

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT = 2**53

Found = list[tuple[str, str]]
"""(JSON pointer into the row, what is wrong there: it completes "the value …")."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One column, or what a column holds, as it is checked. `fits` judges a leaf, `item` those of a list, `members`
    those of a struct."""

    name: str
    pointer: str
    nullable: bool
    kind: str
    fits: Callable[[Any], bool] | None = None
    item: Cell | None = None
    members: tuple[Cell, ...] | None = None


def cells_of(fields: Iterable[pa.Field]) -> tuple[Cell, ...]:
    """The checks of a schema or struct, made once: asking Arrow for its types at every value is slow."""
    return tuple(map(_cell, fields))


def _cell(field: pa.Field) -> Cell:
    import pyarrow.types as of

    kind = field.type
    place = field.name, f"/{escape(field.name)}", field.nullable, str(kind)
    if of.is_list(kind):
        return Cell(*place, item=_cell(kind.value_field))
    if of.is_struct(kind):
        return Cell(*place, members=cells_of(kind))
    if of.is_decimal128(kind):
        return Cell(*place, fits=_decimal(kind.precision, kind.scale))
    return Cell(*place, fits=_CHECKS.get(str(kind), lambda _: False))


def strict_row(row: Mapping[str, Any], cells: tuple[Cell, ...], found: Found) -> dict[str, Any]:
    """The row with exactly these columns; what does not fit is added to `found` and null in the result."""
    return _members(row, cells, "", found)


def _members(value: Mapping[str, Any], cells: tuple[Cell, ...], pointer: str, found: Found) -> dict[str, Any]:
    row = {cell.name: _strict(value.get(cell.name), cell, pointer + cell.pointer, found) for cell in cells}
    if not value.keys() <= row.keys():
        found += [(f"{pointer}/{escape(str(name))}", "has no column") for name in value if name not in row]
    return row


def _strict(value: Any, cell: Cell, pointer: str, found: Found) -> Any:
    if value is None:
        if not cell.nullable:
            found.append((pointer, "is null, which its column does not take"))
        return None
    if cell.fits is not None:
        if cell.fits(value):
            return value
    elif cell.item is not None and type(value) is list:
        item = cell.item
        return [_strict(one, item, f"{pointer}/{index}", found) for index, one in enumerate(value)]
    elif cell.members is not None and type(value) is dict:
        return _members(value, cell.members, pointer, found)
    found.append((pointer, f"is of type {type(value).__name__}, or beyond what its column of {cell.kind} holds"))
    return None


def _integer(bits: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


def _decimal(precision: int, scale: int) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        if type(value) is not Decimal or not value.is_finite():
            return False
        exponent = value.as_tuple().exponent
        return isinstance(exponent, int) and -exponent <= scale and value.adjusted() < precision - scale

    return fits


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: type(value) is str and is_unicode(value),
    "bool": lambda value: type(value) is bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "double": lambda value: type(value) is float or (type(value) is int and abs(value) <= _EXACT),
    "date32[day]": lambda value: type(value) is date,
}
