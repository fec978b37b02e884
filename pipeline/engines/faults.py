"""Which documents the `sampler` fails on (a share of them, picked by hash, the same ones in every run), and a matcher
that is broken."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pipeline.engines.grammar import Matcher
from pipeline.job import Fault
from pipeline.schema.fingerprint import DIGEST_LENGTH, digest
from pipeline.schema.probe.verdict import is_allowed

_REMEMBERED_DOCUMENTS = 100_000
_SCALE = float(16**DIGEST_LENGTH)


class FaultPicker:
    """At most one fault a request. Shares add up: 0.1 of one and 0.2 of another hit 0.3 of the documents."""

    def __init__(self, faults: Sequence[Fault], seed: int) -> None:
        self._faults = tuple(faults)
        self._seed = seed
        self._calls: OrderedDict[str, int] = OrderedDict()

    def pick(self, user: str) -> Fault | None:
        """The fault for one more request about the document in this user message, if it has one.

        A fault with `attempts` spares the document after that many requests. Calls are counted for the latest
        hundred thousand documents that have such a fault.
        """
        if not self._faults:
            return None
        key = digest([self._seed, user])
        place, covered = int(key, 16) / _SCALE, 0.0
        for fault in self._faults:
            covered += fault.share
            if place < covered:
                spared = fault.attempts is not None and self._count(key) > fault.attempts
                return None if spared else fault
        return None

    def _count(self, key: str) -> int:
        calls = self._calls.pop(key, 0) + 1
        self._calls[key] = calls
        if len(self._calls) > _REMEMBERED_DOCUMENTS:
            self._calls.popitem(last=False)
        return calls


class LateMask:
    """A matcher whose mask is that of the state before, in an engine that does not notice: the fault `late_mask`.

    The first token has its own mask, every further one that of the token before. A token that is illegal by then is in
    the answer all the same, and the state stays where it was.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._now: Any = None

    def mask(self) -> Any:
        before, self._now = self._now, self._matcher.mask().copy()  # matchers write the next one into the same place
        return self._now if before is None else before

    def allowed(self) -> Any:
        return self._matcher.allowed()

    def accept(self, token_id: int) -> bool:
        if is_allowed(self._now, token_id):  # llguidance breaks on a token that is not
            self._matcher.accept(token_id)
        return True

    def finished(self) -> bool:
        return self._matcher.finished()

    def error(self) -> str:
        return self._matcher.error()
