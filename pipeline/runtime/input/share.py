"""A share of rows that were cut into units before: the same rows, checked against the same scan, in units of their own.

Only the rows of these units are read, one after another; what has come to the input since is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.check import by_stamp, header_bytes, stamp
from pipeline.runtime.input.delimited import csv_header
from pipeline.runtime.input.documents import identify, schema_of
from pipeline.runtime.input.formats import Row
from pipeline.runtime.input.grouping import Group, Window
from pipeline.runtime.input.locate import Place, files_at, place_of
from pipeline.runtime.input.parquet import row_bytes
from pipeline.runtime.input.read import checked_rows
from pipeline.runtime.input.slices import columns_of
from pipeline.runtime.input.units import InputScan, Unit
from pipeline.schema.fingerprint import add_multisets, multiset_digest

_EXAMPLES = 5


def share_of(
    units: Sequence[Unit], config: InputConfig, snapshot: str, unit_documents: int | None, holds: Callable[[str], bool]
) -> InputScan:
    """The rows of these units (one at least) whose ids `holds` takes. A row that repeats an id of the whole input still
    does.

    `config` is how the units were read, `snapshot` what the scan that cut them said of the input. Grows by the units
    and by the rows of one file that are taken, 8 bytes each.

    Raises:
        InputError: a file is gone, or is not as it was when it was scanned; or no row is taken.
    """
    taken = _Taken(replace(place_of(config), base=units[0].base), config, unit_documents, holds)
    for _, near in groupby(sorted(units, key=_order), key=lambda unit: _order(unit)[:2]):
        taken.take(list(near))
    if not taken.documents:
        rows = sum(unit.rows for unit in units)
        raise InputError(f"the share holds none of the {rows} documents. Choose a larger share, or another seed.")
    return InputScan(
        units=tuple(taken.units),
        documents=taken.documents,
        ids_digest=add_multisets(unit.ids_digest for unit in taken.units),
        snapshot=snapshot,
        schema_counts=dict(taken.schemas),
        duplicate_count=sum(len(unit.duplicates) for unit in taken.units),
        duplicate_examples=tuple(taken.examples),
    )


def _order(unit: Unit) -> tuple[str, str, int]:
    """Units of one file and schema together, in the order of their rows. Text files are the rows of one list."""
    return ("" if unit.format == "text" else unit.paths[0], unit.schema, unit.start)


@dataclass
class _Taken:
    """What rows are taken by, and what was taken so far."""

    place: Place
    config: InputConfig
    unit_documents: int | None
    holds: Callable[[str], bool]
    documents: int = 0
    schemas: Counter[str] = field(default_factory=Counter)
    units: list[Unit] = field(default_factory=list)
    examples: dict[str, None] = field(default_factory=dict)

    def take(self, units: Sequence[Unit]) -> None:
        """Take the rows of units of one file and schema."""
        prefix, scale = self._of_the_file(units[0])
        window = Window(self.unit_documents, self.documents, prefix, scale)
        texts: dict[int, str] = {}
        repeated: set[int] = set()
        for path, row, key, again in self._held(units):
            if units[0].format == "text":
                texts[row.number] = path
            if again:
                repeated.add(row.number)
                if len(self.examples) < _EXAMPLES:
                    self.examples[key] = None
            groups = window.add(row, self._counted(row), int(multiset_digest((key,)), 16))
            self._cut(groups, units[0], texts, repeated)
        self._cut(window.rest(), units[0], texts, repeated)

    def _held(self, units: Sequence[Unit]) -> Iterator[tuple[str, Row, str, bool]]:
        """The path, the row, its id, and whether that is a repeated one, of the rows that are taken."""
        at = 0
        for unit in units:
            marked, places = frozenset(unit.duplicates), unit.places()
            for index, (path, row) in enumerate(checked_rows(unit, self.place, self.config)):
                key = identify(row, path, self.config)[0]
                if unit.format == "text":  # a row of a list of files
                    row = row._replace(number=unit.start + places[index], start=at, end=at + len(row.text))
                    at = row.end
                if self.holds(key):
                    yield path, row, key, index in marked

    def _of_the_file(self, unit: Unit) -> tuple[bytes, int]:
        """What a check by hash starts with, and how many bytes a step from a row's start to its end stands for."""
        if unit.format == "csv":
            return header_bytes(csv_header(self.place, unit.paths[0])), 1
        if unit.format == "parquet":
            return b"", row_bytes(self.place, unit.paths[0], columns_of(self.config))
        return b"", 1

    def _counted(self, row: Row) -> str:
        schema = schema_of(row, self.config)[0]
        self.documents += 1
        self.schemas[schema] += 1
        return schema

    def _cut(self, groups: Iterable[Group], like: Unit, texts: dict[int, str], repeated: set[int]) -> None:
        """Make units of groups; what they hold of `texts` and `repeated` is forgotten."""
        for group in groups:
            files = tuple(texts.pop(number) for number in group.numbers) if texts else like.paths
            stamped = None
            if by_stamp(like.format, self.place, self.config):
                stamped = stamp(files_at(self.place, files), self.place)
            unit = group.unit(f"{len(self.units):06d}", like.format, like.base, files, stamped)
            again = tuple(place for place, number in enumerate(group.numbers) if number in repeated)
            self.units.append(replace(unit, duplicates=again))
            repeated.difference_update(group.numbers)
