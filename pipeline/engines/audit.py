"""Audits of an engine: the log probabilities of an answer's tokens without the constraint, asked for afterwards.

Few at a time, and few wait; none takes longer than `AUDIT_SECONDS`. Whatever goes wrong costs the audit and never the
answer. docs/clipped-mass.md names the hazards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from pipeline.engines.blanks import Blanks
from pipeline.records import Audit, Completion

Rows = Sequence[Mapping[int, float]]
"""For each token of an answer, the log probabilities without the constraint of it and of the likeliest tokens."""

Score = Callable[[list[int], list[int]], Awaitable[Rows | None]]
"""Asks the engine for the rows of an answer's tokens behind a prompt's; None if it cannot give any."""

AUDIT_SECONDS = 120.0
"""How long one may take, the wait for its turn included. An answer waits no longer for its audit."""

WAITING = 2
"""So many answers wait for their turn; further ones are not looked at (`busy`)."""

SHARE = 16
"""Where an audit costs no more than another answer, one in so many of the engine's requests may be one."""

MAX_BYTES = 1 << 30
BYTES_PER_SCORE = 6

TOLERANCE = 0.1
"""By so much, in mean, may the constraint seem to have made tokens less likely, which it cannot: the two passes round
differently. Beyond that they were not of the same model and temperature."""


def most_read(vocabulary: int) -> int:
    """How many tokens may be scored as a prompt: an engine may hold a 16-bit logit and a 32-bit log probability for
    each of them and each token of its vocabulary at once, and they are to take no more than `MAX_BYTES`."""
    return MAX_BYTES // (BYTES_PER_SCORE * vocabulary)


class Auditor:
    """Of one engine. `most` bounds the tokens of prompt and answer, `at_once` how many answers are looked at."""

    def __init__(
        self,
        score: Score,
        blanks: Callable[[], Awaitable[Blanks]] | None,
        most: int,
        *,
        at_once: int = 1,
        seconds: float = AUDIT_SECONDS,
    ) -> None:
        """`blanks` is called at the first audit; None if blanks are not told apart."""
        self._seconds = seconds
        self._score = score
        self._make_blanks = blanks
        self._blanks: Blanks | None = None
        self._most = most
        self._at_once = at_once
        self._turn = asyncio.Semaphore(at_once)
        self._asked = 0

    async def audit(self, prompt: list[int], answer: Completion, most: int) -> Completion:
        """The answer, with what became of its audit. It has token ids and their log probabilities under the constraint;
        `most` bounds the tokens of prompt and answer."""
        if len(prompt) + len(answer.token_ids) > min(most, self._most):
            return replace(answer, audit="too_long")
        if not answer.token_ids or len(answer.logprobs) != len(answer.token_ids):
            return replace(answer, audit="unavailable")
        if self._asked >= self._at_once + WAITING:
            return replace(answer, audit="busy")
        began = time.monotonic()
        self._asked += 1
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                audit, unmasked = await self._look(prompt, answer)
        except Exception:  # the engine may raise anything, and the answer is there
            audit, unmasked = "failed", ()
        finally:
            self._asked -= 1
        return replace(answer, audit=audit, unmasked=unmasked, audit_seconds=time.monotonic() - began)

    async def _look(self, prompt: list[int], answer: Completion) -> tuple[Audit, tuple[tuple[float, float], ...]]:
        ids = list(answer.token_ids)
        rows = await self._score(prompt, ids)
        if rows is None:
            return "unavailable", ()
        scores = [row[id_] for id_, row in zip(ids, rows, strict=True)]
        masked = [row[id_] for id_, row in zip(ids, answer.logprobs, strict=True)]
        gained = [score - under for score, under in zip(scores, masked, strict=True)]
        if not sum(gained) <= TOLERANCE * len(gained):  # nan is not, either
            return "failed", ()
        if self._blanks is None and self._make_blanks is not None:
            self._blanks = await self._make_blanks()
        shares = self._blanks.shares(ids, rows) if self._blanks is not None else [0.0] * len(ids)
        return "done", tuple(zip(scores, shares, strict=True))
