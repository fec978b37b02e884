"""Choose: which rows of a run a person sees, or a set freezes: a seeded sample of those that are asked for."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import InputError
from pipeline.records import STATUSES
from pipeline.steps.codes import CODES


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of one of these statuses, with one of these problem codes (empty: any), of this schema (None: any); of more
    than `most`, a sample that is the same for the same seed, whatever the order of the rows."""

    statuses: frozenset[str]
    codes: frozenset[str] = frozenset()
    schema: str | None = None
    most: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, given, known in (("status", self.statuses, STATUSES), ("code", self.codes, CODES)):
            if unknown := sorted(given - set(known)):
                raise InputError(f"there is no {kind} {unknown[0]!r}. Known: {', '.join(sorted(known))}.")

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is one of those."""
        codes = {problem["code"] for problem in row["problems"]}
        return (
            row["status"] in self.statuses
            and self.schema in (None, row["schema"])
            and (not self.codes or bool(self.codes & codes))
        )


@dataclass(slots=True)
class Chosen:
    """Rows by unit and source, how many matched, and how many of these repeat an id, of which none is chosen: a
    correction could not say which of them it is of."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    matched: int = 0
    repeated: int = 0


def choose(rows: Iterable[dict[str, Any]], wanted: Wanted) -> Chosen:
    """The rows that are wanted; `wanted.most` of them are held at a time."""
    found = Chosen()
    heap: list[tuple[int, int, dict[str, Any]]] = []
    for number, row in enumerate(rows):
        if not wanted.takes(row):
            continue
        found.matched += 1
        if any(problem["code"] == "duplicate_id" for problem in row["problems"]):
            found.repeated += 1
            continue
        item = (-_lot(row, wanted.seed), number, row)
        if len(heap) < wanted.most:
            heapq.heappush(heap, item)
        else:
            heapq.heappushpop(heap, item)
    found.rows = [row for _, _, row in sorted(heap, key=lambda item: (item[2]["unit"], item[1]))]
    return found


def _lot(row: Mapping[str, Any], seed: int) -> int:
    """A number that only seed and document decide."""
    text = f"{seed}\0{row['document_id']}\0{row['source']}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
