"""A control that answers slowly, or not any more."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence

from pipeline.jobplacement import StopConfig
from pipeline.runtime.supervise.control import Control
from pipeline.runtime.supervise.control_calls import DirectControl
from pipeline.runtime.supervise.guard import Guard
from pipeline.runtime.supervise.ledger import Verdict


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def idle(_seconds: float) -> None:
    await asyncio.sleep(0)


class Line(DirectControl):
    """The control at the end of a slow line, which can be cut: then nothing comes through, as from a dead process."""

    def __init__(self, control: Control, dice: random.Random) -> None:
        super().__init__(control)
        self.dice = dice
        self.cut = False
        self.calls = 0
        self.busy = False
        self.ticks: int | None = None
        self.apart: set[str] = set()
        """What was opened last as a group of suspects."""

    async def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> Mapping[str, tuple[Verdict, int]]:
        self.calls += 1
        self.busy = bool(keys)
        await self.wait()
        found = self.control.begin(process, keys, ended, together)
        if together:
            assert self.control.open_in(process) <= set(keys), "a group of suspects is not alone"
        opened = {key for key, (verdict, _) in found.items() if verdict == "go"}
        self.apart = opened if together else self.apart - opened
        await self.wait()
        self.busy = False
        return found

    async def wait(self) -> None:
        for _ in range(self.dice.randrange(3) if self.ticks is None else self.ticks):
            await asyncio.sleep(0)
        if self.cut:
            await asyncio.Event().wait()


def run(body: Callable[[Guard, Line], Awaitable[None]], *, suspects: Sequence[str] = ()) -> None:
    async def main() -> None:
        control = Control(StopConfig(), now=lambda: 0.0)
        control.born("p", "node")
        if suspects:
            control.begin("p", suspects)
            control.born("p", "node")
        line = Line(control, random.Random(0))
        await asyncio.wait_for(body(Guard("p", line, sleep=idle), line), 10)

    asyncio.run(main())
