"""Clipped mass as a tally keeps it: by schema, place and part, in integers, so that their order changes nothing.

A key of the counter is `schema pointer part measure`, measure `tokens` or `millionths` (of probability). Pointers hold
`*` for array indexes, and may hold blanks or nothing at all; schemas hold no blank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.observe.paths import starred
from pipeline.records import Outcome

MAX_PLACES = 400
"""How many places (schema, pointer, part) are kept, those with the most tokens; the others go into `OTHER`'s."""

OTHER = "other"
"""Schema and pointer of what the rest is counted under."""


@dataclass(frozen=True, slots=True)
class ClippedPlace:
    """What audits found at one place of a schema's answers: `mass` is the probability that the constraint took away,
    summed over `tokens`."""

    schema: str
    pointer: str
    part: str
    tokens: int
    mass: float

    @property
    def mean(self) -> float:
        """Clipped mass of a token, from 0 to 1; 0 without any."""
        return self.mass / self.tokens if self.tokens else 0.0


def clipped_counts(outcome: Outcome) -> Counter[str]:
    """What one outcome's audit adds."""
    counts: Counter[str] = Counter()
    for place in outcome.clipped:
        where = f"{outcome.schema} {starred(place.pointer)} {place.part}"
        counts[f"{where} tokens"] += place.tokens
        counts[f"{where} millionths"] += round(place.mass * 1e6)
    return counts


def places_of(counts: Mapping[str, int]) -> list[ClippedPlace]:
    """The places of a tally's counter, those that lost most first."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    for key, count in counts.items():
        schema, pointer, part, measure = _split(key)
        found.setdefault((schema, pointer, part), {})[measure] = count
    places = [
        ClippedPlace(*where, counted.get("tokens", 0), counted.get("millionths", 0) / 1e6)
        for where, counted in found.items()
    ]
    return sorted(places, key=lambda place: (-place.mass, place.schema, place.pointer, place.part))


def few_places(counts: Counter[str]) -> Counter[str]:
    """The counter with a bounded number of places; as it is, while it has fewer than twice as many."""
    if len(counts) <= 4 * MAX_PLACES:  # two keys a place
        return counts
    tokens = sorted(((-count, key) for key, count in counts.items() if key.endswith(" tokens")))
    kept = {key.removesuffix(" tokens") for _, key in tokens[:MAX_PLACES]}
    few: Counter[str] = Counter()
    for key, count in counts.items():
        where, _, measure = key.rpartition(" ")
        few[key if where in kept else f"{OTHER} {OTHER} {_split(key)[2]} {measure}"] += count
    return few


def _split(key: str) -> tuple[str, str, str, str]:
    schema, _, rest = key.partition(" ")
    pointer, part, measure = rest.rsplit(" ", 2)
    return schema, pointer, part, measure
