"""Saved: what a pass over the input found, so that a resumed run does not read the input again to know what is left.

Two objects below `_scans/<job>/` in the output: numbers, and last the JSON that names them. The next pass of the job
throws them away.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input import InputScan
from pipeline.runtime.input.locate import locate
from pipeline.runtime.since.entries import Entries, Pass
from pipeline.runtime.since.work import Work
from pipeline.runtime.store import Store, json_bytes, json_object
from pipeline.schema.fingerprint import digest

SCANS = "_scans"
_NAME = "scan-"
_VERSION = 1


def key_of(config: InputConfig, unit_documents: int | None, base: Mapping[str, str]) -> str:
    """What a pass depends on, besides what is done to documents: files by path, size and time, what is taken of them.
    "" if some file does not tell when it was written.

    Raises:
        InputError: the input is missing.
    """
    located = locate(config)
    if any(file.mtime < 0 for file in located.files):
        return ""
    files = [[file.path, file.size, file.mtime] for file in located.files]
    taken = [_VERSION, config.model_dump(mode="json"), located.place.base, located.format, unit_documents]
    return digest([taken, files, dict(base)])


def save(store: Store, key: str, found: InputScan, met: Pass, work: Work) -> None:
    """Keep a pass that is over, in place of any other.

    Raises:
        OSError: it cannot be written.
    """
    import numpy as np

    for entry in list(store.list(_NAME)):
        if not entry.key.startswith(_NAME + key):
            store.delete(entry.key)
    numbers = io.BytesIO()
    np.savez_compressed(
        numbers,
        states=np.frombuffer(met.states, np.uint8),
        repeated=np.array(list(met.repeats.items()), np.int64).reshape(-1, 2),
        hashes=np.frombuffer(met.hashes, np.uint64),
        digests=np.frombuffer(met.digests, np.uint64),
    )
    data = numbers.getvalue()
    store.put(f"{_NAME}{key}.npz", data)
    about: dict[str, Any] = {"examples": met.examples, "further": met.further}
    about |= {"numbers": hashlib.sha256(data).hexdigest(), "work": work.known, "scan": found.to_json()}
    store.put(f"{_NAME}{key}.json", json_bytes(about))


def load(store: Store, key: str, entries: Entries, work: Work) -> tuple[InputScan, Pass] | None:
    """The pass that was saved, if it would come to the same today.

    Raises:
        OSError: the store cannot be read.
    """
    import numpy as np

    about, data = json_object(store.get(f"{_NAME}{key}.json")), store.get(f"{_NAME}{key}.npz")
    if about is None or data is None or hashlib.sha256(data).hexdigest() != about.get("numbers"):
        return None
    try:
        if any(work.of(schema) != then for schema, then in about["work"].items()):
            return None
        found = InputScan.from_json(about["scan"])
        met = Pass(entries, work)
        with np.load(io.BytesIO(data), allow_pickle=False) as numbers:
            if len(numbers["states"]) != len(met.states):
                return None
            met.states = bytearray(numbers["states"].tobytes())
            met.repeats = Counter(dict(numbers["repeated"].tolist()))
            met.hashes, met.digests = (array("Q", numbers[name].tobytes()) for name in ("hashes", "digests"))
        met.examples, met.further = list(about["examples"]), int(about["further"])
    except (KeyError, TypeError, ValueError, InputError, zipfile.BadZipFile):
        return None  # of another version: the input is read again
    return found, met
