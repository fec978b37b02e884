"""Ids counted in one pass: how many, and which occur again. Of each, only 8 bytes are kept."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.schema.fingerprint import multiset_digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_EXAMPLES = 5


class IdCount:
    """Grows with the rows of a scan, in their order."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    @property
    def rows(self) -> int:
        return len(self._hashes)

    def add(self, document_id: str) -> int:
        """Count one row; its part of a `multiset_digest`, to be added up."""
        value = int(multiset_digest((document_id,)), 16)
        self._hashes.append(value >> 64)
        return value

    def repeats(self) -> npt.NDArray[np.int64]:
        """Rows, from 0 and ascending, whose id an earlier row has.

        That any two different ids of n share their 64 bits has a probability of n^2 / 2^65: 3 in 10^6 for
        ten million rows.
        """
        import numpy as np

        values = np.frombuffer(self._hashes, dtype=np.uint64)
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        return np.sort(order[1:][ranked[1:] == ranked[:-1]])

    def examples(self, rows: Iterable[int]) -> list[int]:
        """The first five of these rows that are of different ids."""
        found: dict[int, int] = {}
        for row in rows:
            found.setdefault(self._hashes[row], row)
            if len(found) == _EXAMPLES:
                break
        return list(found.values())
