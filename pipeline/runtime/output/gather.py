"""Gather: what the commit records of a run say together. Memory grows by units and files, and by 8 bytes a record."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import OutputError
from pipeline.observe.tally import Tally
from pipeline.runtime.store import Store, json_object
from pipeline.schema.fingerprint import add_multisets

COMMITS = "_commits"
THREADS = 16
"""Records that are read at once: an object store answers in milliseconds, whatever it is asked for."""
WINDOW = 512
"""Records that are held at once, before they are added up."""

_MEMBERS = {"unit": str, "ids_digest": str, "tally": dict, "files": list, "input": dict}
_FILE_MEMBERS = {"path": str, "status": str, "schema": str, "rows": int, "bytes": int, "sha256": str}


@dataclass
class Gathered:
    """Of the units added so far: their ids, counts (also by schema), files, and record digests by file as `packed` has
    them."""

    units: list[str] = field(default_factory=list)
    totals: Tally = field(default_factory=Tally)
    by_schema: dict[str, Tally] = field(default_factory=dict)
    ids_digest: str = add_multisets(())
    files: list[Mapping[str, Any]] = field(default_factory=list)
    digests: dict[str, bytes] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add what one commit record says."""
        self.units.append(record["unit"])
        tally = Tally.from_json(record["tally"])
        self.totals.merge(tally)
        self.by_schema.setdefault(str(record["input"].get("schema", "")), Tally()).merge(tally)
        self.ids_digest = add_multisets((self.ids_digest, record["ids_digest"]))
        self.files += record["files"]
        self.digests |= {path: base64.b64decode(packed) for path, packed in record.get("digests", {}).items()}


def commit_key(unit: str) -> str:
    """Where the commit record of a unit lies."""
    return f"{COMMITS}/{unit}.json"


def unit_of(path: str) -> str:
    """The id of the unit that a data file is of."""
    return path.rpartition("/")[2].partition("-")[0]


def committed_units(store: Store) -> list[str]:
    """The ids of the units that are written, sorted: one listing.

    Raises:
        OSError: the store cannot be listed.
    """
    names = (entry.key.removeprefix(f"{COMMITS}/") for entry in store.list(f"{COMMITS}/"))
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and "/" not in name)


def gather(store: Store, units: Sequence[str]) -> Gathered:
    """What the commit records of these units say together.

    Raises:
        OutputError: one is missing, or is none.
    """
    gathered = Gathered()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="commit-records") as pool:
        for start in range(0, len(units), WINDOW):
            for record in pool.map(lambda unit: commit_record(store, unit), units[start : start + WINDOW]):
                gathered.add(record)
    return gathered


def commit_record(store: Store, unit: str) -> dict[str, Any]:
    """What the commit record of a unit says.

    Raises:
        OutputError: there is none, it cannot be read, or is not what this program writes there.
    """
    record = find_record(store, unit)
    if record is None:
        raise OutputError(f"{store.where}/{commit_key(unit)} is not there, or no longer.")
    return record


def find_record(store: Store, unit: str) -> dict[str, Any] | None:
    """What the commit record of a unit says, or None if the unit is not committed.

    Raises:
        OutputError: the record cannot be read, or is not what this program writes there.
    """
    path = f"{store.where}/{commit_key(unit)}"
    try:
        data = store.get(commit_key(unit))
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error}. Run again when it can be read.") from error
    if data is None:
        return None
    record = json_object(data) or {}
    if not (_has(record, _MEMBERS) and record["unit"] == unit and all(_has(f, _FILE_MEMBERS) for f in record["files"])):
        raise OutputError(f"{path} cannot be read back. Delete it to have the unit's documents extracted again.")
    return record


def packed(record_digests: Iterable[str | None]) -> str:
    """Record digests, 16 hex digits each, as a commit record keeps them: 8 bytes each, little-endian, in base64."""
    numbers = b"".join(int(one, 16).to_bytes(8, "little") for one in record_digests if one is not None)
    return base64.b64encode(numbers).decode()


def _has(value: Any, members: Mapping[str, type]) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in members.items())
