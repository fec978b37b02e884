"""Reading one unit. It agrees with the scan on every row and every id: both use the same functions for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input.check import by_stamp, stamp
from pipeline.runtime.input.documents import document
from pipeline.runtime.input.formats import Row
from pipeline.runtime.input.locate import Place, files_at, place_of
from pipeline.runtime.input.slices import unit_rows
from pipeline.runtime.input.units import Unit
from pipeline.schema.fingerprint import DIGEST_LENGTH


def read_unit(unit: Unit, config: InputConfig) -> list[Document]:
    """The documents of a unit, in row order, whatever was read before.

    Raises:
        InputError: a file cannot be read, or was changed since the scan.
    """
    place = replace(place_of(config), base=unit.base)
    repeated = frozenset(unit.duplicates)
    return [
        document(row, path, _source(unit, place.name(path), row), config, duplicate=index in repeated)
        for index, (path, row) in enumerate(checked_rows(unit, place, config))
    ]


def checked_rows(unit: Unit, place: Place, config: InputConfig) -> Iterator[tuple[str, Row]]:
    """The rows of a unit, each after the path of its file. Who has met the last one knows that all are what the scan
    saw.

    Raises:
        InputError: as `read_unit`.
    """
    stamped, hasher, rows = by_stamp(unit.format, place, config), hashlib.sha256(), 0
    if stamped:  # before as well, because a file written anew may not even have the columns
        _verify(unit, stamp(files_at(place, unit.paths), place), place)
    for found in unit_rows(unit, place, config, hasher):
        rows += 1
        yield found
    check = stamp(files_at(place, unit.paths), place) if stamped else hasher.hexdigest()[:DIGEST_LENGTH]
    _verify(unit, check, place)
    if rows != unit.rows:
        raise _changed(unit, place)


def _verify(unit: Unit, check: str, place: Place) -> None:
    if check != unit.check:
        raise _changed(unit, place)


def _changed(unit: Unit, place: Place) -> InputError:
    others = len(unit.paths) - 1
    more = f" or one of the {others} files after it" if others else ""
    return InputError(f"{place.name(unit.paths[0])}{more} was changed since the scan. Start a new run.")


def _source(unit: Unit, name: str, row: Row) -> str:
    """`name#row`, and just the name of a text file, which is one document."""
    return name if unit.format == "text" else f"{name}#{row.number}"
