"""Slicing the input into units, in one pass that keeps no text."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.check import by_stamp, stamp
from pipeline.runtime.input.columns import check_columns
from pipeline.runtime.input.documents import content_digest, identify, schema_of
from pipeline.runtime.input.formats import Row, chunks, text_row
from pipeline.runtime.input.grouping import Group, Window
from pipeline.runtime.input.ids import IdCount
from pipeline.runtime.input.locate import InputFile, Located, Place, locate
from pipeline.runtime.input.parquet import row_bytes
from pipeline.runtime.input.slices import columns_of, file_rows, unit_rows
from pipeline.runtime.input.units import InputScan, Unit
from pipeline.schema.fingerprint import add_multisets, digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Select = Callable[[str, str, str], bool]
"""Called with a row's id, schema and `content_digest`: whether it is to be extracted."""

MAX_SCHEMAS = 1000
"""Each has a unit at least, so a wrong column would make as many units as documents."""


def scan(config: InputConfig, unit_documents: int | None = None, select: Select | None = None) -> InputScan:
    """Slice the input into units of one schema each, and count its ids and schemas.

    A unit has at most `unit_documents` rows; without a number, units grow with the input (`grouping.size_of`). Rows
    that `select` leaves out are in no unit. Memory grows by 8 bytes per row (about 32 for a moment at the end) and by
    the units.

    Raises:
        InputError: the input is missing, empty, unreadable, mixed, lacks a column that the job names, or names more
            than MAX_SCHEMAS schemas.
    """
    located = locate(config)
    check_columns(located, config)
    taken = _Taken(located, config, unit_documents, select)
    if located.format == "text":
        _take_texts(taken)
    else:
        _take_files(taken)
    if not taken.ids.rows:
        more = f" and {len(located.files) - 1} more" if len(located.files) > 1 else ""
        raise InputError(f"the input is empty: no rows in {located.place.name(located.files[0].path)}{more}.")
    marked = _mark(taken)
    return InputScan(
        units=tuple(taken.units),
        documents=taken.documents,
        ids_digest=add_multisets(unit.ids_digest for unit in taken.units),
        snapshot=_snapshot(located, config, taken.contents),
        schema_counts=dict(taken.schemas),
        duplicate_count=len(marked),
        duplicate_examples=_examples(taken, marked.tolist()),
    )


@dataclass
class _Taken:
    """What rows are taken by, and what was taken so far. `contents` tells of each file; `reach` are, for each unit, the
    places of its first row and of its last among all rows of the input."""

    located: Located
    config: InputConfig
    unit_documents: int | None
    select: Select | None
    ids: IdCount = field(default_factory=IdCount)
    documents: int = 0
    schemas: Counter[str] = field(default_factory=Counter)
    contents: list[list[Any]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    reach: list[tuple[int, int]] = field(default_factory=list)

    def take(self, row: Row, path: str) -> tuple[str, int] | None:
        """The row's schema, and its part of the digest of ids; None if it is left out."""
        key = identify(row, path, self.config)[0]
        schema = schema_of(row, self.config)[0]
        part = self.ids.add(key)
        if self.select is not None and not self.select(key, schema, content_digest(row, self.config)):
            return None
        self.documents += 1
        self.schemas[schema] += 1
        if len(self.schemas) > MAX_SCHEMAS:
            raise InputError(
                f"column `{self.config.schema_column}` holds more than {MAX_SCHEMAS} different names of schemas, such "
                f"as {schema[:80]!r}. Is `input.schema_column` the right one?"
            )
        return schema, part

    def cut(self, group: Group, paths: tuple[str, ...], stamped: str | None, before: int) -> None:
        """Make a unit of a group. `before` counts the rows of the input before row 0 of what the group numbers."""
        numbers, base, form = group.numbers, self.located.place.base, self.located.format
        self.units.append(group.unit(f"{len(self.units):06d}", form, base, paths, stamped))
        self.reach.append((before + numbers[0], before + numbers[-1]))


def _take_files(taken: _Taken) -> None:
    """Take the rows of JSONL, CSV or Parquet."""
    located, config, place = taken.located, taken.config, taken.located.place
    for file in located.files:
        left = None if config.limit is None else config.limit - taken.ids.rows
        if left == 0:
            return
        hasher = hashlib.sha256()
        prefix, rows = file_rows(located.format, place, file.path, config, hasher, whole=taken.select is not None)
        _take_rows(taken, file, islice(rows, left), prefix)
        if located.format == "parquet" and place.local:
            for _ in chunks(place, file.path, hasher=hasher):
                continue
        taken.contents.append(_content(place, file, hasher.hexdigest()))


def _take_rows(taken: _Taken, file: InputFile, rows: Iterator[Row], prefix: bytes) -> None:
    before, path, scale, stamped = taken.ids.rows, file.path, 1, None
    if taken.located.format == "parquet":
        place = taken.located.place
        scale, stamped = row_bytes(place, path, columns_of(taken.config)), stamp([file], place)
    window = Window(taken.unit_documents, taken.documents, prefix, scale)
    for row in rows:
        found = taken.take(row, path)
        if found is not None:
            for group in window.add(row, *found):
                taken.cut(group, (path,), stamped, before)
    for group in window.rest():
        taken.cut(group, (path,), stamped, before)


def _take_texts(taken: _Taken) -> None:
    """Take text files. One is a row, and is read only for its hash, for an id made from it, or to tell whether it
    changed."""
    located, config, place = taken.located, taken.config, taken.located.place
    files, at = located.files[: config.limit], 0
    stamped = by_stamp("text", place, config)
    window = Window(taken.unit_documents, 0)

    def cut(groups: Sequence[Group]) -> None:
        for group in groups:
            part = [files[number] for number in group.numbers]
            check = stamp(part, place) if stamped else None
            taken.cut(group, tuple(file.path for file in part), check, 0)

    for number, file in enumerate(files):
        hasher = hashlib.sha256()
        row = Row(0, 0, 1, id=file.path)
        if not stamped or taken.select is not None:
            row = text_row(chunks(place, file.path, hasher=hasher), file.path)
        found = taken.take(row, file.path)
        taken.contents.append(_content(place, file, hasher.hexdigest()))
        if found is not None:
            cut(window.add(Row(number, at, at + file.size, raw=hasher.digest()), *found))
        at += file.size
    cut(window.rest())


def _content(place: Place, file: InputFile, sha256: str) -> list[Any]:
    """What tells a file's content: its hash as far as it was read, or, if remote, when it was written."""
    return [file.path, file.size, sha256 if place.local else file.mtime]


def _snapshot(located: Located, config: InputConfig, contents: list[list[Any]]) -> str:
    taken = config.model_dump(include={"text_column", "id_column", "schema_name", "schema_column", "limit"})
    return digest({"files": sorted(contents), "format": located.format, "taken": taken})


def _mark(taken: _Taken) -> npt.NDArray[np.int64]:
    """Tell the units their `duplicates`; returns these rows' places in the input, ascending."""
    import numpy as np

    repeats, marked = taken.ids.repeats(), array("q")
    for number, (unit, (first, last)) in enumerate(zip(taken.units, taken.reach, strict=True)):
        near = repeats[slice(*np.searchsorted(repeats, (first, last + 1)))]
        if len(near):
            rows = first + np.asarray(unit.places())
            found = np.flatnonzero(np.isin(rows, near, assume_unique=True))
            taken.units[number] = replace(unit, duplicates=tuple(found.tolist()))
            marked.extend(rows[found])
    return np.sort(np.frombuffer(marked, np.int64))


def _examples(taken: _Taken, marked: Iterable[int]) -> tuple[str, ...]:
    """The ids of a few of these rows of the input, read again because ids are not kept."""
    return tuple(key for row in taken.ids.examples(marked) for key in _id_of(taken, row))


def _id_of(taken: _Taken, row: int) -> Iterator[str]:
    """The id of a row of the input that is in a unit; none if its file was just cut short."""
    for unit, (first, last) in zip(taken.units, taken.reach, strict=True):
        if first <= row <= last and row - first in unit.places():
            index = unit.places().index(row - first)
            for path, found in islice(unit_rows(unit, taken.located.place, taken.config), index, index + 1):
                yield identify(found, path, taken.config)[0]
