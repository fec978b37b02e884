"""Clipped mass by field: which field's values the model wanted to write otherwise than its grammar let it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.observe.paths import starred

PARTS = ("value", "structure", "blank")
MAX_PLACES = 400


@dataclass(slots=True)
class Mass:
    """Tokens of one part of one field, the probability mass clipped from them in sum, and the highest of one token."""

    tokens: int = 0
    mass: float = 0.0
    highest: float = 0.0

    @property
    def mean(self) -> float:
        """Clipped mass of a token, 0 to 1; 0 of none."""
        return self.mass / self.tokens if self.tokens else 0.0


class ClippedFields:
    """The fields of one schema: {place: {part: Mass}}. `answers` counts audited answers."""

    def __init__(self) -> None:
        self.answers = 0
        self.fields: dict[str, dict[str, Mass]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count what a row's audit found, if there was one."""
        found: Iterable[Mapping[str, Any]] = row.get("clipped") or ()
        self.answers += row.get("audit") == "done"
        for one in found:
            place = starred(one["pointer"])
            if place not in self.fields and len(self.fields) >= MAX_PLACES:
                continue
            parts = self.fields.setdefault(place, {part: Mass() for part in PARTS})
            if one["part"] in parts:
                mass = parts[one["part"]]
                mass.tokens += one["tokens"]
                mass.mass += one["mass"]
                mass.highest = max(mass.highest, one["highest"])

    def ranked(self) -> list[tuple[str, dict[str, Mass]]]:
        """The fields, those with the highest mass per value token first."""
        return sorted(self.fields.items(), key=lambda item: (-item[1]["value"].mean, item[0]))
