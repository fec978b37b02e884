"""Units of work: what is read, written and committed as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.runtime.input.formats import Span
from pipeline.runtime.input.locate import Format
from pipeline.runtime.input.picks import unpacked


@dataclass(frozen=True, slots=True)
class Unit:
    """A deterministic slice of the input, of one schema ("": rows that name none), that can be read without the rest.

    `paths` are relative to the input's root, and `base` is the root as people see it: relative to the
    directory that the scan ran in, or a URI. A unit lies in one file, or for text in `rows` files of one
    document each. It has `rows` rows of those in its span: the `picks` (`picks.py`), counted from the span's first
    row, or all of them if that is empty. The span is `first_row` and up in the file (text: always 0, since a file is
    one row), [`start`, `end`) in bytes of JSONL and CSV, rows of Parquet, places in the sorted list of text files.
    `check` tells what the unit holds: a hash of its rows' bytes (CSV: and of the header), for Parquet and for remote
    text files that are not read by the scan their size and time. `ids_digest` is the `multiset_digest` of its
    ids. `duplicates` are rows, counted from 0 in the unit, whose id an earlier row of the input has.
    """

    id: str
    format: Format
    base: str
    paths: tuple[str, ...]
    rows: int
    first_row: int
    start: int
    end: int
    check: str
    ids_digest: str
    schema: str = ""
    picks: str = ""
    duplicates: tuple[int, ...] = ()

    @property
    def span(self) -> Span:
        """What is read of the unit's file, but for text."""
        picks = [self.first_row + row for row in self.places()] if self.picks else None
        return Span(self.start, self.end, self.first_row, picks)

    def places(self) -> Sequence[int]:
        """The unit's rows, counted from its span's first one."""
        return unpacked(self.picks, self.rows) if self.picks else range(self.rows)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for a row of Ray Data or a commit record."""
        return {**asdict(self), "paths": list(self.paths), "duplicates": list(self.duplicates)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Unit:
        """The inverse of `to_json`. Records of earlier versions have no schema and no picks.

        Raises:
            InputError: the record was written by another version.
        """
        try:
            lists = {"paths": tuple(value["paths"]), "duplicates": tuple(value["duplicates"])}
            unit = cls(**{**value, **lists})
            unit.places()
            return unit
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"unit {value.get('id', '?')} was recorded by another version of Gristmill: {error}. Start a new run."
            ) from error


@dataclass(frozen=True, slots=True)
class InputScan:
    """What one pass over the input found.

    `documents` counts rows and equals the sum of the units' `rows`. `ids_digest` is the `multiset_digest` of
    all their ids, repeated ones included. `snapshot` changes whenever the files' content or what is taken from it
    does, but not with the size of units. `schema_counts` has "" for rows that name no schema.
    `duplicate_count` counts rows whose id an earlier row of the input has; `duplicate_examples` are up to five such
    ids, each once. Rows that were left out (`scan`'s `select`) are in none of these but the snapshot.
    """

    units: tuple[Unit, ...]
    documents: int
    ids_digest: str
    snapshot: str
    schema_counts: Mapping[str, int]
    duplicate_count: int
    duplicate_examples: tuple[str, ...]
