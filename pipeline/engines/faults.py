"""Which documents the `sampler` fails on: a share of them, picked by hash, the same ones in every run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from pipeline.job import Fault
from pipeline.schema.fingerprint import DIGEST_LENGTH, digest

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
