"""Which part of the input a run is about: all of it, what the last run does not hold (`runtime/since/`), or a share of
what another run holds (`runtime/sampled.py`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from pipeline.errors import JobFileError
from pipeline.job import JobConfig
from pipeline.records import Manifest
from pipeline.runtime.input import InputScan, scan_once
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.commit import Run
from pipeline.runtime.output.identity import Identity
from pipeline.runtime.sampled import Sample, Sampled
from pipeline.runtime.since import since_last
from pipeline.runtime.store import Store


class Source(Protocol):
    """`origin` is what a run's identity says of it, None for all of the input."""

    @property
    def origin(self) -> Mapping[str, str] | None: ...

    def scan(self, unit_documents: int | None) -> InputScan: ...

    def done(self, identity: Identity | None = None) -> tuple[str, Manifest] | None:
        """Where the last run lies, and its manifest, if it leaves nothing to do; asked again with the new identity."""
        ...

    def told(self) -> str:
        """One line for people, "" if there is nothing to say."""
        ...

    def finish(self, run: Run) -> Mapping[str, Any] | None:
        """What the manifest says of it; called when all rows are written."""
        ...

    def check(self, run: Run) -> None:
        """Called last before the manifest is published.

        Raises:
            RunChangedError: it must not be.
        """
        ...


class Whole:
    """All of the input."""

    origin = None

    def __init__(self, job: JobConfig, output: Store) -> None:
        self._job = job
        self._output = output

    def scan(self, unit_documents: int | None) -> InputScan:
        return scan_once(self._job.input, unit_documents, self._output)

    def done(self, identity: Identity | None = None) -> tuple[str, Manifest] | None:
        return None

    def told(self) -> str:
        return ""

    def finish(self, run: Run) -> Mapping[str, Any] | None:
        return None

    def check(self, run: Run) -> None: ...


def _check_apart(job: JobConfig) -> None:
    """A run must not find its own files in its input."""
    if "://" in job.input.path or not os.path.isdir(folder := os.path.realpath(job.input.path)):
        return
    for key, place in (("output", job.output), ("events.path", job.events.path)):
        if place and "://" not in place and os.path.commonpath([folder, os.path.realpath(place)]) == folder:
            raise JobFileError(
                f"{key} {place} lies below input.path {job.input.path}: the next run would read what this one wrote. "
                "Choose a place beside the input."
            )


def source_of(
    job: JobConfig, lookups: Digests, output: Store, again: Collection[str] = (), sample: Sample | None = None
) -> Source:
    """What a job's input is. `again` asks an incremental run to take documents again (`since.AGAIN`); a `sample` is
    taken whatever the job says of its input.

    Raises:
        JobFileError: `again` without `input.since`, or an output that lies in the input.
        OutputError: the last run, or that of the sample, cannot be read.
    """
    _check_apart(job)
    if sample is not None:
        return Sampled(job, sample, output)
    if job.input.since is not None:
        return since_last(job, lookups, output, again)
    if again:
        raise JobFileError("--again speaks of incremental runs: write `since: last` under `input`.")
    return Whole(job, output)
