"""The seam between submitting and Ray: what is asked of a job server, and what it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

JOB = "gristmill_job"
OUTPUT = "gristmill_output"
RUN = "gristmill_run"
DRAIN = "gristmill_drain_seconds"
"""Keys of the metadata that go with a submission. RUN is missing where the input was not read before."""

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True, slots=True)
class Request:
    """What is submitted. `env` is of the driver and of all its workers; its values are secret."""

    id: str
    entrypoint: str
    working_dir: str
    excludes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a job server knows of a submission. `status` is Ray's word; `exit_code` the driver's, None if it was killed,
    never began or still runs; times are milliseconds since 1970 by the server's clock."""

    id: str
    status: str
    exit_code: int | None = None
    message: str = ""
    started: int | None = None
    ended: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in ENDED


class JobServer(Protocol):
    """All methods raise NotReachedError where trying again may help, and SubmissionError where it will not."""

    @property
    def address(self) -> str: ...

    def submit(self, request: Request) -> None:
        """Have a job started under an id that is not taken. After NotReachedError it may have been."""

    def find(self, job_id: str) -> Submitted | None:
        """What is known of an id, None if nothing."""

    def all(self) -> list[Submitted]:
        """All submissions that the server knows."""

    def stop(self, job_id: str) -> None:
        """Have the driver of a job told to end (SIGTERM), if it runs. Does not wait for it."""

    def log(self, job_id: str) -> str:
        """All that the driver has printed so far."""

    def tail(self, job_id: str) -> AsyncGenerator[str, None]:
        """What the driver prints, from its first line on, until it has ended or the connection has."""
