"""Saved: what a pass over the input found, so that a resumed run does not read the input again to know what is left.

Two objects below `_scans/<job>/` in the output: the scan, then what the pass counted. The next pass of the job replaces
them.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Mapping

from pipeline.job import InputConfig
from pipeline.runtime.input import InputScan
from pipeline.runtime.input import saved as scans
from pipeline.runtime.input.locate import InputFile, Located, locate
from pipeline.runtime.since.entries import Entries, Pass
from pipeline.runtime.since.work import Work
from pipeline.runtime.store import Store
from pipeline.schema.fingerprint import digest


def key_of(config: InputConfig, unit_documents: int | None, base: Mapping[str, str]) -> str:
    """What a pass depends on, besides what is done to documents: files and what is taken of them, and the base. "" if
    their state does not say enough (`settled`).

    Raises:
        InputError: the input is missing.
    """
    located = locate(config)
    if not scans.settled(located):
        return ""
    files = [[file.path, file.size, file.mtime, *_inode(located, file)] for file in located.files]
    taken = [scans.VERSION, config.model_dump(mode="json"), located.place.base, located.format, unit_documents]
    return digest([taken, files, dict(base)])


def save(store: Store, job: str, key: str, found: InputScan, met: Pass, work: Work) -> None:
    """Keep a pass that is over, in place of any other of the job.

    Raises:
        OSError: it cannot be written.
    """
    import numpy as np

    scans.save(store, _scan(job, key), found)
    about = {"work": work.known, "examples": met.examples, "further": met.further, "ids": found.ids_digest}
    numbers = io.BytesIO()
    np.savez_compressed(
        numbers,
        about=np.frombuffer(json.dumps(about).encode("ascii"), np.uint8),
        states=np.frombuffer(met.states, np.uint8),
        repeated=np.array(list(met.repeats.items()), np.int64).reshape(-1, 2),
        hashes=np.frombuffer(met.hashes, np.uint64),
        digests=np.frombuffer(met.digests, np.uint64),
    )
    store.put(_pass(job, key), numbers.getvalue())
    for entry in list(store.list(_pass(job, "").removesuffix(".npz"))):
        if entry.key != _pass(job, key):
            store.delete(entry.key)


def load(
    store: Store, job: str, key: str, config: InputConfig, known: tuple[Entries, Work]
) -> tuple[InputScan, Pass] | None:
    """The scan and the pass that were saved, if they would come to the same today; else None.

    Raises:
        OSError: the store cannot be read.
        InputError: the input is missing.
    """
    import numpy as np

    entries, work = known
    data = store.get(_pass(job, key))
    found = scans.load(store, _scan(job, key), locate(config)) if data is not None else None
    if data is None or found is None:
        return None
    met = Pass(entries, work)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as numbers:
            about = json.loads(numbers["about"].tobytes())
            if any(work.of(schema) != then for schema, then in about["work"].items()):
                return None
            if about["ids"] != found.ids_digest or len(numbers["states"]) != len(met.states):
                return None
            met.states = bytearray(numbers["states"].tobytes())
            met.repeats = Counter(dict(numbers["repeated"].tolist()))
            met.hashes, met.digests = (array("Q", numbers[name].tobytes()) for name in ("hashes", "digests"))
        met.examples, met.further = list(about["examples"]), int(about["further"])
    except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None  # torn, or of another version: the input is read again
    return found, met


def _scan(job: str, key: str) -> str:
    return f"{scans.SCANS}/{job}/scan-{key}.json.gz"


def _pass(job: str, key: str) -> str:
    return f"{scans.SCANS}/{job}/pass-{key}.npz"


def _inode(located: Located, file: InputFile) -> tuple[int, ...]:
    """Of a local file, what changes with it even if its time is set back, as copying tools do."""
    if not located.place.local:
        return ()
    try:
        found = os.stat(located.place.full(file.path))
    except OSError:  # it has just gone, which whoever reads it will tell
        return (-1,)
    return found.st_ino, found.st_ctime_ns
