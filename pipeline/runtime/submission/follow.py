"""Following a submission to its end: its log, once and in order, however often the connection breaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass

from pipeline.errors import NotReachedError
from pipeline.runtime.submission.server import JobServer, Submitted

Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds. `look`: a log that is silent for so long may have a dead connection, so the server is asked; `pause`:
    between two tries; `lost`: a server that does not answer for so long is given up."""

    look: float = 30.0
    pause: float = 3.0
    lost: float = 600.0


async def follow(server: JobServer, job_id: str, write: Write, patience: Patience | None = None) -> Submitted | None:
    """Write the log of a submission until that is over, and return how it ended; None if the server no longer knows it,
    or did not answer for long.

    Raises:
        SubmissionError: the server refuses to tell.
    """
    wait = patience or Patience()
    log = _Log(server, job_id, write)
    while True:
        complete = await log.read(wait.look)
        try:
            job = log.find()
        except NotReachedError:
            if time.monotonic() - log.heard > wait.lost:
                return None
            await asyncio.sleep(wait.pause)
            continue
        if job is None:
            return None
        if job.over:
            if not complete:
                log.rest()
            return job
        await asyncio.sleep(wait.pause)


async def until_over(server: JobServer, job_id: str, patience: Patience | None = None) -> Submitted | None:
    """Wait without a log; returns and raises as `follow`."""
    wait, heard = patience or Patience(), time.monotonic()
    while True:
        try:
            job = server.find(job_id)
            if job is None or job.over:
                return job
            heard = time.monotonic()
        except NotReachedError:
            if time.monotonic() - heard > wait.lost:
                return None
        await asyncio.sleep(wait.pause)


class _Log:
    """The server tells a log from its first character each time; what was written already is passed over. `heard` is
    when the server last said anything."""

    def __init__(self, server: JobServer, job_id: str, write: Write) -> None:
        self._server = server
        self._id = job_id
        self._write = write
        self._written = 0
        self.heard = time.monotonic()

    def find(self) -> Submitted | None:
        """What the server knows of the job."""
        job = self._server.find(self._id)
        self.heard = time.monotonic()
        return job

    async def read(self, look: float) -> bool:
        """Write what comes until the connection ends, or the job is over and nothing comes. False: it was cut."""
        stream, place = self._server.tail(self._id), 0
        try:
            while (text := await self._next(stream, look)) is not None:
                self.heard = time.monotonic()
                self._write_from(text, place)
                place += len(text)
            return True
        except (NotReachedError, _OverError):
            return False
        finally:
            with suppress(NotReachedError):
                await stream.aclose()

    def rest(self) -> None:
        """Write what a cut connection kept back. What cannot be had any more is not missed: the job is over."""
        with suppress(NotReachedError):
            self._write_from(self._server.log(self._id), 0)

    def _write_from(self, text: str, place: int) -> None:
        new = text[max(0, self._written - place) :]
        if new:
            self._write(new)
            self._written = place + len(text)

    async def _next(self, stream: AsyncGenerator[str, None], look: float) -> str | None:
        """The next piece, None at the end."""
        piece = asyncio.ensure_future(anext(stream, None))
        try:
            while not (await asyncio.wait({piece}, timeout=look))[0]:
                with suppress(NotReachedError):
                    job = self.find()
                    if job is None or job.over:
                        raise _OverError
            return piece.result()
        finally:
            if not piece.done():
                piece.cancel()
                with suppress(asyncio.CancelledError, NotReachedError):
                    await piece


class _OverError(Exception):
    """Nothing comes, and nothing will."""
