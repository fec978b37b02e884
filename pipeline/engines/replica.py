"""Replica: an engine elsewhere, as one caller reaches it. How it is reached is the runtime's matter."""

from __future__ import annotations

from typing import Protocol

from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.fingerprint import digest


class ReplicaGone(Exception):  # an event, not a fault of anybody
    """The replica cannot be reached: it died, or left."""


class Replica(Protocol):
    """An engine elsewhere, as one caller reaches it. `name` tells it from others, in all processes."""

    name: str

    async def ready(self) -> bool:
        """Wait until it serves; whether it has been at work for this job before.

        Raises:
            ReplicaGone: it will never serve again.
            GristmillError: it cannot start; this ends the job.
        """
        ...

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int]:
        """The answer to the request of this key under the plan of this digest, and how many other requests, of all
        callers, are in flight there.

        Raises:
            ReplicaGone: the answer will not come.
        """
        ...

    async def missed(self, key: str) -> None:
        """A request that went to it is about to be given to another one, because it is gone."""
        ...


def request_key(prompt: Prompt, plan: str, sampling: Sampling) -> str:
    """What a request is known by in the job's ledger."""
    asked = [plan, prompt.system, prompt.user, sampling.engine, sampling.max_tokens, sampling.temperature]
    return "r:" + digest([*asked, sampling.seed, sampling.logprobs, sampling.token_ids, sampling.constrained])
