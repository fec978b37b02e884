"""How processes reach the job's control: the calls, and the way through Ray."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pipeline.errors import EngineError
from pipeline.runtime.supervise.control import Control, Orders
from pipeline.runtime.supervise.ledger import Verdict

CALL_SECONDS = 60.0
"""The control answers in a millisecond. It is late only if its node is gone, or starved of memory or CPU."""


class ControlCalls(ABC):
    """What `control.Control` does, asked from another process. Every call may raise EngineError: nobody answers."""

    @abstractmethod
    async def ask(self, name: str, *arguments: Any) -> Any:
        """Call the control's method of this name."""

    async def born(self, process: str, node: str) -> None:
        await self.ask("born", process, node)

    async def missed(self, process: str, key: str) -> None:
        await self.ask("missed", process, key)

    async def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> Mapping[str, tuple[Verdict, int]]:
        found: Mapping[str, tuple[Verdict, int]] = await self.ask("begin", process, list(keys), list(ended), together)
        return found

    async def report(
        self,
        process: str,
        schemas: Mapping[str, Mapping[str, Any]],
        done_units: int = 0,
        reason: str = "",
        pilot: bool = False,
    ) -> Orders:
        orders: Orders = await self.ask("report", process, dict(schemas), done_units, reason, pilot)
        return orders

    async def gate(self, schema: str) -> Literal["open", "wait", "stopped"]:
        state: Literal["open", "wait", "stopped"] = await self.ask("gate", schema)
        return state

    async def warn(self, words: str) -> None:
        await self.ask("warn", words)


class DirectControl(ControlCalls):
    """The control in the same process: for simulations and measurements."""

    def __init__(self, control: Control) -> None:
        self.control = control

    async def ask(self, name: str, *arguments: Any) -> Any:
        """As `ControlCalls.ask`."""
        return getattr(self.control, name)(*arguments)


class RayControl(ControlCalls):
    """The control as a Ray actor. `handle` is the actor's; `seconds` bound each call."""

    def __init__(self, handle: Any, *, seconds: float = CALL_SECONDS) -> None:
        self._handle = handle
        self._seconds = seconds

    async def ask(self, name: str, *arguments: Any) -> Any:
        """As `ControlCalls.ask`. What the control itself raises comes as it is.

        Raises:
            EngineError: the actor is gone or late.
        """
        scope = asyncio.timeout(self._seconds)
        try:
            async with scope:
                return await getattr(self._handle, name).remote(*arguments)
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
