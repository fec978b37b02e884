"""Grouping: rows of one schema become units, without a shuffle and without holding a text.

Rows that arrive wait by schema in a window of the file; a group is cut when it is as large as a unit may be, and all
of them when the window is full. What waits are numbers, a hash and a sum, 8 bytes a row.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.runtime.input.formats import Row
from pipeline.runtime.input.locate import Format
from pipeline.runtime.input.picks import packed
from pipeline.runtime.input.units import Unit
from pipeline.schema.fingerprint import DIGEST_LENGTH, add_multisets

UNIT_BYTES = 32 << 20
"""Of a unit's rows, unless it has one only. A process holds a few units at once."""
SMALLEST, LARGEST = 32, 1000
_SHARE = 64
"""A unit has at most this part of the rows before it, so that small inputs are cut small enough to be spread."""
_WINDOW_UNITS = 16
_WINDOW_BYTES = 4 * UNIT_BYTES
"""From the first row of a window to its last one: what is read of a file for one unit, however few rows it picks."""


def size_of(fixed: int | None, before: int) -> int:
    """How many rows a unit may have that starts after so many rows of the input's units."""
    return fixed or min(LARGEST, max(SMALLEST, before // _SHARE))


@dataclass(slots=True)
class Group:
    """Rows of one schema that will be a unit. `numbers` and [`start`, `end`) are of the file; `size` is in bytes."""

    schema: str
    most: int
    check: Any
    start: int
    end: int = 0
    size: int = 0
    ids: int = 0
    numbers: array[int] = field(default_factory=lambda: array("q"))

    def places(self) -> list[int]:
        """Its rows, counted from the first one; none if they are all of the span."""
        first, last = self.numbers[0], self.numbers[-1]
        return [] if last - first + 1 == len(self.numbers) else [number - first for number in self.numbers]

    def unit(self, name: str, form: Format, base: str, paths: tuple[str, ...], stamped: str | None) -> Unit:
        """The unit of these rows, which none of its `duplicates` is told yet; `stamped` is its check if that is not the
        hash of the rows."""
        check = self.check.hexdigest()[:DIGEST_LENGTH] if stamped is None else stamped
        span: tuple[int, int, int] = self.numbers[0], self.start, self.end
        if form == "text":
            span = 0, self.numbers[0], self.numbers[-1] + 1
        ids, picks = add_multisets((f"{self.ids:x}",)), packed(self.places())
        return Unit(name, form, base, paths, len(self.numbers), *span, check, ids, self.schema, picks)


class Window:
    """The groups of one file that are growing.

    `fixed` is the size of units, None for growing ones; `before` counts the rows of the input that units have already;
    `prefix` goes before each group's bytes; `scale` is how many bytes a step from a row's start to its end stands for.
    """

    def __init__(self, fixed: int | None, before: int, prefix: bytes = b"", scale: int = 1) -> None:
        self._fixed = fixed
        self._rows = before
        self._prefix = prefix
        self._scale = scale
        self._groups: dict[str, Group] = {}
        self._complete: list[Group] = []
        self._full = self._start = 0

    def add(self, row: Row, schema: str, part: int) -> Sequence[Group]:
        """Put a row, with its part of a digest of ids, into its group. Returns the groups of a window that is over."""
        over: list[Group] = []
        if self._rows >= self._full or (row.end - self._start) * self._scale > _WINDOW_BYTES:
            over += self.rest()
        size = (row.end - row.start) * self._scale
        group = self._groups.get(schema)
        if group is not None and group.size + size > UNIT_BYTES:
            over += self._cut(schema)
            group = None
        if group is None:
            group = self._begun(row, schema)
        group.end = row.end
        group.size += size
        group.ids += part
        group.check.update(row.raw)
        group.numbers.append(row.number)
        self._rows += 1
        if len(group.numbers) == group.most:
            over += self._cut(schema)
        return over

    def rest(self) -> list[Group]:
        """All groups, by their first rows; none is left."""
        groups = sorted((*self._complete, *self._groups.values()), key=lambda group: group.numbers[0])
        self._complete, self._groups = [], {}
        return groups

    def _cut(self, schema: str) -> list[Group]:
        """Let a group be complete; with no other one that grows, the window is over."""
        self._complete.append(self._groups.pop(schema))
        return [] if self._groups else self.rest()

    def _begun(self, row: Row, schema: str) -> Group:
        size = size_of(self._fixed, self._rows)
        if not self._groups:
            self._start, self._full = row.start, self._rows + _WINDOW_UNITS * size
        group = self._groups[schema] = Group(schema, size, hashlib.sha256(self._prefix), row.start)
        return group
