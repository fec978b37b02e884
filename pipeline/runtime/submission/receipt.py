"""`_submissions/<submission id>.json` in a job's output: which run a submission came to.

Written by the driver, on the cluster, when it knows the run; read by whoever asks how the submission ended. So the
manifest that counts is found, though the input may have changed after the job was submitted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress

from pipeline.runtime.store import Store, json_bytes, json_object, open_store, reason

VARIABLE = "GRISTMILL_SUBMISSION"
"""By which a driver is told its submission id."""

FOLDER = "_submissions"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_RUN = re.compile(r"[0-9a-f]{8,64}")

Observer = Callable[[str, object], None]


def noting(observe: Observer, output: str, say: Callable[[str], object]) -> Observer:
    """An observer of a run that also leaves the receipt, in a driver that was submitted. That it cannot be written is
    said, and changes nothing else."""
    job_id = os.environ.get(VARIABLE, "")
    if not _ID.fullmatch(job_id):
        return observe

    def noted(event: str, value: object) -> None:
        run = getattr(getattr(value, "identity", None), "run_id", "") if event == "opened" else ""
        if event == "done":
            run = str(value).rpartition("run=")[2]
        if run:
            try:
                open_store(output).put(_key(job_id), json_bytes({"submission": job_id, "run_id": run}))
            except OSError as error:
                say(f"the receipt of this submission could not be written to {output}: {reason(error)}")
        observe(event, value)

    return noted


def run_of(output: Store, job_id: str) -> str:
    """The id of the run that a submission came to, "" if it left no receipt.

    Raises:
        OSError: the output cannot be read.
    """
    found = json_object(output.get(_key(job_id))) or {}
    run = str(found.get("run_id", ""))
    return run if _RUN.fullmatch(run) else ""


def ids_below(output: Store, base: str) -> list[str]:
    """The submission ids that begin with `base` and left a receipt, also on clusters that are gone. A help only: empty
    if the output cannot be read."""
    with suppress(OSError):
        entries = output.list(f"{FOLDER}/{base}")
        return [entry.key.rpartition("/")[2].removesuffix(".json") for entry in entries]
    return []


def _key(job_id: str) -> str:
    return f"{FOLDER}/{job_id}.json"
