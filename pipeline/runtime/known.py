"""What can be known of a job's run without starting anything: its id, and whether it is committed.

The same steps as at the beginning of `flow.run`, in the same order, on a store that is not written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pipeline.compile.plans import plans_of
from pipeline.job import JobConfig
from pipeline.records import Manifest
from pipeline.runtime.input.locate import locate
from pipeline.runtime.lookups import load_lookups, lookups_digest
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.source import source_of
from pipeline.runtime.store import open_store
from pipeline.runtime.store.readonly import ReadOnly
from pipeline.runtime.switch import read_switch, switched


@dataclass(frozen=True, slots=True)
class KnownRun:
    """`manifest` is the run's, or the last one's if an incremental job has nothing to do; None: there is work."""

    run_id: str
    where: str
    manifest: Manifest | None


def input_bytes(job: JobConfig) -> int:
    """How many bytes `known_run` would read at most: the sizes of the input's files.

    Raises:
        InputError: the input cannot be listed from here.
    """
    return sum(file.size for file in locate(job.input).files)


def known_run(job: JobConfig, again: Collection[str] = ()) -> KnownRun:
    """The run that the job would be if it were started now. Reads the whole input, unless a saved scan of it is beside
    the runs, and tries the schemas in the sandbox, unless their verdicts are kept.

    Raises:
        GristmillError: what `flow.run` raises before it opens a run.
    """
    store, looked_up = ReadOnly(open_store(job.output)), lookups_digest(load_lookups(job))
    job = switched(job, read_switch(store, job.name))
    source = source_of(job, looked_up, store, again)
    found = source.scan(job.placement.unit_documents)
    if (last := source.done()) is not None:
        return KnownRun(last[1].run_id, *last)
    plans = plans_of(job, filter(None, found.schema_counts)).by_name
    identity = identity_of(job, found, plans, looked_up, source.origin)
    if (last := source.done(identity)) is not None:
        return KnownRun(last[1].run_id, *last)
    run = store.at(f"run={identity.run_id}")
    return KnownRun(identity.run_id, run.where, read_manifest(run))
