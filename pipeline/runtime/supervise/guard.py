"""Guard: no document is worked on before the ledger knows of it, and suspects are worked on apart.

Within a process, ordinary documents are the readers and a group of suspects is the writer of a readers-writer lock,
which goes by the order of arrival: nobody waits for what came later, so nobody starves. Marks travel in batches: one
call to the control at a time, with all that asked or ended since the last one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pipeline.runtime.supervise.control_calls import ControlCalls
    from pipeline.runtime.supervise.ledger import Verdict

LATER_SECONDS = 1.0
"""How often is asked about a document that may just have killed another process."""

Answer = Literal["run", "poison", "later"]


class _Ask:
    """A document that waits for its turn."""

    __slots__ = ("answer", "key", "turn")

    def __init__(self, key: str, turn: int) -> None:
        self.key = key
        self.turn = turn
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class Guard:
    """Of one process; belongs to one event loop. `sleep` is asyncio's, or a simulation's."""

    def __init__(
        self, process: str, calls: ControlCalls, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.process = process
        self._calls = calls
        self._sleep = sleep
        self._turns = 0
        self._ordinary: deque[_Ask] = deque()
        self._suspects: deque[_Ask] = deque()
        self._ended: list[str] = []
        self._running = 0
        self._apart = False
        """A group of suspects is running."""
        self._failure: Exception | None = None
        self._pump: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def open(self, key: str) -> AsyncIterator[bool]:
        """Work on a document inside. False: it is poison, and must not be worked on.

        An exception from inside means that the process cannot go on: what is open then stays on the ledger, so that
        it is charged with the death, and whoever waits here, or comes later, gets the same exception. Cancellation
        closes only the document's own mark.

        Raises:
            EngineError: the job's control does not answer.
        """
        while (answer := await self._ask(key)) == "later":
            await self._sleep(LATER_SECONDS)
        if answer == "poison":
            yield False
            return
        try:
            yield True
        except Exception as error:
            self._fail(error)
            raise
        except BaseException:
            self._leave(key, closed=self._failure is None)
            raise
        self._leave(key)

    async def _ask(self, key: str) -> Answer:
        if self._failure is not None:
            raise self._failure
        self._turns += 1
        ask = _Ask(key, self._turns)
        self._ordinary.append(ask)
        self._wake()
        try:
            return await ask.answer
        except asyncio.CancelledError:
            self._withdraw(ask)
            raise

    def _withdraw(self, ask: _Ask) -> None:
        for queue in (self._ordinary, self._suspects):
            if ask in queue:
                queue.remove(ask)
                self._wake()  # others may have waited for this one
                return
        if not ask.answer.cancelled() and ask.answer.exception() is None and ask.answer.result() == "run":
            self._leave(ask.key)  # it was let in, and cancelled before it noticed

    def _leave(self, key: str, *, closed: bool = True) -> None:
        self._running -= 1
        if closed:
            self._ended.append(key)
        if not self._running:
            self._apart = False
        self._wake()

    def _wake(self) -> None:
        if self._pump is None:
            self._pump = asyncio.create_task(self._call(), name=f"guard of {self.process}")

    async def _call(self) -> None:
        """Ask the control until nothing is left to ask."""
        asks: Sequence[_Ask] = ()
        try:
            while True:
                await self._sleep(0)  # all who ask or end in this round of the loop share a call
                asks, together = self._next()
                ended, self._ended = self._ended, []
                if not asks and not ended:
                    return
                verdicts = await self._calls.begin(self.process, [ask.key for ask in asks], ended, together)
                self._settle(asks, verdicts, together)
        except Exception as error:
            self._fail(error, asks)
        finally:
            self._pump = None

    def _next(self) -> tuple[list[_Ask], bool]:
        """Who is asked about now, and whether as a group of suspects."""
        if self._apart:
            return [], False
        before = self._suspects[0].turn if self._suspects else None
        asks = []
        while self._ordinary and (before is None or self._ordinary[0].turn < before):
            asks.append(self._ordinary.popleft())
        if asks or self._running or not self._suspects:
            return asks, False
        asks = list(self._suspects)  # the ledger opens as many of the first ones as may be together
        self._suspects.clear()
        return asks, True

    def _settle(self, asks: Sequence[_Ask], verdicts: Mapping[str, tuple[Verdict, int]], together: bool) -> None:
        left = []
        for ask in asks:
            verdict, company = verdicts[ask.key]
            if self._failure is not None and not ask.answer.done():
                ask.answer.set_exception(self._failure)
            if ask.answer.done():  # it failed or was cancelled while the call was under way
                if verdict == "go":
                    self._ended.append(ask.key)
            elif verdict == "go":
                self._running += 1
                ask.answer.set_result("run")
            elif verdict == "poison":
                ask.answer.set_result("poison")
            elif company < 1:
                ask.answer.set_result("later")
            elif together:
                left.append(ask)
            else:
                self._suspects.append(ask)
        self._suspects.extendleft(reversed(left))
        if together:
            self._apart = self._running > 0

    def _fail(self, error: Exception, asks: Sequence[_Ask] = ()) -> None:
        """Nobody gets in any more."""
        if self._failure is None:
            self._failure = error
        for ask in (*asks, *self._ordinary, *self._suspects):
            if not ask.answer.done():
                ask.answer.set_exception(self._failure)
        self._ordinary.clear()
        self._suspects.clear()
