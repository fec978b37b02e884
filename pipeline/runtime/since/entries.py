"""Entries: the last run's index in memory, and one pass of the input's rows over it.

Of a document that the index holds, 21 bytes are kept, of one that is new, 16. No id is kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.runtime.since.index import id_hash, reuse_digest
from pipeline.runtime.since.work import Work

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Hashes = npt.NDArray[np.uint64]
    Bytes = npt.NDArray[np.uint8]

# What an entry is before its document was met, and after. A GONE one is no longer part of the last run's input.
FRESH, DOUBTED, LOST, GONE, GONE_DOUBTED, GONE_LOST = range(6)
KEPT, CHANGED, ASKED, REGAINED, RETURNED, NEW = range(6, 12)

_IF_SAME = {FRESH: KEPT, DOUBTED: ASKED, LOST: REGAINED, GONE: RETURNED, GONE_DOUBTED: NEW, GONE_LOST: NEW}
_IF_OTHER = {FRESH: CHANGED, DOUBTED: CHANGED, LOST: REGAINED, GONE: NEW, GONE_DOUBTED: NEW, GONE_LOST: NEW}
_LEFT_OUT = (KEPT, RETURNED)
_EXAMPLES = 5

WORDS = {
    "new": "new",
    "changed": "changed",
    "asked": "again on request",
    "lost": "again because their run was deleted",
    "unchanged": "unchanged",
    "returned": "returned unchanged",
    "gone": "gone",
    "newly_repeated": "new rows of unchanged documents' ids",
}
"""What is told of the documents that are counted under these names."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Which rows are to be made again though nothing changed: by status or run on request, and those whose run is
    gone."""

    statuses: Set[str] = frozenset()
    runs: Set[str] = frozenset()
    lost: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Entries:
    """An index sorted by `hashes`; `order` has for each entry its row in the index, `states` what it is at first.
    `repeats` counts further rows of the entries that have any."""

    hashes: Hashes
    digests: Hashes
    order: npt.NDArray[np.uint32]
    states: Bytes
    repeats: Mapping[int, int]

    @classmethod
    def of(cls, parts: Iterable[pa.Table], doubts: Doubts) -> Entries:
        """The entries of an index, whose columns but the id are in `parts`."""
        import numpy as np

        hashes, digests, states = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, np.uint8)]
        repeats: dict[int, int] = {}
        rows = 0
        for part in parts:
            hashes.append(part.column("id_hash").to_numpy())
            digests.append(part.column("reuse_digest").to_numpy())
            states.append(_states(part, doubts))
            counts = part.column("repeats").to_numpy()
            places = np.flatnonzero(counts)
            repeats |= dict(zip((places + rows).tolist(), counts[places].tolist(), strict=True))
            rows += part.num_rows
        found, said, at_first = np.concatenate(hashes), np.concatenate(digests), np.concatenate(states)
        del hashes, digests
        order = np.argsort(found, kind="stable").astype(np.uint32)
        sorted_places = np.flatnonzero(np.isin(order, list(repeats))).tolist() if repeats else []
        further = {place: repeats[int(order[place])] for place in sorted_places}
        return cls(found[order], said[order], order, at_first[order], further)

    def by_row(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of entries in the order of the index's rows."""
        import numpy as np

        rows = np.empty_like(values)
        rows[self.order] = values
        return rows


def _states(part: pa.Table, doubts: Doubts) -> Bytes:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    def among(column: str, values: Set[str]) -> Any:
        return pc.is_in(part.column(column), pa.array(sorted(values), pa.string())).to_numpy()

    doubted = among("status", doubts.statuses) | among("run_id", doubts.runs)
    states = np.where(among("run_id", doubts.lost), LOST, np.where(doubted, DOUBTED, FRESH))
    gone: Bytes = (states + GONE * (part.column("gone").to_numpy() > 0)).astype(np.uint8)
    return gone


class Pass:
    """One pass over the input: called for each row in order, says whether the row is to be extracted.

    The first row of an id is the document. A further one is taken, so that it is rejected as `duplicate_id`, unless the
    document is left out and an earlier run has rejected as many.
    """

    def __init__(self, entries: Entries, work: Work) -> None:
        self._hashes = memoryview(entries.hashes.data)
        self._digests = memoryview(entries.digests.data)
        self._known = entries.repeats
        self._work = work
        self.states = bytearray(entries.states.tobytes())
        self.repeats: Counter[int] = Counter()
        """Further rows of documents that are left out, by entry."""
        self.examples: list[str] = []
        """A few of their ids, of those that no run has to reject any more."""
        self.further = 0
        """Of them, those that are taken."""
        self.hashes, self.digests = array("Q"), array("Q")
        """Of the rows that are taken, these further ones left out."""

    def __call__(self, row_id: str, schema: str, text_digest: str) -> bool:
        """Whether a row is to be extracted. `text_digest` is of all that is read of it."""
        key, digest = id_hash(row_id), reuse_digest(row_id, self._work.of(schema), text_digest)
        place = self._place(key)
        if place is not None:
            state = self.states[place]
            if state < KEPT:
                same = self._digests[place] == digest
                state = self.states[place] = (_IF_SAME if same else _IF_OTHER)[state]
            elif state in _LEFT_OUT:
                return self._follows(place, row_id)
            if state in _LEFT_OUT:
                return False
        self.hashes.append(key)
        self.digests.append(digest)
        return True

    def _follows(self, place: int, row_id: str) -> bool:
        """Whether a further row of a document that is left out is taken."""
        self.repeats[place] += 1
        if self.repeats[place] > self._known.get(place, 0):
            self.further += 1
            return True
        if len(self.examples) < _EXAMPLES and row_id not in self.examples:
            self.examples.append(row_id)
        return False

    def _place(self, key: int) -> int | None:
        """The entry of an id. An index has one for each hash: a run takes ids of equal hashes for one id."""
        place = bisect_left(self._hashes, key)
        return place if place < len(self._hashes) and self._hashes[place] == key else None

    def counts(self) -> Mapping[int, int]:
        """How many entries ended in each state; NEW counts all documents that are new, known to the index or not."""
        import numpy as np

        found = np.bincount(np.frombuffer(self.states, np.uint8), minlength=NEW + 1)
        counts = {state: int(number) for state, number in enumerate(found)}
        taken = len(np.unique(np.frombuffer(self.hashes, np.uint64)))
        counts[NEW] = taken - counts[CHANGED] - counts[ASKED] - counts[REGAINED]
        return counts
