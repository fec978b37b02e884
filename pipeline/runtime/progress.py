"""Progress: a counter that actors report to while a run is under way. Display only; what counts is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.observe.tally import Tally


class Progress:
    """Sums the tallies that actors send. Runs as a Ray actor that needs no CPU."""

    def __init__(self) -> None:
        self._total = Tally()

    def add(self, tally: Mapping[str, Any]) -> None:
        self._total.merge(Tally.from_json(tally))

    def total(self) -> dict[str, Any]:
        return self._total.to_json()
