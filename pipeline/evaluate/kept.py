"""Kept: gold on disk while a run is read, so that neither has to fit into memory."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

from pipeline.errors import InputError, OutputError
from pipeline.evaluate.gold import GoldRow

SHOWN = 20
"""Rows of each fault that are named."""

_TABLE = """
CREATE TABLE gold (id TEXT, schema TEXT, row TEXT, taken INTEGER DEFAULT 0, torn INTEGER DEFAULT 0,
                   PRIMARY KEY (id, schema)) WITHOUT ROWID
"""


class KeptGold:
    """Gold by document and schema, in a temporary database that goes with it.

    `counts`: `rows` in all; of these `unreadable`, `repeated` (once more the same), `conflicting` (another record for
    the same document and schema: then neither is used) and `invalid` (by the schema) are not used. `faults` names
    some of each.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[dict[str, str]] = []
        self._folder = tempfile.TemporaryDirectory(prefix="gristmill-gold-")
        self._rows = sqlite3.connect(os.path.join(self._folder.name, "gold.db"), isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute("PRAGMA synchronous = OFF")
        self._rows.execute(_TABLE)

    def __enter__(self) -> KeptGold:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows.close()
        self._folder.cleanup()

    def fill(self, rows: Iterable[GoldRow]) -> None:
        """Keep these rows.

        Raises:
            InputError: there is not one, or none can be read.
            OutputError: there is no room for them.
        """
        try:
            self._rows.execute("BEGIN")
            for row in rows:
                self.counts["rows"] += 1
                if row.fault:
                    self.refuse("unreadable", row, row.fault)
                else:
                    self._keep(row)
            self._rows.execute("COMMIT")
        except sqlite3.Error as error:
            where = f"in {tempfile.gettempdir()}: {error}. Set TMPDIR to a place with room."
            raise OutputError(f"cannot keep the gold {where}") from error
        if not self.counts["rows"]:
            raise InputError("the gold holds no row.")
        if self.counts["unreadable"] == self.counts["rows"]:
            first = self.faults[0]
            raise InputError(f"no row of the gold can be used; {first['where']}: {first['why']}.")

    def take(self, key: str, schema: str) -> GoldRow | None:
        """The gold of a document of a schema; None if there is none. A row that names no schema is of any, and one that
        names it without a version of any version."""
        names = (schema, schema.partition("@")[0], "")
        for name in dict.fromkeys(names):
            found = self._rows.execute("SELECT row FROM gold WHERE id = ? AND schema = ? AND torn = 0", (key, name))
            if (row := found.fetchone()) is not None:
                self._rows.execute("UPDATE gold SET taken = 1 WHERE id = ? AND schema = ?", (key, name))
                return _row(row[0])
        return None

    def schemas(self, key: str) -> list[str]:
        """The schemas that a document has gold of."""
        return [schema for (schema,) in self._rows.execute("SELECT schema FROM gold WHERE id = ? AND torn = 0", (key,))]

    def left(self) -> Iterator[GoldRow]:
        """The gold that nobody took, by id."""
        for (row,) in self._rows.execute("SELECT row FROM gold WHERE taken = 0 AND torn = 0 ORDER BY id, schema"):
            yield _row(row)

    def refuse(self, what: str, row: GoldRow, why: str) -> None:
        """Count a row that is not used."""
        self.counts[what] += 1
        if self.counts[what] <= SHOWN:
            self.faults.append({"what": what, "where": row.where, "id": row.id, "why": why})

    def _keep(self, row: GoldRow) -> None:
        text = json.dumps(dataclasses.asdict(row))
        key = row.id, row.schema
        known = self._rows.execute("SELECT row, torn FROM gold WHERE id = ? AND schema = ?", key).fetchone()
        if known is None:
            self._rows.execute("INSERT INTO gold (id, schema, row) VALUES (?, ?, ?)", (*key, text))
        elif _said(_row(known[0])) == _said(row):
            self.refuse("repeated", row, f"the same as {_row(known[0]).where}")
        else:
            if not known[1]:
                self.refuse("conflicting", _row(known[0]), f"{row.where} gives this document another record")
            self.refuse("conflicting", row, f"{_row(known[0]).where} gives this document another record")
            self._rows.execute("UPDATE gold SET torn = 1 WHERE id = ? AND schema = ?", key)


def _row(text: str) -> GoldRow:
    return GoldRow(**json.loads(text))


def _said(row: GoldRow) -> Any:
    return json.dumps([row.record, row.acceptable], sort_keys=True)
