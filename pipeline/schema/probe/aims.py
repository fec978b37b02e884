"""Aims: what an engine has to be asked for, site by site, so that it shows whether it holds a schema.

An aim is one keyword where it stands. It is tried from both sides: with values that break it, under the body and under
one without the keyword, where they are legal; and with values that satisfy it, under the body and under one with a
stricter keyword, where they are not. `required` has an aim for each of its names, and a keyword that a recursion comes
by again one at the deepest level that was found.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pipeline.schema.probe.found import Instances
from pipeline.schema.probe.loosen import Body, accepts, loosened
from pipeline.schema.probe.mutate import aimed
from pipeline.schema.probe.sites import Judge
from pipeline.schema.probe.spots import Spot, get, put, spots
from pipeline.schema.probe.tighten import narrowed, tightened
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER, Site
from pipeline.schema.shape.source import Source
from pipeline.schema.validator import PatternTimeout, validator_of

MAX_TEXT = 1500
"""Characters of a value that is asked for: a model has to write it."""
MAX_NAMES = 24
"""Names of one `required` that have an aim each."""
MAX_LOOKED = 40
"""Valid values in which names and levels are looked for."""
MAX_DEEP = 400
"""The same of one that goes down a recursion."""
MAX_TRIES = 12
MAX_WANTED = 3
MAX_ERRORS = 5
MAX_RECORDS = 4
MAX_MEMBERS = 24
"""Members of one enum that are tried alone: the first, the last and some between."""


@dataclass(frozen=True, slots=True)
class Aim:
    """`wanted` are JSON texts that break the site alone, the shortest first; none where none was found that a model
    could be asked for. `loose` is the body under which they are legal, if there is a simple one. `legal` are texts that
    the body accepts and `tight` refuses, for its stricter keyword alone. `detail` says which part of the site it is
    about, `name` is the key if that is one of `required`."""

    site: Site
    detail: str = ""
    name: str | None = None
    wanted: tuple[str, ...] = ()
    loose: Body | None = None
    legal: tuple[str, ...] = ()
    tight: Body | None = None


WHOLE: Site = ("", "*")
"""The answer as a whole."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Bodies no two of which accept the same part at a site (or the same value, at the root): one member of an enum in
    each, or one whole record. `wanted` are texts that the undivided body accepts."""

    site: Site
    bodies: tuple[Body, ...]
    wanted: tuple[str, ...]


def aims_of(found: Instances, budget_seconds: float = 10.0) -> list[Aim]:
    """The aims of all sites, in the order of the schema. When the processor time is up, nothing more is looked for:
    aims then have what is `wanted`, and one side at most."""
    searched = _Searched(found, time.process_time() + budget_seconds)
    made: list[Aim] = []
    for site in found.sites:
        texts = [one.text for one in found.violations.get(site, ()) if len(one.text) <= MAX_TEXT]
        named = list(searched.names(site)) if site[1] == "required" else []
        made += named or [searched.both(site, sorted(texts, key=len)[:MAX_WANTED])]
        made += searched.deeper(site)
    return made


def alone_of(found: Instances) -> list[Alone]:
    """Whole records one at a time (site `WHOLE`), then the members of each enum."""
    searched = _Searched(found, math.inf)
    records = searched.records()
    whole = Alone(WHOLE, tuple({"const": json.loads(text)} for text in records), tuple(records))
    enums = (searched.members(site) for site in found.sites if site[1] == "enum")
    return [one for one in (whole, *enums) if len(one.bodies) > 1 and one.wanted]


class _Refuser:
    """Says whether a body refuses a value for one site and for nothing else."""

    def __init__(self, body: Mapping[str, Any], known: frozenset[Site]) -> None:
        self._judge = Judge(body, known)
        self._validator = validator_of(body)

    def only_at(self, site: Site, value: Any) -> bool:
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_ERRORS))
        except PatternTimeout:
            return False
        return bool(errors) and self._judge.sites(errors, None, site) == {site}


class _Searched:
    """Valid values, the spots in them, and what can be made of both."""

    def __init__(self, found: Instances, until: float) -> None:
        self._until = until
        self._body = found.body
        self._source = Source(found.body)
        self._known = frozenset(found.sites)
        self._refuser = _Refuser(found.body, self._known)
        texts = dict.fromkeys(valid.text for valid in found.valid if len(valid.text) <= MAX_TEXT)
        self._texts = sorted(texts, key=len)[:MAX_LOOKED]
        self._small = self._placed(self._texts)
        self._deep = self._placed(sorted(texts, key=_depth, reverse=True))

    def _placed(self, texts: Sequence[str]) -> list[tuple[Any, Mapping[str, list[Spot]]]]:
        values = [json.loads(text) for text in texts[:MAX_LOOKED]]
        return [(value, spots(self._source, value)) for value in values]

    def aim(self, site: Site, detail: str, texts: Sequence[str]) -> Aim:
        """The aim with what is loosened for its first text, and the texts that are legal then."""
        loose = loosened(self._body, site, json.loads(texts[0])) if texts else None
        if loose is not None:
            texts = [text for text in texts if accepts(loose, json.loads(text))]
        return Aim(site, detail, None, tuple(texts), loose)

    def both(self, site: Site, texts: Sequence[str]) -> Aim:
        """The aim with what is tightened, too: the first stricter body that some document can satisfy."""
        aim = self.aim(site, "", texts)
        for value, places in self._small:
            if self._is_late():
                break
            parts = [get(value, spot) for spot in places.get(site[0], ()) if not spot.is_name]
            for tight in tightened(self._body, self._source.nodes[site[0]], site, parts):
                refuser = _Refuser(tight, self._known)
                if refuser.only_at(site, value) and read(tight).root != NEVER:
                    refused = (text for text in self._texts if refuser.only_at(site, json.loads(text)))
                    return replace(aim, legal=tuple(islice(refused, MAX_WANTED)), tight=tight)
        return aim

    def names(self, site: Site) -> Iterator[Aim]:
        """For each name of a `required`: the smallest values without it."""
        for name in self._source.nodes[site[0]]["required"][:MAX_NAMES]:
            without = (
                put(value, spot, {key: item for key, item in get(value, spot).items() if key != name})
                for value, places in self._small
                for spot in places.get(site[0], ())[:1]
                if isinstance(get(value, spot), dict) and name in get(value, spot)
            )
            texts = (self._text(value) for value in without if self._refuser.only_at(site, value))
            found = [] if self._is_late() else list(islice(texts, MAX_WANTED))
            yield replace(self.aim(site, f"without {json.dumps(name, ensure_ascii=False)}", found), name=name)

    def deeper(self, site: Site) -> Iterator[Aim]:
        """An aim further down, where a schema comes by the same subschema again on the way."""
        pointer, keyword = site
        places = [(len(spot.path), value, spot) for value, found in self._deep for spot in found.get(pointer, ())]
        levels = sorted({level for level, _, spot in places if not spot.is_name})
        if len(levels) < 2:
            return
        for level, value, spot in sorted(places, key=lambda place: -place[0]):
            if level == levels[0] or spot.is_name or self._is_late():
                continue
            parts = islice(aimed(keyword, self._source.nodes[pointer], get(value, spot)), MAX_TRIES)
            broken = [put(value, spot, part) for part in parts]
            texts = [self._text(one) for one in broken if self._refuser.only_at(site, one)]
            texts = [text for text in texts if len(text) <= MAX_DEEP]
            if texts:
                yield self.aim(site, f"at level {level}", texts[:MAX_WANTED])
                return

    def records(self) -> list[str]:
        """Small valid values that are not alike."""
        found: list[str] = []
        for text, (value, _) in zip(self._texts, self._small, strict=True):
            if len(found) < MAX_RECORDS and not any(value == json.loads(other) for other in found):
                found.append(text)
        return found

    def members(self, site: Site) -> Alone:
        """The body with each member of an enum alone; wanted are valid values that have any member there."""
        members = self._source.nodes[site[0]]["enum"]
        step = -(-len(members) // MAX_MEMBERS)
        chosen = [*members[::step][: MAX_MEMBERS - 1], *members[-1:]]
        bodies: dict[str, Body] = {}
        for member in chosen:
            body = narrowed(self._body, site[0], member)
            if body is not None and read(body).root != NEVER:
                bodies[json.dumps(member, sort_keys=True)] = body
        pairs = zip(self._texts, self._small, strict=True)
        wanted = [text for text, (_, places) in pairs if places.get(site[0])]
        return Alone(site, tuple(bodies.values()), tuple(wanted[:MAX_WANTED]))

    def _is_late(self) -> bool:
        return time.process_time() > self._until

    def _text(self, value: Any) -> str:
        return canonical_text(self._source, value)


def _depth(text: str) -> int:
    """How deep a JSON text is nested; brackets in strings count, too, which does no harm here."""
    depth = deepest = 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest
