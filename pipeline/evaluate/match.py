"""Match: a record that was found beside the one that was expected, leaf by leaf. Pure.

Null, text of blanks, an absent member and an empty list say nothing. Where both say nothing, that is an abstention, and
right. Lists are aligned (`align`), positions of tuples (`prefixItems`) are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pipeline.evaluate.align import align
from pipeline.evaluate.same import Equality, alike, equality, has_value
from pipeline.records import JsonValue
from pipeline.schema.alongside import MAX_DEPTH
from pipeline.schema.walk import escape, resolve

Verdict = Literal["exact", "normalised", "wrong", "missing", "invented", "abstained", "unanswered"]
"""`exact` and `normalised` are right values, `wrong` is another value, `missing` none where one was expected,
`invented` one where none was; `abstained` is rightly none. `unanswered`: none was expected, but there is no record that
could have said so."""

RIGHT: frozenset[Verdict] = frozenset({"exact", "normalised"})

MAX_LEAVES = 20_000
"""Leaves of one pair of records that are judged; `Matched.left_out` counts others."""

Nodes = tuple[Mapping[str, Any], ...]
Acceptable = Mapping[str, Sequence[JsonValue]]
"""By pointer into the expected record (or with `*` for any index): other values that are as right."""


@dataclass(frozen=True, slots=True)
class FieldMatch:
    """One leaf. `pointer` has `*` for indexes; `place` is where it stands in the record that was found, empty if it
    does not. `alike` is from 0 to 1, 1 if right."""

    pointer: str
    verdict: Verdict
    expected: JsonValue = None
    found: JsonValue = None
    place: str = ""
    alike: float = 0.0


@dataclass
class Matched:
    """The leaves of a pair of records; `in_order` counts lists that were too long to be aligned."""

    fields: list[FieldMatch] = field(default_factory=list)
    in_order: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in both records: `pointer` with stars, `ours` in the expected record, `theirs` in the found one. `lone`:
    in an item of a list that only one of them has."""

    pointer: str
    ours: str
    theirs: str
    nodes: Nodes
    depth: int = 0
    lone: bool = False

    def down(self, star: str, ours: object, theirs: object, nodes: Nodes) -> _Place:
        step = "/*" if star == "*" else f"/{escape(star[1:])}"
        here, there = f"{self.ours}/{escape(str(ours))}", f"{self.theirs}/{escape(str(theirs))}"
        return _Place(self.pointer + step, here, there, nodes, self.depth + 1, self.lone)


_NOTHING = object()
"""Stands for a record that is not there, which null is not."""


def match(
    expected: JsonValue, found: JsonValue, schema: Mapping[str, Any], acceptable: Acceptable | None = None
) -> Matched:
    """Judge every leaf of a record. `schema` says which members could be there, and which lists are tuples."""
    walk = _Walk(schema, acceptable or {})
    walk.visit(expected, found, _Place("", "", "", _nodes(schema, schema)))
    return walk.made


def match_nothing(expected: JsonValue, schema: Mapping[str, Any]) -> Matched:
    """Judge a document that came to no record: whatever was expected of it is missing or unanswered."""
    walk = _Walk(schema, {})
    walk.visit(expected, _NOTHING, _Place("", "", "", _nodes(schema, schema)))
    return walk.made


@dataclass
class _Walk:
    root: Mapping[str, Any]
    acceptable: Acceptable
    made: Matched = field(default_factory=Matched)

    def visit(self, expected: Any, found: Any, place: _Place) -> None:
        if len(self.made.fields) >= MAX_LEAVES or place.depth > MAX_DEPTH:
            self.made.left_out += 1
        elif isinstance(expected, list) or isinstance(found, list) or (expected is None and _is_list(place.nodes)):
            self._lists(expected, found, place)
        elif isinstance(expected, dict) or isinstance(found, dict):
            self._objects(expected, found, place)
        else:
            self._leaf(expected, found, place)

    def _objects(self, expected: Any, found: Any, place: _Place) -> None:
        ours, theirs = (one if isinstance(one, dict) else {} for one in (expected, found))
        for leaf in (one for one in (expected, found) if not isinstance(one, dict) and _is_leaf(one)):
            one, other = (leaf, None) if leaf is expected else (None, leaf)
            self._leaf(one, other, place)  # a leaf where an object should be
        absent = _NOTHING if found is _NOTHING else None
        for key in dict.fromkeys([*_declared(place.nodes), *ours, *theirs]):
            nodes = _member(self.root, place.nodes, key)
            self.visit(ours.get(key), theirs.get(key, absent), place.down(f"/{key}", key, key, nodes))

    def _lists(self, expected: Any, found: Any, place: _Place) -> None:
        ours, theirs = (_items(one) for one in (expected, found))
        if not ours and not theirs:
            self._leaf(None, _NOTHING if found is _NOTHING else None, place.down("*", "", "", ()))
            return
        pairs: Sequence[tuple[int | None, int | None]]
        if any("prefixItems" in node for node in place.nodes):
            longest = range(max(len(ours), len(theirs)))
            pairs = [(i if i < len(ours) else None, i if i < len(theirs) else None) for i in longest]
        else:
            aligned = align(ours, theirs)
            pairs, self.made.in_order = aligned.pairs, self.made.in_order + aligned.in_order
        for i, j in pairs:
            one = None if i is None else ours[i]
            other = (_NOTHING if found is _NOTHING else None) if j is None else theirs[j]
            nodes = _item(self.root, place.nodes, j or 0)
            here = place.down("*", "" if i is None else i, "" if j is None else j, nodes)
            self.visit(one, other, here if i is not None and j is not None else replace(here, lone=True))

    def _leaf(self, expected: Any, found: Any, place: _Place) -> None:
        nothing = found is _NOTHING
        found = None if nothing else found
        others = [*self.acceptable.get(place.ours, ()), *self.acceptable.get(place.pointer, ())]
        verdict, taken = _verdict([expected, *others], found)
        if verdict == "abstained":
            if place.lone:  # null inside an item that the other list has not is no answer of its own
                return
            verdict = "unanswered" if nothing else verdict
        close = 1.0 if verdict in RIGHT else alike(taken, found) if verdict == "wrong" else 0.0
        where = place.theirs if has_value(found) else ""
        self.made.fields.append(FieldMatch(place.pointer, verdict, taken, found, where, close))


_ORDER: tuple[Verdict, ...] = ("exact", "normalised", "abstained", "wrong", "missing", "invented")
_EQUAL: dict[Equality, Verdict] = {"exact": "exact", "normalised": "normalised", "no": "wrong"}


def _verdict(expected: Sequence[JsonValue], found: JsonValue) -> tuple[Verdict, JsonValue]:
    """The best verdict by any of the values that are right, and that value; of equals the first."""
    judged = [(_one(value, found), value) for value in expected]
    return min(judged, key=lambda one: _ORDER.index(one[0]))


def _one(expected: JsonValue, found: JsonValue) -> Verdict:
    if has_value(expected) and has_value(found):
        return _EQUAL[equality(expected, found)]
    if has_value(expected):
        return "missing"
    return "invented" if has_value(found) else "abstained"


def _is_leaf(value: Any) -> bool:
    return value is not _NOTHING and not isinstance(value, dict | list) and has_value(value)


def _items(value: Any) -> list[Any]:
    """A list's items; a leaf where a list should be is one item, so that it is judged and not dropped."""
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) or _is_leaf(value) else []


def _is_list(nodes: Nodes) -> bool:
    return any("items" in node or "prefixItems" in node for node in nodes)


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _declared(nodes: Nodes) -> Iterator[str]:
    for node in nodes:
        yield from node.get("properties", ())


def _member(root: Mapping[str, Any], nodes: Nodes, key: str) -> Nodes:
    declared = [node["properties"][key] for node in nodes if key in node.get("properties", {})]
    return tuple(one for schema in declared for one in _nodes(root, schema))


def _item(root: Mapping[str, Any], nodes: Nodes, index: int) -> Nodes:
    found: list[Any] = []
    for node in nodes:
        first = node.get("prefixItems", [])
        found += [first[index]] if index < len(first) else [node["items"]] if "items" in node else []
    return tuple(one for schema in found for one in _nodes(root, schema))


def _nodes(root: Mapping[str, Any], schema: Any) -> Nodes:
    """A schema with all that it always applies in place, and the one branch that is not null of a choice with null."""
    found: dict[int, Mapping[str, Any]] = {}
    todo = [schema]
    while todo and len(found) < MAX_DEPTH:
        node = todo.pop()
        if not isinstance(node, Mapping) or id(node) in found:
            continue
        found[id(node)] = node
        todo += [resolve(root, node["$ref"])] if "$ref" in node else []
        todo += node.get("allOf", ())
        for keyword in ("anyOf", "oneOf"):
            branches = [one for one in node.get(keyword, ()) if not _is_null(one)]
            todo += branches if len(branches) == 1 else []
    return tuple(found.values())
