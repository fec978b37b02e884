"""Merge: one typed shape from all the schemas that judge one value, their choices made.

Every function takes the places (pointers) of the schemas and returns the shape of the values of its type that satisfy
all of them, or a superset and a `Left`. Bounds meet, patterns add up, keys get the schemas of all places.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from pipeline.schema.fingerprint import canonical
from pipeline.schema.formats import text_of_format
from pipeline.schema.pattern.ast import Malformed, Node, Unsupported
from pipeline.schema.pattern.parse import parse
from pipeline.schema.shape.canonical import ordered
from pipeline.schema.shape.meet import meet
from pipeline.schema.shape.shapes import NEVER, Boolean, Literals, Null, Number, Shape, Site, Text
from pipeline.schema.shape.source import EXCLUDED, Conjunction, Source
from pipeline.schema.walk import children, constrains

MAX_CHECKED, MAX_CHECKED_PLAINLY = 2000, 20_000
"""Members of an enum that are checked against the keywords beside it; above, they are taken as they are. The second
where no keyword holds schemas: those may be enums again, and be searched for each member."""

_CHECKED_ELSEWHERE = frozenset({"type", "enum", "const", EXCLUDED})


@dataclass(frozen=True, slots=True)
class Places:
    """The schemas that judge one value together."""

    source: Source
    pointers: tuple[str, ...]

    def nodes(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for pointer in self.pointers:
            yield pointer, self.source.nodes[pointer]

    def with_keyword(self, *keywords: str) -> Iterator[tuple[str, str, Any]]:
        """(pointer, keyword, value) wherever one of the keywords stands."""
        for pointer, node in self.nodes():
            for keyword in keywords:
                if keyword in node:
                    yield pointer, keyword, node[keyword]

    def sites(self, *keywords: str) -> tuple[Site, ...]:
        found = (self.source.origin(pointer, keyword) for pointer, keyword, _ in self.with_keyword(*keywords))
        return tuple(dict.fromkeys(found))


def types_of(places: Places) -> tuple[set[str], bool]:
    """The JSON types that all places allow, and whether numbers have to be whole."""
    types = {"object", "array", "string", "number", "boolean", "null"}
    whole = False
    for _, _, declared in places.with_keyword("type"):
        named = {declared} if isinstance(declared, str) else set(declared)
        whole |= "integer" in named and "number" not in named
        types &= {"number" if name == "integer" else name for name in named}
    return types, whole


def literals_of(places: Places, conjunction: Conjunction) -> Literals | None:
    """The values that enum and const leave, judged by everything else beside them; None without enum and const.

    `conjunction` is what the places come from: it ranks the keys of objects.
    """
    lists = [value if keyword == "enum" else [value] for _, keyword, value in places.with_keyword("enum", "const")]
    if not lists:
        return None
    kept = {canonical(value): value for value in map(plain, min(lists, key=len))}
    for values in lists:
        allowed = {canonical(plain(value)) for value in values}
        kept = {key: value for key, value in kept.items() if key in allowed}
    refused = _excluded(places)
    types, whole = types_of(places)
    values = [value for key, value in kept.items() if key not in refused and _has_type(value, types, whole)]
    judges = [pointer for pointer, node in places.nodes() if node.keys() - _CHECKED_ELSEWHERE]
    nodes = [places.source.nodes[pointer] for pointer in judges]
    most = MAX_CHECKED if any("$ref" in node or any(children(node)) for node in nodes) else MAX_CHECKED_PLAINLY
    if len(values) <= most:
        accepts = partial(places.source.accepts, without=_CHECKED_ELSEWHERE)
        values = [value for value in values if all(accepts(pointer, value) for pointer in judges)]
    else:
        for pointer, node in places.nodes():
            for keyword in node.keys() - _CHECKED_ELSEWHERE:
                places.source.leave(pointer, keyword, f"beside an enum of more than {most} members")
    judged = {key for _, node in places.nodes() for key in node if constrains(key) and key != "type"}
    written = tuple(pointer for pointer in conjunction if not pointer.startswith("#"))
    return Literals(tuple(compact(ordered(places.source, value, written)) for value in values), places.sites(*judged))


def compact(value: Any) -> str:
    """JSON text in canonical form, keys in their own order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """A value with whole floats as integers: 1.0 and 1 are one number in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def simple(places: Places, kind: str, whole: bool) -> Shape:
    """The shape of null, booleans, numbers or strings."""
    refused = _excluded(places)
    if kind == "null":
        return NEVER if "null" in refused else Null(places.sites("type"))
    if kind == "boolean":
        values = tuple(value for value in (True, False) if canonical(value) not in refused)
        return (
            Boolean(places.sites("type"))
            if len(values) == 2
            else Literals(tuple(map(compact, values)))
            if values
            else NEVER
        )
    leave_excluded(places, kind)
    return _number(places, whole) if kind == "number" else _text(places)


def leave_excluded(places: Places, kind: str) -> None:
    """Note that single values of a type are not meant, where shapes cannot say so."""
    if any(_has_type(value, {kind}, whole=False) for value in _excluded(places).values()):
        for pointer, _, _ in places.with_keyword(EXCLUDED):
            places.source.leave(pointer, EXCLUDED, f"a single {kind} cannot be left out")


def _excluded(places: Places) -> dict[str, Any]:
    values = [value for _, _, values in places.with_keyword(EXCLUDED) for value in values]
    return {canonical(plain(value)): value for value in values}


def _has_type(value: Any, types: set[str], whole: bool) -> bool:
    if isinstance(value, bool) or value is None:
        return ("null" if value is None else "boolean") in types
    if isinstance(value, int | float):
        return "number" in types and (not whole or isinstance(value, int) or value.is_integer())
    return ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object") in types


def _number(places: Places, whole: bool) -> Shape:
    lowest = _tightest(places, ("minimum", "exclusiveMinimum"), max)
    highest = _tightest(places, ("maximum", "exclusiveMaximum"), min)
    step = None
    for _, _, value in places.with_keyword("multipleOf"):
        step = exact(value) if step is None else _common_multiple(step, exact(value))
    whole = whole or (step is not None and step.denominator == 1)
    (minimum, open_minimum), (maximum, open_maximum) = lowest, highest
    if whole and step is not None:
        step = Fraction(step.numerator)  # whole multiples of p/q are multiples of p
    if whole:
        minimum = None if minimum is None else Fraction(math.floor(minimum) + 1 if open_minimum else math.ceil(minimum))
        maximum = None if maximum is None else Fraction(math.ceil(maximum) - 1 if open_maximum else math.floor(maximum))
        open_minimum = open_maximum = False
    if minimum is not None and maximum is not None:
        gap = maximum - minimum
        if gap < 0 or (gap == 0 and (open_minimum or open_maximum)):
            return NEVER
        if step is not None and not _has_multiple(step, lowest, highest):
            return NEVER
    sites = places.sites("type", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
    return Number(whole, minimum, maximum, open_minimum, open_maximum, step, sites)


def _has_multiple(step: Fraction, lowest: tuple[Fraction | None, bool], highest: tuple[Fraction | None, bool]) -> bool:
    """Whether a multiple of the step lies between two bounds."""
    (minimum, open_minimum), (maximum, open_maximum) = lowest, highest
    assert minimum is not None and maximum is not None
    first = math.floor(minimum / step) + 1 if open_minimum else math.ceil(minimum / step)
    last = math.ceil(maximum / step) - 1 if open_maximum else math.floor(maximum / step)
    return first <= last


def exact(number: float) -> Fraction:
    """The decimal that JSON shows for a number."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _tightest(
    places: Places, keywords: tuple[str, str], pick: Callable[[Iterable[Any]], Any]
) -> tuple[Fraction | None, bool]:
    """The bound that holds, and whether it is itself left out; the open one of two equal bounds."""
    bounds = [(exact(value), keyword == keywords[1]) for _, keyword, value in places.with_keyword(*keywords)]
    if not bounds:
        return None, False
    bound = pick(value for value, _ in bounds)
    return bound, any(is_open for value, is_open in bounds if value == bound)


def _common_multiple(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(math.lcm(one.numerator, other.numerator), math.gcd(one.denominator, other.denominator))


def largest(places: Places, keyword: str) -> int:
    """The greatest value of a keyword for a least count; 0 without it."""
    return max((math.ceil(value) for _, _, value in places.with_keyword(keyword)), default=0)


def smallest(places: Places, keyword: str) -> int | None:
    """The least value of a keyword for a greatest count; None without it."""
    return min((math.floor(value) for _, _, value in places.with_keyword(keyword)), default=None)


def _text(places: Places) -> Shape:
    minimum, maximum = largest(places, "minLength"), smallest(places, "maxLength")
    if maximum is not None and minimum > maximum:
        return NEVER
    patterns: list[tuple[Site, Node]] = []
    for pointer, keyword, value in places.with_keyword("pattern", "format"):
        node = _described(places.source, pointer, keyword, value)
        if node is not None and all(node != known for _, known in patterns):
            patterns.append((places.source.origin(pointer, keyword), node))
    sites = places.sites("type", "minLength", "maxLength", "pattern", "format")
    possible = meet([node for _, node in patterns], minimum, maximum)
    if possible is None:
        for site, _ in patterns[1:]:
            places.source.leave(*site, "whether a string can match all patterns is not known")
        patterns = patterns[:1]
        possible = meet([node for _, node in patterns], minimum, maximum)
    if possible is None:
        for pointer, keyword, _ in places.with_keyword("minLength", "maxLength"):
            places.source.leave(pointer, keyword, "whether a string of this length can match the pattern is not known")
        minimum, maximum, possible = 0, None, True
    return Text(minimum, maximum, tuple(patterns), sites) if possible else NEVER


def _described(source: Source, pointer: str, keyword: str, value: str) -> Node | None:
    """The pattern of whole strings behind a pattern or a format."""
    if keyword == "pattern":
        try:
            return parse(value)
        except (Unsupported, Malformed) as error:  # the validator reads dialects that are not ECMA's
            source.leave(pointer, keyword, str(error))
            return None
    known = text_of_format(value)
    if known is None:
        source.leave(pointer, keyword, f"no grammar for format {value}")
        return None
    if not known.exact:
        source.leave(pointer, keyword, f"the grammar holds only the outline of format {value}")
    return known.node
