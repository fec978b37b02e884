"""Slicing the input into units, in one pass that keeps no text."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.check import Sums, by_stamp, stamp
from pipeline.runtime.input.columns import check_columns
from pipeline.runtime.input.documents import identify, schema_of
from pipeline.runtime.input.formats import Row, chunks, text_row
from pipeline.runtime.input.ids import IdCount, Repeats
from pipeline.runtime.input.locate import InputFile, Located, Place, locate
from pipeline.runtime.input.slices import file_rows, unit_rows
from pipeline.runtime.input.units import InputScan, Unit
from pipeline.schema.fingerprint import DIGEST_LENGTH, digest


def scan(config: InputConfig, unit_documents: int) -> InputScan:
    """Slice the input into units of at most `unit_documents` rows and count its ids and schemas.

    Memory grows by 8 bytes per row (about 32 for a moment at the end) and by the units.

    Raises:
        InputError: the input is missing, empty, unreadable, mixed, or lacks a column that the job names.
    """
    located = locate(config)
    check_columns(located, config)
    ids, contents, units = IdCount(), list[list[Any]](), list[Unit]()
    slices = _text_units if located.format == "text" else _file_units
    for unit in slices(located, config, unit_documents, ids, contents):
        units.append(replace(unit, id=f"{len(units):06d}"))
    if not units:
        more = f" and {len(located.files) - 1} more" if len(located.files) > 1 else ""
        raise InputError(f"the input is empty: no rows in {located.place.name(located.files[0].path)}{more}.")
    repeats = ids.repeats()
    return InputScan(
        units=_marked(units, repeats.rows),
        documents=ids.documents,
        ids_digest=ids.ids_digest(),
        snapshot=_snapshot(located, config, contents),
        schema_counts=dict(ids.schemas),
        duplicate_count=len(repeats.rows),
        duplicate_examples=_examples(units, repeats, located.place, config),
    )


def _file_units(
    located: Located, config: InputConfig, size: int, ids: IdCount, contents: list[list[Any]]
) -> Iterator[Unit]:
    """Units of JSONL, CSV or Parquet, yet unnumbered; adds rows to `ids` and files to `contents`."""
    place = located.place
    for file in located.files:
        left = None if config.limit is None else config.limit - ids.documents
        if left == 0:
            return
        sums = Sums()
        rows = file_rows(located.format, place, file.path, config, sums)
        first = last = None
        for last in islice(rows, left):
            if first is None:
                first = last._replace(text=None)
                sums.begin(last.start)
            sums.extend(last.end)
            ids.add(identify(last, file.path, config)[0], schema_of(last, config)[0])
            if last.number - first.number + 1 == size:
                yield _unit(located, file, first, last, _check(located, file, sums), ids.cut())
                first = None
        if first is not None and last is not None:
            yield _unit(located, file, first, last, _check(located, file, sums), ids.cut())
        if located.format == "parquet" and place.local:
            for _ in chunks(place, file.path, hasher=sums.file):
                continue
        contents.append(_content(place, file, sums.file.hexdigest()))


def _text_units(
    located: Located, config: InputConfig, size: int, ids: IdCount, contents: list[list[Any]]
) -> Iterator[Unit]:
    """As `_file_units`, for text: a row is a file, which is read only for its hash or an id made from it."""
    place, files = located.place, located.files[: config.limit]
    stamped = by_stamp("text", place, config)
    for start in range(0, len(files), size):
        part = files[start : start + size]
        whole = hashlib.sha256()
        for file in part:
            hasher = hashlib.sha256()
            row = Row(0, 0, 1, id=file.path)
            if not stamped:
                row = text_row(chunks(place, file.path, hasher=hasher), file.path)
            ids.add(identify(row, file.path, config)[0], schema_of(row, config)[0])
            contents.append(_content(place, file, hasher.hexdigest()))
            whole.update(hasher.digest())
        check = stamp(part, place) if stamped else whole.hexdigest()[:DIGEST_LENGTH]
        paths = tuple(file.path for file in part)
        yield Unit("", "text", place.base, paths, len(paths), 0, start, start + len(paths), check, ids.cut())


def _unit(located: Located, file: InputFile, first: Row, last: Row, check: str, ids_digest: str) -> Unit:
    rows, base = last.number - first.number + 1, located.place.base
    number, start, end = first.number, first.start, last.end
    return Unit("", located.format, base, (file.path,), rows, number, start, end, check, ids_digest)


def _check(located: Located, file: InputFile, sums: Sums) -> str:
    return stamp([file], located.place) if located.format == "parquet" else sums.check()


def _content(place: Place, file: InputFile, sha256: str) -> list[Any]:
    """What tells a file's content: its hash as far as it was read, or, if remote, when it was written."""
    return [file.path, file.size, sha256 if place.local else file.mtime]


def _snapshot(located: Located, config: InputConfig, contents: list[list[Any]]) -> str:
    taken = config.model_dump(include={"text_column", "id_column", "schema_name", "schema_column", "limit"})
    return digest({"files": sorted(contents), "format": located.format, "taken": taken})


def _marked(units: Sequence[Unit], repeats: Sequence[int]) -> tuple[Unit, ...]:
    """The units with their `duplicates`; `repeats` are rows of the whole input."""
    ends = list(accumulate(unit.rows for unit in units))
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in repeats:
        number = bisect_right(ends, row)
        found[number].append(row - ends[number] + units[number].rows)
    return tuple(replace(unit, duplicates=tuple(found.get(number, ()))) for number, unit in enumerate(units))


def _examples(units: Sequence[Unit], repeats: Repeats, place: Place, config: InputConfig) -> tuple[str, ...]:
    """The ids of the example rows, read again because ids are not kept."""
    ends = list(accumulate(unit.rows for unit in units))
    found = []
    for row in repeats.examples:
        number = bisect_right(ends, row)
        rows = unit_rows(units[number], place, config)
        place_in_unit = row - ends[number] + units[number].rows
        # A loop, because a file that was just cut short has no such row any more.
        for path, repeated in islice(rows, place_in_unit, place_in_unit + 1):
            found.append(identify(repeated, path, config)[0])
    return tuple(found)
