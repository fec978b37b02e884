"""Which run of a job was the last one. No clock is asked: every incremental run takes the next number of its job.

`_since/<job>/<number>.json` in the output names the run that took it, and is created exclusively just before the run's
manifest. The last run is the committed one with the highest number. A number whose run was not committed after all, or
was deleted, is passed over.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.errors import OutputError
from pipeline.records import Manifest
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.run_record import reading
from pipeline.runtime.store import Store, json_object, publish, writing

FOLDER = "_since"
_CLAIM = re.compile(r"(\d{8})\.json")


@dataclass(frozen=True, slots=True)
class Base:
    """A committed incremental run that another one starts from; `store` is its place."""

    run_id: str
    sequence: int
    manifest: Manifest
    store: Store

    @property
    def files(self) -> list[dict[str, Any]]:
        """The files of its index."""
        return list(self.manifest.incremental["index"])


def last_run(output: Store, job: str) -> Base | None:
    """The last committed incremental run of a job in an output, or None if there is none.

    Raises:
        OutputError: the output cannot be looked into, or a committed run says nothing of an index.
    """
    for number, run_id in _claims(output, job):
        store = output.at(f"run={run_id}")
        manifest = read_manifest(store)
        if manifest is None:
            continue
        if not {"index", "runs"} <= set(manifest.incremental):
            raise OutputError(
                f"{store.where} took number {number} of the incremental runs of `{job}`, and its manifest names no "
                "index. Move the run away: then the one before it is taken for the last."
            )
        return Base(run_id, number, manifest, store)
    return None


def claim(output: Store, job: str, run_id: str) -> int:
    """The number of a run among the incremental runs of a job: the one that it has taken before, or the next.

    Raises:
        OutputError: the output cannot be read or written.
        OutcomeUnknownError: nobody can tell whether the number was taken. Running again finds out.
    """
    highest = 0
    for number, taken_by in _claims(output, job):
        highest = max(highest, number)
        if taken_by == run_id:
            return number
        if read_manifest(output.at(f"run={taken_by}")) is not None:
            break  # a run takes its number after the one that it starts from
    while True:
        highest += 1
        value = {"run_id": run_id, "job": job, "attempt": uuid.uuid4().hex}
        with writing(f"{output.where}/{FOLDER}"):
            if publish(output, f"{FOLDER}/{job}/{highest:08d}.json", value):
                return highest


def is_committed(output: Store, run_id: str) -> bool:
    """Whether a run is there, and committed.

    Raises:
        OutputError: it cannot be looked for.
    """
    with reading(f"{output.where}/run={run_id}"):
        return output.size(f"run={run_id}/manifest.json") is not None


def _claims(output: Store, job: str) -> Iterator[tuple[int, str]]:
    """The numbers that runs took, the highest first. One that cannot be read as one was never taken by a run."""
    folder = f"{FOLDER}/{job}/"
    with reading(f"{output.where}/{folder}"):
        names = [entry.key.removeprefix(folder) for entry in output.list(folder)]
    for name in sorted(names, reverse=True):
        if (found := _CLAIM.fullmatch(name)) is None:
            continue
        with reading(f"{output.where}/{folder}{name}"):
            run_id = (json_object(output.get(folder + name)) or {}).get("run_id")
        if isinstance(run_id, str) and re.fullmatch(r"[0-9a-f]+", run_id):
            yield int(found[1]), run_id
