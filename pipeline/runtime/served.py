"""HandlePool: the engine pool of a Serve application, as a process outside it, or its endpoint, reaches it."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import Any

from pipeline.engines.busy import EngineBusyError
from pipeline.engines.replica import ReplicaGone
from pipeline.engines.serve import Ask, ServeEngine
from pipeline.errors import EngineError, JobFileError
from pipeline.records import Completion
from pipeline.runtime.output.identity import decoding_of
from pipeline.runtime.setup import Setup
from pipeline.schema.plan import DecodingPlan

DEPLOYMENT = "Engine"
"""The name of the engine deployment in an application."""

BUSY_SECONDS = 1.0
"""When to come again, where Serve's own limit was reached and nobody knows better."""

FACTS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a replica says: its completion, or that it does not know the plan, or after how many seconds to come
    again."""

    completion: Completion | None = None
    retry_after: float | None = None


class HandlePool:
    """As `engines.serve.SharedPool`. It may travel to another process until it is used."""

    def __init__(self, application: str, handle: Any = None) -> None:
        """`handle` is the deployment's, if it is known already."""
        self._application = application
        self._handle = handle
        self._opening: asyncio.Task[Any] | None = None

    async def generate(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
        """As `SharedPool.generate`. Cancellation ends the request there, too."""
        reply: Reply = await self._call(session, "generate", ask)
        if reply.completion is None and reply.retry_after is None:
            reply = await self._call(session, "generate", ask, plan)
        if reply.retry_after is not None:
            raise EngineBusyError("the engines have no room", reply.retry_after)
        if reply.completion is None:
            raise EngineError("an engine of the pool did not take a plan that it was given. Please report this.")
        return reply.completion

    async def facts(self) -> dict[str, Any]:
        """What the pool's engine config says of the decoding.

        Raises:
            EngineError: it does not answer.
            ReplicaGone, EngineBusyError: as for a request.
        """
        async with asyncio.timeout(FACTS_SECONDS):
            found: dict[str, Any] = await self._call("facts", "facts")
            return found

    async def _call(self, session: str, method: str, *arguments: Any) -> Any:
        if self._handle is None:
            # One for all: each handle has a router of its own.
            self._opening = self._opening or asyncio.create_task(asyncio.to_thread(_handle_of, self._application))
            self._handle = await asyncio.shield(self._opening)
        # In a context of its own: calls within one request of an endpoint share its id, by which Serve's router finds
        # them, and it loses all but one.
        remote = getattr(self._handle.options(session_id=session), method).remote
        response = contextvars.Context().run(remote, *arguments)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()
            raise
        except Exception as error:
            raise _meaning(error) from error


def shared_pool(setup: Setup) -> ServeEngine:
    """The engine of a job with placement `serve`, for one process of those that call it.

    Raises:
        JobFileError: the application's engine would answer otherwise than the job's `engine` says.
        EngineError: there is no such application, or it does not answer.
    """
    pool, mine = HandlePool(setup.job.placement.application), decoding_of(setup.job.engine)
    theirs = asyncio.run(_patient_facts(pool))
    if differing := sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)):
        told = "; ".join(f"{key} is {mine.get(key)!r} here and {theirs.get(key)!r} there" for key in differing)
        raise JobFileError(
            f"the engine of application {setup.job.placement.application!r} is another one than the job's: {told}. "
            "Give both the same engine config."
        )
    return ServeEngine(HandlePool(setup.job.placement.application), online=False)


async def _patient_facts(pool: HandlePool) -> dict[str, Any]:
    """Once more, if the first one asked is just going."""
    try:
        return await pool.facts()
    except (ReplicaGone, EngineBusyError):
        return await pool.facts()


def _handle_of(application: str) -> Any:
    from ray import serve

    try:
        return serve.get_deployment_handle(DEPLOYMENT, application)
    except Exception as error:
        raise EngineError(
            f"there is no Serve application {application!r} on this cluster ({type(error).__name__}). Start it with "
            "`serve deploy`, or correct `placement.application`."
        ) from error


def _meaning(error: Exception) -> Exception:
    """What an exception of a handle's call means to a request."""
    from ray import exceptions
    from ray.serve import exceptions as serve_exceptions

    if isinstance(error, serve_exceptions.BackPressureError):
        return EngineBusyError("the router has no room", error.retry_after_s or BUSY_SECONDS)
    if isinstance(error, serve_exceptions.DeploymentUnavailableError):
        return EngineError(f"the engine pool could not be deployed: {error.message}")
    if isinstance(error, exceptions.RayTaskError):
        cause = error.cause
        return cause if isinstance(cause, EngineError | JobFileError) else EngineError(str(cause))
    if isinstance(error, exceptions.RayError | serve_exceptions.RayServeException):
        return ReplicaGone(f"{type(error).__name__}: {error}".splitlines()[0])
    return error
