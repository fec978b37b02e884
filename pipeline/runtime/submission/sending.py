"""Submitting once: what runs is followed, what ended gets its next attempt, and two runs of a job do not meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import GristmillError, NotReachedError, RunBusyError, SubmissionError
from pipeline.observe.visible import visible
from pipeline.runtime.output.secrets import without_credentials
from pipeline.runtime.store import open_store
from pipeline.runtime.submission.names import attempt_of, next_id
from pipeline.runtime.submission.prepare import Prepared
from pipeline.runtime.submission.receipt import ids_below
from pipeline.runtime.submission.server import JOB, OUTPUT, JobServer, Submitted

Overlap = Literal["refuse", "queue", "allow"]
Wait = Callable[[str], object]
"""Called with the id of another submission; returns when that is over."""

TRIES = 5


@dataclass(frozen=True, slots=True)
class Sent:
    """The submission to follow; `new` if it was made now."""

    id: str
    new: bool


def send(server: JobServer, prepared: Prepared, overlap: Overlap, wait: Wait) -> Sent:
    """Submit, or find the submission of the same work that runs already.

    Raises:
        RunBusyError: another submission of this job to this output runs, and `overlap` is `refuse`.
        SubmissionError: the server refuses or does not answer.
    """
    base, taken = prepared.request.id, _receipts(prepared)
    most = len(taken) + TRIES
    while len(taken) < most:
        known = server.all()
        if live := [one.id for one in known if attempt_of(one.id, base) and not one.over]:
            return Sent(max(live, key=lambda one: attempt_of(one, base) or 0), new=False)
        if overlap != "allow" and (others := running(known, prepared.job.name, prepared.job.output)):
            if overlap == "refuse":
                raise _busy(others[0])
            wait(others[0].id)
            continue
        job_id = next_id(base, [*taken, *(one.id for one in known)])
        if _submitted(server, prepared, job_id):
            return Sent(job_id, new=True)
        taken.append(job_id)  # by somebody else, a moment ago, or of a job that was deleted
    raise SubmissionError(f"{base}: other submissions were quicker {TRIES} times. Submit again.")


def running(known: list[Submitted], job: str, output: str) -> list[Submitted]:
    """The submissions of a job to an output that are not over, whatever their ids, latest first."""
    return [one for one in of_job(known, job, output) if not one.over]


def of_job(known: list[Submitted], job: str, output: str) -> list[Submitted]:
    """All submissions of a job to an output, latest first by the server's clock."""
    mine = {JOB: job, OUTPUT: without_credentials(output)}
    found = [one for one in known if all(one.metadata.get(key) == value for key, value in mine.items())]
    return sorted(found, key=lambda one: (one.started or 0, one.id), reverse=True)


def _submitted(server: JobServer, prepared: Prepared, job_id: str) -> bool:
    """Submit under an id; False if that is taken. An answer that got lost is asked for."""
    try:
        server.submit(prepared.attempt(job_id))
    except NotReachedError as error:
        # Ray answers HTTP 500 if an id is taken, like any other trouble.
        if "already exists" in str(error):
            return False
        if server.find(job_id) is None:
            raise
    return True


def _receipts(prepared: Prepared) -> list[str]:
    try:
        return ids_below(open_store(prepared.job.output), prepared.request.id)
    except GristmillError:
        return []


def _busy(other: Submitted) -> RunBusyError:
    return RunBusyError(
        f"{visible(other.id)}, another submission of this job, is {other.status}. Submit again when it is over, or now "
        f"with --overlap queue (wait for it) or allow. `gristmill cancel {visible(other.id)}` ends it."
    )
