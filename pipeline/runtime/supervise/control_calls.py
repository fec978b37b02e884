"""How processes reach the job's control: the calls, and the way through Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Literal, Protocol

from pipeline.errors import EngineError
from pipeline.runtime.supervise.control import Control, Orders
from pipeline.runtime.supervise.ledger import Verdict

CALL_SECONDS = 60.0
"""The control answers in a millisecond. It is late only if its node is gone, or starved of memory or CPU."""


class ControlCalls(Protocol):
    """What `control.Control` does, asked from another process. Every call may raise EngineError: nobody answers."""

    async def born(self, process: str, node: str) -> None: ...

    async def missed(self, process: str, key: str) -> None: ...

    async def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> Mapping[str, tuple[Verdict, int]]: ...

    async def report(
        self,
        process: str,
        schemas: Mapping[str, Mapping[str, Any]],
        done_units: int = 0,
        reason: str = "",
        pilot: bool = False,
    ) -> Orders: ...

    async def gate(self, schema: str) -> Literal["open", "wait", "stopped"]: ...


class DirectControl:
    """The control in the same process: for simulations and measurements."""

    def __init__(self, control: Control) -> None:
        self.control = control

    async def born(self, process: str, node: str) -> None:
        self.control.born(process, node)

    async def missed(self, process: str, key: str) -> None:
        self.control.missed(process, key)

    async def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> Mapping[str, tuple[Verdict, int]]:
        return self.control.begin(process, keys, ended, together)

    async def report(
        self,
        process: str,
        schemas: Mapping[str, Mapping[str, Any]],
        done_units: int = 0,
        reason: str = "",
        pilot: bool = False,
    ) -> Orders:
        return self.control.report(process, schemas, done_units, reason, pilot)

    async def gate(self, schema: str) -> Literal["open", "wait", "stopped"]:
        return self.control.gate(schema)


class RayControl:
    """The control as a Ray actor. `handle` is the actor's; `seconds` bound each call."""

    def __init__(self, handle: Any, *, seconds: float = CALL_SECONDS) -> None:
        self._handle = handle
        self._seconds = seconds

    async def born(self, process: str, node: str) -> None:
        await self._answer(self._handle.born.remote(process, node))

    async def missed(self, process: str, key: str) -> None:
        await self._answer(self._handle.missed.remote(process, key))

    async def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> Mapping[str, tuple[Verdict, int]]:
        found: Mapping[str, tuple[Verdict, int]] = await self._answer(
            self._handle.begin.remote(process, list(keys), list(ended), together)
        )
        return found

    async def report(
        self,
        process: str,
        schemas: Mapping[str, Mapping[str, Any]],
        done_units: int = 0,
        reason: str = "",
        pilot: bool = False,
    ) -> Orders:
        orders: Orders = await self._answer(
            self._handle.report.remote(process, dict(schemas), done_units, reason, pilot)
        )
        return orders

    async def gate(self, schema: str) -> Literal["open", "wait", "stopped"]:
        state: Literal["open", "wait", "stopped"] = await self._answer(self._handle.gate.remote(schema))
        return state

    async def _answer(self, call: Awaitable[Any]) -> Any:
        """Raises EngineError if the actor is gone or late; what the control itself raises comes as it is."""
        scope = asyncio.timeout(self._seconds)
        try:
            async with scope:
                return await call
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise _gone(f"it did not answer in {self._seconds:g} s") from error
        except Exception as error:
            from ray.exceptions import RayActorError

            if isinstance(error, RayActorError):
                raise _gone(f"{type(error).__name__}: {error}".splitlines()[0][:300]) from error
            raise


def _gone(why: str) -> EngineError:
    return EngineError(
        f"the job's control actor is gone ({why}): it ran on the node of the driver, which may be out of memory. What "
        "was committed and saved is kept: run the same command to continue."
    )
