"""Progress: a counter that actors report to while a run is under way. Display only; what counts is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.observe.tally import Tally


class Progress:
    """Sums the tallies that actors send. Runs as a Ray actor that needs no CPU."""

    def __init__(self) -> None:
        self._total = Tally()
        self._starts = 0

    def started(self) -> None:
        """An actor process is up; Ray starts another one in place of one that died."""
        self._starts += 1

    def add(self, tally: Mapping[str, Any], unit_done: bool) -> None:
        """Count documents; a unit that is done shows that its actor lives well."""
        self._total.merge(Tally.from_json(tally))
        if unit_done:
            self._starts = 0

    def look(self) -> tuple[dict[str, Any], int]:
        """The tally so far, and the actor starts since a unit was last done."""
        return self._total.to_json(), self._starts
