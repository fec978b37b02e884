"""Instances: values that satisfy a body, and values that violate it at exactly one site.

Drawn from shapes, then mutated where a site has its say, and all judged by the body's validator. Bounded by time and by
counts; a site for which nothing was found is said to be unfound, never assumed to be held.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from pipeline.schema.probe import sites as site_list
from pipeline.schema.probe.draw import Drawer, covered_by
from pipeline.schema.probe.found import Instances, Valid, Violation
from pipeline.schema.probe.mutate import aimed, anyhow
from pipeline.schema.probe.repair import repaired, same
from pipeline.schema.probe.spots import Spot, get, put, spots
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.shapes import Shapes, Site
from pipeline.schema.shape.source import Source
from pipeline.schema.validator import PatternTimeout

ENOUGH = 3
"""Violations of one site; with these, it is left alone."""

NEIGHBOURS = 2
"""Valid values that come of mutations aimed at one site."""

MAX_DRAWN = 160
MAX_TRIES = 24
"""Mutations that are judged for one site at one spot."""

MAX_BASES = 3
"""Spots at which mutations aimed at one site are tried."""

MAX_KNOWN = 60
"""Spots of one subschema that are remembered."""

MAX_FURTHER = 5
"""Mutations that are judged in search of a neighbour when the violations are found."""

MAX_TEXT = 20_000
"""Characters of an instance; a longer one is not kept."""

DRAWING_SHARE = 0.4
"""Of the time, for drawing; the rest is for mutations."""

_MAX_REPAIRS = 4
_BORDERED = frozenset(
    {
        *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "enum", "const"),
        *("minItems", "maxItems", "uniqueItems", "contains", "minProperties", "maxProperties", "anyOf", "oneOf", "not"),
    }
)
"""Keywords that a back end may hold too tightly: a neighbour is looked for."""

_KINDS: dict[str, tuple[type, ...]] = {"number": (int, float), "string": (str,), "array": (list,), "object": (dict,)}


def instances(body: Mapping[str, Any], shapes: Shapes, budget_seconds: float = 2.0, seed: int = 0) -> Instances:
    """Instances of a body, from its shapes. The same seed gives the same ones, unless time runs out.

    A single match of a pattern, or one judgement of the validator, is not interrupted when the time is up.
    """
    return _Search(body, shapes, budget_seconds, random.Random(seed)).run()


@dataclass
class _Search:
    body: Mapping[str, Any]
    shapes: Shapes
    budget: float
    rng: random.Random
    valid: list[Valid] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    taken: list[Mapping[str, list[Spot]]] = field(default_factory=list)
    violations: dict[Site, list[Violation]] = field(default_factory=dict)
    bases: dict[str, list[tuple[int, Spot]]] = field(default_factory=dict)
    """Where each subschema can be tried: positions of valid values, smallest first, and spots in them."""

    def __post_init__(self) -> None:
        self.start = time.process_time()
        self.source = Source(self.body)
        self.sites = site_list.sites(self.body)
        self._by_pointer: dict[str, list[Site]] = {}
        self.judge = site_list.Judge(self.body, frozenset(self.sites))
        for site in self.sites:
            self._by_pointer.setdefault(site[0], []).append(site)
        self._texts: set[tuple[str, Site | None]] = set()

    def run(self) -> Instances:
        self._draw()
        self._mutate(self._aimed)
        self._mutate(self._anyhow)
        found = {site: tuple(self.violations[site]) for site in self.sites if self.violations.get(site)}
        seconds = time.process_time() - self.start
        complete = seconds < self.budget
        return Instances(self.body, self.sites, tuple(self.valid), found, complete, seconds)

    def _is_late(self, share: float = 1.0) -> bool:
        return time.process_time() - self.start > self.budget * share

    def _draw(self) -> None:
        for drawn in covered_by(Drawer(self.shapes, self.rng), MAX_DRAWN):
            value = drawn.value
            for _ in range(_MAX_REPAIRS):
                errors = self._judge(value)
                if errors is None:
                    break
                if not errors:
                    self._keep(value, None, None)
                    break
                self._violates(value, errors, None)
                changed = repaired(value, errors)
                if changed is None:
                    break
                value = changed
            if self._is_late(DRAWING_SHARE):
                return

    def _judge(self, value: Any) -> list[ValidationError] | None:
        """The errors of a value; None if a pattern takes too long to say."""
        try:
            return list(islice(self.source.validator.iter_errors(value), 20))
        except PatternTimeout:
            return None

    def _keep(self, value: Any, base: int | None, aim: Site | None) -> int | None:
        text = canonical_text(self.source, value)
        if (text, aim) in self._texts or len(text) > MAX_TEXT:
            return None
        self._texts.add((text, aim))  # a known value can be news as somebody's neighbour
        # A neighbour with another scalar is judged where its base is.
        alike = base is not None and aim is not None and site_list.JUDGED.get(aim[1]) in ("number", "string")
        found = self.taken[base] if base is not None and alike else spots(self.source, value)
        judging = frozenset(site for pointer in found for site in self._by_pointer.get(pointer, ()))
        self.valid.append(Valid(text, judging, base, aim))
        self.values.append(value)
        self.taken.append(found)
        for pointer, places in found.items():
            known = self.bases.setdefault(pointer, [])
            if aim is None and len(known) < MAX_KNOWN:
                known.extend((len(self.values) - 1, spot) for spot in places[:MAX_BASES])
        return len(self.values) - 1

    def _violates(self, value: Any, errors: list[ValidationError], base: int | None, aim: Site | None = None) -> None:
        """Note a violation, if all errors are of one site and that one is in need of more."""
        found = self.judge.sites(errors, None if base is None else self.taken[base], aim)
        if len(found) != 1:
            return
        site = found.pop()
        kept = self.violations.setdefault(site, [])
        if len(kept) >= 2 * ENOUGH or (base is None and len(kept) >= ENOUGH):
            return
        text = canonical_text(self.source, value)
        if (text, None) not in self._texts and len(text) <= MAX_TEXT:
            self._texts.add((text, None))
            kept.append(Violation(text, value, site, base))

    def _mutate(self, parts: Callable[[Site, Any], Iterator[Any]]) -> None:
        """Every site at one spot, then at a second one, a third: if time runs out, all had their turn."""
        for turn in range(MAX_BASES):
            for site in self.sites:
                if self._is_late():
                    return
                if not self._has(site, turn + 1):
                    bases = self._bases(site)
                    if turn < len(bases):
                        self._try(site, bases[turn], parts, turn + 1)

    def _has(self, site: Site, count: int) -> bool:
        return sum(violation.base is not None for violation in self.violations.get(site, ())) >= count

    def _bases(self, site: Site) -> list[tuple[int, Spot]]:
        """Spots where a site has its say on a part of its type, in the smallest values."""
        kind = _KINDS.get(site_list.JUDGED.get(site[1], ""))
        found = [
            (base, spot)
            for base, spot in self.bases.get(site[0], ())
            if kind is None or isinstance(get(self.values[base], spot), kind)
        ]
        return sorted(found, key=lambda place: (place[1].is_name, len(self.valid[place[0]].text)))[:MAX_BASES]

    def _try(
        self, site: Site, place: tuple[int, Spot], parts: Callable[[Site, Any], Iterator[Any]], wanted: int
    ) -> None:
        base, spot = place
        whole = self.values[base]
        part = get(whole, spot)
        neighbours = further = 0
        for other in islice(parts(site, part), MAX_TRIES):
            if (spot.is_name and not isinstance(other, str)) or same(other, part):
                continue
            breaks = self._breaks(site, other)
            if breaks is None or (further and breaks) or (not breaks and neighbours >= NEIGHBOURS):
                continue
            value = put(whole, spot, other)
            errors = self._judge(value)
            if errors is None:
                continue
            if errors:
                self._violates(value, errors, base, site)
            elif self._keep(value, base, site) is not None:
                neighbours += 1
            if self._has(site, wanted):
                further += 1
            enough = neighbours or site[1] not in _BORDERED or further > MAX_FURTHER
            if self._is_late() or (further and enough):
                return

    def _breaks(self, site: Site, part: Any) -> bool | None:
        """Whether a part violates a site; None if it violates other keywords there. Quicker than judging all."""
        validator = self.source.validator.evolve(schema=self.source.nodes[site[0]])
        try:
            keywords = {str(error.relative_schema_path[0]) for error in islice(validator.iter_errors(part), 20)}
        except PatternTimeout:
            return None
        alike = {"minContains": "contains", "maxContains": "contains"}.get(site[1], site[1])
        return False if not keywords else True if keywords == {alike} else None

    def _aimed(self, site: Site, part: Any) -> Iterator[Any]:
        with suppress(OverflowError):  # integers that no double holds
            yield from aimed(site[1], self.source.nodes[site[0]], part)

    def _anyhow(self, site: Site, part: Any) -> Iterator[Any]:
        if not self.violations.get(site):
            with suppress(OverflowError):
                yield from anyhow(part, self.rng)
