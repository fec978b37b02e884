"""Duplicates: different documents of one run whose records are equal. A report at commit, never a status.

Records are compared by digest, 64 bits: that any two different ones of n share theirs has a probability of about
n^2 / 2^65, 3 in 10^6 for ten million rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.records import JsonValue
from pipeline.runtime.output.parquet import read_parquet
from pipeline.runtime.store import Store
from pipeline.schema.fingerprint import digest
from pipeline.schema.walk import unescape

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_GROUPS = 1000
"""Groups of a schema that are listed, the largest first; all are counted."""
MAX_IDS = 20
"""Ids of a group that are listed, the smallest first; all are counted."""
THREADS = 8
"""Files that are read at once."""


def record_digest(record: JsonValue, schema: Mapping[str, Any]) -> str | None:
    """The digest of a record, or of the values of its key if the schema's root declares one by `x-key`.

    None if it holds nothing to compare: no value but null, or a key of which a part is absent or null.
    """
    key = schema.get("x-key")
    if key is None:
        return digest(_equal(record)) if _holds_something(record) else None
    values = [_at(record, pointer) for pointer in key] if isinstance(key, list) else []
    return digest(_equal(values)) if values and all(map(_holds_something, values)) else None


def _equal(value: JsonValue) -> JsonValue:
    """What equal JSON values share: 1.0 is 1."""
    if isinstance(value, dict):
        return {name: _equal(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_equal(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _holds_something(value: JsonValue) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_something, value.values() if isinstance(value, dict) else value))
    return value is not None


def _at(value: JsonValue, pointer: Any) -> JsonValue:
    """The value at a JSON pointer, None if nothing is there."""
    for token in str(pointer).split("/")[1:]:
        name = unescape(token)
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


@dataclass(frozen=True, slots=True)
class Duplicates:
    """`groups` and `documents` (in these groups) by schema; `listed` is the content of the report's file."""

    groups: Mapping[str, int]
    documents: Mapping[str, int]
    listed: Mapping[str, Sequence[Mapping[str, Any]]]

    def counts(self) -> dict[str, Any]:
        """For the manifest: totals, and by schema."""
        schemas = {name: {"groups": n, "documents": self.documents[name]} for name, n in self.groups.items()}
        return {
            "groups": sum(self.groups.values()),
            "documents": sum(self.documents.values()),
            "schemas": schemas,
        }

    def to_json(self) -> dict[str, Any]:
        """What `duplicates.json` holds."""
        return {**self.counts(), "listed": self.listed, "most_groups": MAX_GROUPS, "most_ids": MAX_IDS}


def find_duplicates(
    store: Store, files: Sequence[Mapping[str, Any]], digests: Mapping[str, bytes] | None = None
) -> Duplicates:
    """Groups of documents with equal records among the files of a run, whatever their order.

    `digests` are the record digests of files by path, as `gather` has them; of files that are not there, the files are
    read. Only files that hold documents of listed groups are read for ids. Of a row 8 bytes are held (16 for a
    moment), and ids only of listed groups.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    by_schema: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file["status"] != "rejected":
            by_schema[file["schema"]].append(file["path"])
    groups, documents, listed = {}, {}, {}
    for schema, paths in sorted(by_schema.items()):
        found = _digests(store, paths, digests or {})
        values, counts = _repeated(found)
        if not len(values):
            continue
        groups[schema], documents[schema] = len(values), int(counts.sum())
        order = sorted(zip(counts.tolist(), values.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))
        listed[schema] = _listed(store, found, order[:MAX_GROUPS])
    return Duplicates(groups, documents, listed)


def _digests(store: Store, paths: Sequence[str], known: Mapping[str, bytes]) -> dict[str, npt.NDArray[np.uint64]]:
    """The digests of each file; of files of earlier versions they are in the file alone, if anywhere."""
    import numpy as np

    found = {path: np.frombuffer(known[path], dtype="<u8") for path in paths if path in known}
    for path, (rows,) in _columns(store, [path for path in paths if path not in known], "record_digest"):
        found[path] = np.array([int(row, 16) for row in rows if row is not None], dtype=np.uint64)
    return found


def _repeated(digests: Mapping[str, npt.NDArray[np.uint64]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The digests that occur more than once, and how often."""
    import numpy as np

    every = np.concatenate([*digests.values(), np.array([], np.uint64)])
    every.sort()  # in place: `np.unique` of so many would hold them three times more
    values = np.unique(every[1:][every[1:] == every[:-1]])
    return values, np.searchsorted(every, values, "right") - np.searchsorted(every, values, "left")


def _listed(
    store: Store, digests: Mapping[str, npt.NDArray[np.uint64]], wanted: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    import numpy as np

    ids: dict[str, list[str]] = {f"{value:016x}": [] for _, value in wanted}
    values = np.array([value for _, value in wanted], dtype=np.uint64)
    paths = [path for path, there in digests.items() if np.isin(there, values).any()]
    for _, columns in _columns(store, paths, "record_digest", "document_id"):
        for key, document_id in zip(*columns, strict=True):
            if key in ids:
                ids[key].append(document_id)
                if len(ids[key]) >= 2 * MAX_IDS:
                    ids[key] = sorted(ids[key])[:MAX_IDS]
    counts = {f"{value:016x}": count for count, value in wanted}
    return [
        {"record_digest": key, "documents": counts[key], "ids": sorted(found)[:MAX_IDS]} for key, found in ids.items()
    ]


def _columns(store: Store, paths: Sequence[str], *names: str) -> Iterator[tuple[str, list[list[Any]]]]:
    """Each file's path with columns of it as lists; nothing of a file that lacks one of them."""

    def read(path: str) -> tuple[str, list[list[Any]]]:
        table = read_parquet(store, path, names)
        found = set(names) <= set(table.column_names)
        return path, [table.column(name).to_pylist() if found else [] for name in names]

    with ThreadPoolExecutor(THREADS, thread_name_prefix="record-digests") as pool:
        for start in range(0, len(paths), THREADS):
            yield from pool.map(read, paths[start : start + THREADS])
