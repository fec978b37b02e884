"""Ids counted in one pass: how many, their digest, which occur again. Of each, only 8 bytes are kept."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

from pipeline.schema.fingerprint import add_multisets, multiset_digest

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Repeats:
    """Rows, from 0, whose id an earlier row has; `examples` are the first five of different ids."""

    rows: list[int]
    examples: list[int]


class IdCount:
    """Grows with the rows of a scan, in their order."""

    def __init__(self) -> None:
        self.schemas: Counter[str] = Counter()
        self._sum = self._cut = 0
        self._hashes = array("Q")

    @property
    def documents(self) -> int:
        return len(self._hashes)

    def add(self, document_id: str, schema: str) -> None:
        """Count one row."""
        value = int(multiset_digest((document_id,)), 16)
        self._sum += value
        self._hashes.append(value >> 64)
        self.schemas[schema] += 1

    def cut(self) -> str:
        """`multiset_digest` of the ids since the last cut."""
        part, self._cut = self._sum - self._cut, self._sum
        return add_multisets((f"{part:x}",))

    def ids_digest(self) -> str:
        """`multiset_digest` of all ids."""
        return add_multisets((f"{self._sum:x}",))

    def repeats(self) -> Repeats:
        """Second and later occurrences.

        That any two different ids of n share their 64 bits has a probability of n^2 / 2^65: 3 in 10^6 for
        ten million rows.
        """
        import numpy as np

        values = np.frombuffer(self._hashes, dtype=np.uint64)
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        rows = np.sort(order[1:][ranked[1:] == ranked[:-1]]).tolist()
        examples: dict[int, int] = {}
        for row in rows:
            examples.setdefault(self._hashes[row], row)
            if len(examples) == _EXAMPLES:
                break
        return Repeats(rows, list(examples.values()))
