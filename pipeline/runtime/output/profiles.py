"""Profiles: what the records of a committed run look like, read a file at a time (docs/field-drift.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import OutputError
from pipeline.observe.profile import Profile
from pipeline.records import JsonValue
from pipeline.runtime.output.commit import MANIFEST, read_manifest
from pipeline.runtime.output.gather import unit_of
from pipeline.runtime.output.lookup import read_named
from pipeline.runtime.store import Store
from pipeline.schema.storage import as_json

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DOCUMENTS = 20_000
"""Documents of a schema that are read; of more, whole units, evenly chosen over the run."""
ALL_SCHEMAS = 10
"""Times as many are read of all schemas together."""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Profiled:
    """The profiles of a run by schema, and how many documents with a record each schema has; fewer may be read."""

    profiles: Mapping[str, Profile]
    records: Mapping[str, int]


def profiles_of_run(store: Store, *, only: str | None = None, documents: int = MAX_DOCUMENTS) -> Profiled:
    """The profiles of a committed run: of all its schemas, or of one. Statuses are counted over the whole run.

    Raises:
        OutputError: there is no manifest, or a file that it names cannot be read.
    """
    manifest = read_manifest(store)
    if manifest is None:
        raise OutputError(f"{store.where}/{MANIFEST} is not there: the run is not committed. Run the job again.")
    files: dict[str, list[Mapping[str, Any]]] = {}
    for file in manifest.files:
        if only is None or file["schema"] == only:
            files.setdefault(file["schema"], []).append(file)
    profiles, records = {}, {}
    each = min(documents, max(1, ALL_SCHEMAS * documents // max(1, len(files))))
    for schema, some in files.items():
        made = Profile(schema)
        for file in some:
            made.statuses[file["status"]] += file["rows"]
        kept = [file for file in some if file["status"] != "rejected"]
        records[schema] = sum(file["rows"] for file in kept)
        for file in _chosen(kept, each):
            for key, record in _records(read_named(store, file["path"], ["document_id", "record"])):
                made.add(record, key)
        profiles[schema] = made
    return Profiled(profiles, records)


def _chosen(files: list[Mapping[str, Any]], documents: int) -> Iterator[Mapping[str, Any]]:
    """The files of so many units, evenly chosen, as hold about that many rows."""
    units: dict[str, int] = {}
    for file in files:
        unit = unit_of(file["path"])
        units[unit] = units.get(unit, 0) + file["rows"]
    share = min(1.0, documents / max(1, sum(units.values())))
    number = max(1, math.ceil(share * len(units)))
    names = sorted(units)
    wanted = {names[place * len(names) // number] for place in range(number)} if names else set()
    return (file for file in sorted(files, key=lambda one: str(one["path"])) if unit_of(file["path"]) in wanted)


def _records(table: pa.Table) -> Iterator[tuple[str, JsonValue]]:
    """Document ids and records as JSON has them."""
    if "record" not in table.column_names:
        return
    texts = _json_texts(table.schema.field("record"))
    for batch in table.to_batches(max_chunksize=_BATCH):
        ids, records = batch.column("document_id").to_pylist(), batch.column("record").to_pylist()
        for key, record in zip(ids, records, strict=True):
            record = as_json(record)  # before its texts are decoded, which may be deeper than a column
            yield str(key), _decoded(record, texts) if texts else record


def _json_texts(field: pa.Field) -> Any:
    """Where in a column JSON text stands: True, a dict by member, a list of what items hold; None for nowhere."""
    import pyarrow as pa

    if (field.metadata or {}).get(b"gristmill") == b"json":
        return True
    if pa.types.is_list(field.type):
        inside = _json_texts(field.type.value_field)
        return [inside] if inside else None
    if pa.types.is_struct(field.type):
        members = {one.name: found for one in field.type if (found := _json_texts(one))}
        return members or None
    return None


def _decoded(value: Any, texts: Any) -> Any:
    if value is None:
        return None
    if texts is True:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):  # deeper than JSON is read here: a text like any other
            return value
    if isinstance(texts, list):
        return [_decoded(item, texts[0]) for item in value]
    return {name: _decoded(child, texts[name]) if name in texts else child for name, child in value.items()}


def records_in(batch: pa.RecordBatch) -> list[JsonValue]:
    """The record of each row as JSON has it, with JSON text read; None where there is none."""
    if "record" not in batch.schema.names:
        return [None] * int(batch.num_rows)
    texts = _json_texts(batch.schema.field("record"))
    return [as_json(_decoded(one, texts) if texts else one) for one in batch.column("record").to_pylist()]
