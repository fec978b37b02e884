"""Units of work: what is read, written and committed as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import InputError
from pipeline.runtime.input.formats import Span
from pipeline.runtime.input.locate import Format


@dataclass(frozen=True, slots=True)
class Unit:
    """A deterministic slice of the input that can be read without the rest.

    `paths` are relative to the input's root, and `base` is the root as people see it: relative to the
    directory that the scan ran in, or a URI. A unit lies in one file, or for text in `rows` files of one
    document each. Its rows are `first_row` and up in the file (text: always 0, since a file is one row).
    [`start`, `end`) are bytes of JSONL and CSV, rows of Parquet, places in the sorted list of text files.
    `check` tells what the unit holds: a hash of its bytes (CSV: and of the header), for Parquet and for remote
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
    duplicates: tuple[int, ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.first_row)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, for a row of Ray Data or a commit record."""
        return {**asdict(self), "paths": list(self.paths), "duplicates": list(self.duplicates)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Unit:
        """The inverse of `to_json`.

        Raises:
            InputError: the record was written by another version.
        """
        try:
            return cls(**{**value, "paths": tuple(value["paths"]), "duplicates": tuple(value["duplicates"])})
        except (KeyError, TypeError) as error:
            raise InputError(
                f"unit {value.get('id', '?')} was recorded by another version of Gristmill: {error}. Start a new run."
            ) from error


@dataclass(frozen=True, slots=True)
class InputScan:
    """What one pass over the input found.

    `documents` counts rows and equals the sum of the units' `rows`. `ids_digest` is the `multiset_digest` of
    all ids, repeated ones included. `snapshot` changes whenever the files' content or what is taken from it
    does, but not with the size of units. `schema_counts` has "" for rows that name no schema.
    `duplicate_count` counts second and later rows of an id; `duplicate_examples` are up to five such ids,
    each once.
    """

    units: tuple[Unit, ...]
    documents: int
    ids_digest: str
    snapshot: str
    schema_counts: Mapping[str, int]
    duplicate_count: int
    duplicate_examples: tuple[str, ...]
