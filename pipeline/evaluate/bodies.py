"""Bodies: the run that is evaluated, and the schemas that its gold is held against."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from pipeline.errors import OutputError, SchemaError
from pipeline.jobfile import load_job
from pipeline.runtime.output.browse import Browsed, browse
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.run_record import recorded_job, runs_of
from pipeline.runtime.store import open_store
from pipeline.schema.registry import load_schema

_EVERY = 2**63
_YAML = (".yaml", ".yml")


def run_of(path: str) -> tuple[Browsed, str | None]:
    """The run that a path or URI means, with all its files, and where its schemas are: of a job file, the run of that
    job in its output that was committed last; else as `gristmill report` takes it. The place is None if unknown.

    Raises:
        JobFileError: the job file cannot be used.
        OutputError: there is no committed run.
    """
    if os.path.splitext(path)[1].lower() not in _YAML or os.path.isdir(path):
        run = browse(path, _EVERY)
        with suppress(OutputError):
            return run, recorded_job(run.store)[0].schemas
        return run, None
    job = load_job(path)
    found = []
    for store in runs_of(open_store(job.output)):
        manifest = read_manifest(store)
        if manifest is not None and manifest.job == job.name:
            found.append((manifest.committed, manifest.started, manifest.run_id, store))
    if not found:
        raise OutputError(f"{job.output} has no committed run of the job {job.name!r}. Run it: gristmill run {path}")
    return browse(max(found, key=lambda one: one[:3])[3].where, _EVERY), job.schemas


def bodies_of(
    run: Browsed, schemas: str | None, names: Iterable[str], notes: list[str]
) -> dict[str, Mapping[str, Any]]:
    """The body of each schema of a run by name. One that cannot be read is empty, which takes anything; a note says so,
    as where one is not what the run was made with."""
    if schemas is not None and "://" not in schemas and not os.path.isdir(schemas):
        notes.append(f"{schemas} is no directory of schemas: name one with --schemas")
        schemas = None
    bodies: dict[str, Mapping[str, Any]] = {}
    for name in names:
        bodies[name] = {}
        try:
            loaded = load_schema(schemas or "", name) if schemas else None
        except SchemaError as error:
            notes.append(f"schema {name} cannot be read, so its gold is not checked: {error.message}")
            continue
        if loaded is None:
            notes.append(f"where schema {name} lies is not known, so its gold is not checked: give --schemas")
            continue
        bodies[name] = loaded.body
        if loaded.digest != run.manifest.schemas.get(name):
            notes.append(f"schema {name} has changed since the run: gold is checked against the one of today")
    return bodies
