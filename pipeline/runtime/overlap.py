"""Overlap: what becomes of a run of a job while another run of it is under way. Refused or queued, by a lease on the
job in its output, whichever cluster or machine the other is on.

Nothing is doubled without it: a run has a lease of its own, and of two incremental runs that began from the same one
only the first is committed (`since/choose.py`). With it, the second does not do the first one's work again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pipeline.errors import RunBusyError
from pipeline.job import JobConfig
from pipeline.runtime.lease import BEAT_SECONDS, Beating, Lease
from pipeline.runtime.output.sweep import sweep_leases
from pipeline.runtime.store import Store, open_store

OVERLAPS = ("refuse", "queue", "allow")
Observer = Callable[[str, Any], None]
Wrap = Callable[[Observer], Observer]
"""Makes an observer of a run that also ends it, by RunBusyError, once another has taken the job over."""

FOLDER = "_jobs"
PAUSE_SECONDS = 5.0


def usual(job: JobConfig) -> str:
    """Two incremental runs cannot both be committed; runs over all of their input have nothing to do with each other
    unless they are the same one."""
    return "allow" if job.input.since is None else "refuse"


@contextmanager
def alone(
    job: JobConfig,
    overlap: str,
    say: Callable[[str], object],
    *,
    acquire: Callable[[Store], Lease] = Lease.acquire,
    sleep: Callable[[float], object] = time.sleep,
    every: float = BEAT_SECONDS,
) -> Iterator[Wrap]:
    """Hold a job while the block runs, unless `allow`, which takes no notice of others and is not noticed.

    Raises:
        RunBusyError: `refuse`, and another run holds the job.
        OutputError: as `Lease.acquire`.
    """
    if overlap == "allow":
        yield lambda observe: observe
        return
    store, told = open_store(job.output).at(f"{FOLDER}/{job.name}"), False
    while (lease := _had(store, acquire, job.name, refuse=overlap == "refuse")) is None:
        if not told:
            say(f"waiting for the end of another run of `{job.name}`: see {store.where}")
        told = True
        sleep(PAUSE_SECONDS)
    try:
        with suppress(OSError):
            sweep_leases(store)  # one is left of each run
        with Beating(lease, every) as beating:
            yield lambda observe: _checked(observe, beating)
    finally:
        lease.release()


def _had(store: Store, acquire: Callable[[Store], Lease], job: str, *, refuse: bool) -> Lease | None:
    """The lease, None if another has it."""
    try:
        return acquire(store)
    except RunBusyError as error:
        if not refuse:
            return None
        raise RunBusyError(
            f"another run of `{job}` is under way: {error} --overlap queue waits for its end instead."
        ) from error


def _checked(observe: Observer, beating: Beating) -> Observer:
    def checked(event: str, value: Any) -> None:
        if event == "progress":
            beating.check()
        observe(event, value)

    return checked
