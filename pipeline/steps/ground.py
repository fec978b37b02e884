"""Ground: for each leaf of a record the span of the document that supports it.

`x-ground` on a schema node holds for all below it that does not say otherwise: `false`, derived and not looked for;
`true`, has to be supported; `exact`, `normalised`, `fuzzy`, has to be supported as literally as that. Without it
required values have to be supported, except labels (enum, const), which documents need not spell out.
`x-cites` on a leaf or list that holds ids of passages names the field that they support. See docs/grounding.md.
"""

from __future__ import annotations

import dataclasses
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.job import ExtractConfig
from pipeline.records import Draft, Field, JsonValue, Match, Problem, Severity
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import PatternTimeout
from pipeline.steps.cite import passages
from pipeline.steps.clean import Cleaned
from pipeline.steps.judge import judge_of
from pipeline.steps.support.cites import Citations, citations_of
from pipeline.steps.support.leaves import Leaf, leaves_of, takes_null
from pipeline.steps.support.source import Hit, Source, hits_of

MAX_LEAVES = 2000
"""Values of one record that are looked for."""
MAX_SHOWN = 60
"""Characters of a passage that a message quotes. Values are not: what a model wrote must not come back as an order."""
MAX_LINE = 500
"""Characters further apart than this are not on one line."""

_SEVERITY: dict[str, Severity] = {"observe": "observe", "degrade": "degrade", "retry": "degrade", "block": "block"}
_LITERAL: tuple[Match, ...] = ("exact", "normalised", "fuzzy", "none")
"""From the most literal support to none."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What supports a leaf: places, best first. `looked`: false if the budget was spent before it was known."""

    leaf: Leaf
    hits: Sequence[Hit]
    looked: bool = True
    miscited: bool = False


def ground(draft: Draft, cleaned: Cleaned, plan: DecodingPlan, config: ExtractConfig, attempt: int) -> Draft:
    """The draft with what supports each leaf in its fields, and a problem for each value that has to be supported and
    is not. Under `policy.ground: off` nothing is looked for, citations included."""
    if not draft.parsed or config.policy.ground == "off":
        return draft
    try:
        leaves = list(leaves_of(plan.acceptance, draft.value, judge_of(plan).accepts))
    except PatternTimeout as error:
        return _with(draft, (), [_unjudged(f"which values to look for could not be told: {error}", attempt)])
    source, known = Source(cleaned.text), {field.pointer: field for field in draft.fields}
    given = passages(cleaned.text, config.cite)
    cites = citations_of(leaves, draft.value, given, attempt)
    asked = [leaf for leaf in leaves if leaf.wanted]
    found = [_look(source, leaf, known.get(leaf.pointer), cites) for leaf in asked[:MAX_LEAVES]]
    places = _chosen(found, source.text)
    fields = [_field(item, places.get(item.leaf.pointer), cleaned) for item in found if item.looked]
    problems = [*cites.problems, *_ungrounded(found, places, source, plan, config, attempt)]
    problems += [cites.unsupported(item.leaf, attempt) for item in found if item.miscited]
    unseen = len(asked) - sum(item.looked for item in found)
    if unseen:
        problems.append(
            _unjudged(f"{unseen} of {len(asked)} values were not looked for: too many, or too long", attempt)
        )
    return _with(draft, fields, problems)


def _look(source: Source, leaf: Leaf, known: Field | None, cites: Citations) -> _Found:
    """What supports a leaf: what the model wrote comes first, then what a normaliser made of it."""
    values = [leaf.value] if known is None or known.raw is None else [*_raw(known.raw), leaf.value]
    regions = cites.regions(leaf.pointer)
    if regions is not None:
        hits = [hit for region in regions for hit in _best(source, values, region)]
        if hits:
            return _Found(leaf, _most_literal(hits))
    hits = _best(source, values)
    return _Found(leaf, hits, bool(hits) or not source.spent, regions is not None and not leaf.label)


def _best(source: Source, values: Sequence[JsonValue], *region: Any) -> list[Hit]:
    every = []
    for value in values:
        hits = hits_of(source, value, *region)
        if hits and hits[0].match == "exact":
            return hits
        every += hits
    return _most_literal(every)


def _most_literal(hits: Sequence[Hit]) -> list[Hit]:
    least = min((_LITERAL.index(hit.match) for hit in hits), default=0)
    return sorted({hit for hit in hits if hit.match == _LITERAL[least]}, key=lambda hit: (-hit.score, hit.start))


def _raw(text: str) -> list[JsonValue]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return [value] if isinstance(value, str | int | float) and not isinstance(value, bool) else []


def _chosen(found: Sequence[_Found], text: str) -> dict[str, Hit]:
    """One place for each leaf. A value that stands in several is taken where it is nearest to its siblings that stand
    in one, on their line if it can be; the same value again in one list takes the next place. Else the first place."""
    anchors: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for item in found:
        if len(item.hits) == 1:
            anchors[item.leaf.parent].append((item.hits[0].start, item.hits[0].end))
    for spans in anchors.values():
        spans.sort()
    seen: dict[tuple[str, JsonValue], int] = defaultdict(int)
    places = {}
    for item in found:
        surest = [hit for hit in item.hits if hit.score == item.hits[0].score]
        near = anchors.get(item.leaf.parent, [])
        if len(surest) > 1 and item.leaf.in_list:
            nth = seen[item.leaf.parent, item.leaf.value]
            seen[item.leaf.parent, item.leaf.value] += 1
            places[item.leaf.pointer] = surest[nth % len(surest)]
        elif surest:
            places[item.leaf.pointer] = min(surest, key=lambda hit: (*_distance(text, hit, near), hit.start))
    return places


def _distance(text: str, hit: Hit, near: Sequence[tuple[int, int]]) -> tuple[bool, int]:
    """Whether a place is on another line than the nearest of some sorted spans, and how far from it."""
    index = bisect_left(near, (hit.start, hit.end))
    gaps = []
    for start, end in near[max(0, index - 1) : index + 1]:
        low, high = (end, hit.start) if start < hit.start else (hit.end, start)
        gaps.append((high - low > MAX_LINE or "\n" in text[low:high], max(0, high - low)))
    return min(gaps, default=(False, 0))


def _field(item: _Found, place: Hit | None, cleaned: Cleaned) -> Field | None:
    if place is None:
        return None if item.leaf.label else Field(item.leaf.pointer, "none", score=0.0)
    start, end = cleaned.raw_span(place.start, place.end)
    return Field(item.leaf.pointer, place.match, start, end, place.score)


def _with(draft: Draft, fields: Sequence[Field | None], problems: Sequence[Problem]) -> Draft:
    """The draft with more known of its fields: what other steps wrote of a field stays."""
    merged = {field.pointer: field for field in draft.fields}
    for field in fields:
        if field is not None:
            old = merged.get(field.pointer, field)
            support = {name: getattr(field, name) for name in ("match", "start", "end", "score")}
            merged[field.pointer] = dataclasses.replace(old, **support)
    more = [problem for problem in problems if problem not in draft.problems]
    return dataclasses.replace(draft, fields=tuple(merged.values()), problems=(*draft.problems, *more))


def _ungrounded(
    found: Sequence[_Found],
    places: Mapping[str, Hit],
    source: Source,
    plan: DecodingPlan,
    config: ExtractConfig,
    attempt: int,
) -> Iterator[Problem]:
    severity, accepts = _SEVERITY[config.policy.ground], judge_of(plan).accepts
    for item in found:
        place, leaf = places.get(item.leaf.pointer), item.leaf
        match = place.match if place else "none"
        if not item.looked or not leaf.needed or _LITERAL.index(match) <= _LITERAL.index(leaf.least):
            continue
        null = config.policy.abstain == "nullable" or takes_null(accepts, leaf)
        way = ", or null if it does not say it" if null else ""
        if place:
            there = _shown(source.text[place.start : place.end])
            words = f"the document says {there} instead: copy that{way}"
        else:
            words = f"this value is not in the document: copy what it says as it stands there{way}"
        yield Problem("ungrounded", leaf.pointer, words, attempt, severity)


def _unjudged(words: str, attempt: int) -> Problem:
    return Problem("ungrounded", "", words, attempt, "observe")


def _shown(value: JsonValue) -> str:
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN:
        return "a number of so many digits"
    text = json.dumps(" ".join(value.split()), ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
