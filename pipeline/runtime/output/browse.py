"""Browse: the rows of a committed run in one pass, a unit in memory at a time, and what a reader of them asks next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import ceil
from typing import Any

from pipeline.errors import GristmillError, OutputError
from pipeline.observe.tally import Tally
from pipeline.records import Manifest
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.gather import commit_record, unit_of
from pipeline.runtime.output.lookup import find_run, input_of, previous_run, read_named
from pipeline.runtime.output.parquet import parquet_of
from pipeline.runtime.output.profiles import records_in
from pipeline.runtime.output.run_record import read_run_record
from pipeline.runtime.output.tables import NO_SCHEMA, storable
from pipeline.runtime.store import Store, reason

COLUMNS = (
    *("document_id", "source", "record", "document_text", "layer", "record_attempt", "problems", "repairs", "fields"),
    *("attempts", "clipped", "audit"),
)
"""Those that a run of an earlier version lacks are not in its rows."""

MAX_DOCUMENTS = 20_000
"""How many documents are read of a larger run: whole units, evenly chosen within each schema."""

BATCH = 256
"""Rows that are Python values at once."""

MAX_FAILURES = 3
"""An input that is out of reach is not tried for ever: each try may wait for minutes."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """A committed run, and which of its files are read. `record` is its `run.json`, empty if that is gone."""

    store: Store
    manifest: Manifest
    record: Mapping[str, Any]
    files: tuple[Mapping[str, Any], ...]

    @property
    def documents(self) -> int:
        """How many rows are read."""
        return sum(file["rows"] for file in self.files)

    def rows(self, only: Set[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows as Python values, with `status`, `schema` and `unit` added: all, or those of `only` these ids.

        Raises:
            OutputError: a file that the manifest names is not there, or is none.
        """
        for file in self.files:
            for row in _rows(self.store, file["path"], only):
                yield {**row, "status": file["status"], "schema": file["schema"], "unit": unit_of(file["path"])}

    def ids(self) -> Iterator[str]:
        """The ids of the rows, of a file after the other, repeated ones as often as they occur.

        Raises:
            OutputError: as for `rows`.
        """
        for file in self.files:
            yield from map(str, read_named(self.store, file["path"], ["document_id"]).column("document_id").to_pylist())

    def tallies(self) -> dict[str, Tally]:
        """The counts of all documents by schema, from the commit records; of units of several schemas (earlier versions
        wrote such) nothing.

        Raises:
            OutputError: a commit record is gone, or is none.
        """
        found: dict[str, Tally] = {}
        for unit in sorted({unit_of(file["path"]) for file in self.manifest.files}):
            tally = Tally.from_json(commit_record(self.store, unit)["tally"])
            names = {key.rpartition(" ")[0] for key in tally.schemas}
            if len(names) == 1:
                found.setdefault(names.pop() or NO_SCHEMA, Tally()).merge(tally)
        return found


def browse(path: str, most: int = MAX_DOCUMENTS) -> Browsed:
    """The committed run that a path or URI means, of which about `most` documents are read.

    Raises:
        OutputError: there is no committed run.
    """
    store = find_run(path)
    manifest = read_manifest(store)
    assert manifest is not None
    return Browsed(store, manifest, read_run_record(store) or {}, chosen(manifest.files, most))


def chosen(files: Sequence[Mapping[str, Any]], most: int) -> tuple[Mapping[str, Any], ...]:
    """The files of evenly chosen units of each schema, with about `most` rows; all of them if they have no more.

    Every schema has a unit at least, unless that alone would be more than twice as many rows.
    """
    total = sum(file["rows"] for file in files)
    if total <= most:
        return tuple(files)
    rows: dict[str, int] = {}
    schemas: dict[str, list[str]] = {}
    for file in files:
        unit = unit_of(file["path"])
        if unit not in rows:
            schemas.setdefault(file["schema"], []).append(unit)
        rows[unit] = rows.get(unit, 0) + file["rows"]
    units = [unit for group in schemas.values() for unit in _evenly(sorted(group), len(group) * most / total)]
    if (held := sum(rows[unit] for unit in units)) > 2 * most:
        units = _evenly(units, len(units) * most / held)
    kept = set(units)
    return tuple(file for file in files if unit_of(file["path"]) in kept)


def _evenly(units: Sequence[str], wanted: float) -> list[str]:
    """About so many of the units, one at least, at equal distances."""
    step = len(units) / min(len(units), max(1, ceil(wanted)))
    return [units[int((place + 0.5) * step)] for place in range(round(len(units) / step))]


def _rows(store: Store, key: str, only: Set[str] | None) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    try:
        data = store.get(key)
        if data is None:
            raise OutputError(f"{store.where}/{key} is not there, but the manifest names it.")
        table = parquet_of(data, COLUMNS)
        if only is not None:
            table = table.filter(pa.array([one in only for one in table.column("document_id").to_pylist()], pa.bool_()))
        for batch in table.to_batches(max_chunksize=BATCH):
            others = batch.select([name for name in batch.schema.names if name != "record"])
            for row, record in zip(others.to_pylist(), records_in(batch), strict=True):
                yield {**row, "record": record}
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot read {store.where}/{key}, which the manifest names: {reason(error)}") from error


def texts_of(store: Store, wanted: Mapping[str, set[str]]) -> dict[str, str]:
    """By `source`, the texts of some documents, read again from the input: {unit: sources} → {source: text}. What the
    input no longer holds is not among them, nor what comes after `MAX_FAILURES` units that cannot be read."""
    found: dict[str, str] = {}
    failures = 0
    for unit, sources in sorted(wanted.items()):
        try:
            for document in read_unit(*input_of(store, unit)):
                if (source := storable(document.source)) in sources:
                    found[source] = document.text
        except (GristmillError, OSError):  # gone, changed, or out of reach: an example without its document
            failures += 1
            if failures >= MAX_FAILURES:
                break
    return found


def run_before(run: Browsed) -> Browsed | None:
    """The run of the same job in the same output that was committed last before this one, or None; none of its files
    are read.

    Raises:
        OutputError: the output, or a manifest in it, cannot be read.
    """
    store = previous_run(run.store)
    manifest = read_manifest(store) if store else None
    return Browsed(store, manifest, read_run_record(store) or {}, ()) if store and manifest else None
