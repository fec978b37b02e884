"""Texts: the documents of a run's rows, a unit in memory at a time; rejected rows keep theirs, others are read anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import GristmillError
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.browse import MAX_FAILURES
from pipeline.runtime.output.lookup import input_of
from pipeline.runtime.output.tables import storable
from pipeline.runtime.store import Store


class Texts:
    """`failure` says why the texts of a unit could not be read, empty if all could; after some such units none is
    tried."""

    def __init__(self, store: Store) -> None:
        self.failure = ""
        self._store = store
        self._failures = 0
        self._unit = ""
        self._texts: Mapping[str, str] = {}

    def of(self, row: Mapping[str, Any]) -> str | None:
        """The text of a row's document; None if it cannot be read. Rows of one unit come one after another."""
        if row.get("document_text"):
            return str(row["document_text"])
        if row["unit"] != self._unit:
            self._unit, self._texts = row["unit"], self._read(row["unit"])
        return self._texts.get(row["source"])

    def _read(self, unit: str) -> dict[str, str]:
        if self._failures >= MAX_FAILURES:  # an input that is out of reach may take minutes for each try
            return {}
        try:
            return {storable(one.source): one.text for one in read_unit(*input_of(self._store, unit))}
        except (GristmillError, OSError) as error:
            self._failures += 1
            self.failure = self.failure or str(error)
            return {}
