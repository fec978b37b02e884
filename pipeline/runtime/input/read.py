"""Reading one unit. It agrees with the scan on every row and every id: both use the same functions for them."""

from __future__ import annotations

from dataclasses import replace

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.records import Document
from pipeline.runtime.input.documents import document
from pipeline.runtime.input.formats import Row
from pipeline.runtime.input.locate import place_of
from pipeline.runtime.input.slices import unit_rows
from pipeline.runtime.input.units import Unit


def read_unit(unit: Unit, config: InputConfig) -> list[Document]:
    """The documents of a unit, in row order, whatever was read before.

    Raises:
        InputError: a file cannot be read, or no longer holds the rows that the scan saw.
    """
    place = replace(place_of(config), base=unit.base)
    repeated = frozenset(unit.duplicates)
    documents = [
        document(row, path, _source(unit, place.name(path), row), config, duplicate=index in repeated)
        for index, (path, row) in enumerate(unit_rows(unit, place, config))
    ]
    if len(documents) != unit.rows:
        raise InputError(
            f"unit {unit.id} had {unit.rows} rows when the input was scanned and has {len(documents)} now: "
            f"{place.name(unit.paths[0])} was changed. Start a new run."
        )
    return documents


def _source(unit: Unit, name: str, row: Row) -> str:
    """`name#row`, and just the name of a text file, which is one document."""
    return name if unit.format == "text" else f"{name}#{row.number}"
