"""HandlePool: the engine pool of a Serve application, as a process outside it, or its endpoint, reaches it."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import Any

from pipeline.engines.busy import EngineBusyError
from pipeline.engines.replica import ReplicaGone
from pipeline.engines.serve import Ask, LostAlone, ServeEngine
from pipeline.errors import EngineError, JobFileError
from pipeline.records import Completion
from pipeline.runtime.output.identity import decoding_of
from pipeline.runtime.setup import Setup
from pipeline.schema.plan import DecodingPlan

DEPLOYMENT = "Engine"
"""The name of the engine deployment in an application."""

BUSY_SECONDS = 1.0
"""When to come again, where Serve's own limit was reached and nobody knows better."""

LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PoolReply:
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
        if ask.alone:
            return await self._alone(session, ask, plan)
        reply: PoolReply = await self._call(session, "generate", ask)
        if reply.completion is None and reply.retry_after is None:
            reply = await self._call(session, "generate", ask, plan)
        return _completion(reply)

    async def _alone(self, session: str, ask: Ask, plan: DecodingPlan) -> Completion:
        """As `generate`, of which the replica tells first that nothing else is in its engine now."""
        handle = (await self._opened()).options(session_id=session, stream=True)
        replies, begun = contextvars.Context().run(handle.generate_alone.remote, ask, plan), False
        try:
            async for reply in replies:
                if reply is not None:
                    return _completion(reply)
                begun = True
        except asyncio.CancelledError:
            replies.cancel()
            raise _unless_ours() from None
        except Exception as error:
            meaning = _meaning(error)
            raise LostAlone(str(meaning)) if begun and isinstance(meaning, ReplicaGone) else meaning from error
        raise ReplicaGone("it ended without an answer")

    async def facts(self) -> dict[str, Any]:
        """What the pool's engine config says of the decoding.

        Raises:
            ReplicaGone, EngineBusyError: as for a request.
        """
        found: dict[str, Any] = await self._call("facts", "facts")
        return found

    async def _call(self, session: str, method: str, *arguments: Any) -> Any:
        handle = await self._opened()
        # In a context of its own: calls within one request of an endpoint share its id, by which Serve's router finds
        # them, and it loses all but one.
        remote = getattr(handle.options(session_id=session), method).remote
        response = contextvars.Context().run(remote, *arguments)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()
            raise _unless_ours() from None
        except Exception as error:
            raise _meaning(error) from error

    async def _opened(self) -> Any:
        if self._handle is None:
            # One for all: each handle has a router of its own.
            self._opening = self._opening or asyncio.create_task(asyncio.to_thread(_handle_of, self._application))
            self._handle = await asyncio.shield(self._opening)
        return self._handle


def _completion(reply: PoolReply) -> Completion:
    if reply.retry_after is not None:
        raise EngineBusyError("the engines have no room", reply.retry_after)
    if reply.completion is None:
        raise EngineError("an engine of the pool did not take a plan that it was given. Please report this.")
    return reply.completion


def _unless_ours() -> BaseException:
    """The cancellation, or that the call was cancelled at its other end: then nobody here is to stop."""
    task = asyncio.current_task()
    ours = task is None or task.cancelling()
    return asyncio.CancelledError() if ours else ReplicaGone("the call was cancelled there")


def shared_pool(setup: Setup) -> ServeEngine:
    """The engine of a job with placement `serve`, for one process of those that call it.

    Raises:
        JobFileError: the application's engine would answer otherwise than the job's `engine` says.
        EngineError: there is no such application, or it does not answer.
    """
    placement, mine = setup.job.placement, decoding_of(setup.job.engine)
    if named := sorted(setup.job.other_engines()):
        raise JobFileError(f"retry.ladder names engine `{named[0]}`, and a pool has one engine. Take it out.")
    theirs = asyncio.run(_patient_facts(HandlePool(placement.application), placement.start_seconds))
    if differing := sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)):
        told = "; ".join(f"{key} is {mine.get(key)!r} here and {theirs.get(key)!r} there" for key in differing)
        raise JobFileError(
            f"the engine of application {placement.application!r} is another one than the job's: {told}. "
            "Give both the same engine config."
        )
    constrained = setup.job.sampling.constrained
    return ServeEngine(HandlePool(placement.application), online=False, constrained=constrained)


async def _patient_facts(pool: HandlePool, seconds: float) -> dict[str, Any]:
    """As soon as a replica is there."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await pool.facts()
                except (ReplicaGone, EngineBusyError):
                    await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError as error:
        raise EngineError(
            f"no engine of the pool answered for {seconds:g} s (`placement.start_seconds`). `serve status` shows what "
            "the application does."
        ) from error


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
    if isinstance(error, exceptions.RayTaskError):  # what the replica raised is about this request
        return error.cause if isinstance(error.cause, Exception) else EngineError(str(error))
    if isinstance(error, exceptions.RayError | serve_exceptions.RayServeException):
        return ReplicaGone(f"{type(error).__name__}: {error}".splitlines()[0])
    return error
