"""Lists of branches: which old one became which new one, and what is left over.

Branches are matched by equal text, then by the reference, the constants and the types that they have: linear in their
number. What finds no partner counts as removed or added, even where another branch would cover it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.schema.drift.found import Finding, Found, Pair
from pipeline.schema.drift.prints import Prints
from pipeline.schema.drift.values import ALL_TYPES, key_of, listed, types_of
from pipeline.schema.walk import constrains

Look = Callable[[Any], Any]
"""Follows references: from a branch to the schema that it means."""

Step = Callable[[int], tuple[str, ...]]
"""Reference tokens from a schema to its branch of an index."""


def union_of(schema: Any) -> tuple[str, list[Any]] | None:
    """The keyword and branches of a schema that is nothing but an `anyOf` or a `oneOf`."""
    if isinstance(schema, Mapping):
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema and sum(map(constrains, schema)) == 1:
                return keyword, schema[keyword]
    return None


def split(schema: Any) -> list[Any]:
    """A schema of several declared types as one schema per type: `["string", "null"]` is a union too."""
    types = types_of(schema)
    names = types - {"integer"} if "number" in types else types
    if not isinstance(schema, Mapping) or len(names) < 2 or types == ALL_TYPES:
        return [schema]
    values = listed(schema)
    parts = []
    for name in sorted(names):
        part = {**schema, "type": name}
        if values is not None:
            part.pop("const", None)
            part["enum"] = [value for value in values if types_of({"const": value}) & types_of({"type": name})]
        parts.append(part)
    return parts


def told_apart(branches: Sequence[Any], look: Look) -> bool:
    """Whether no value satisfies two branches, as far as types and required constants tell. Linear."""
    by_type: dict[str, list[Any]] = defaultdict(list)
    for branch in map(look, branches):
        for name in types_of(branch):
            by_type[name].append(branch)
    crowded = [name for name, sharing in by_type.items() if len(sharing) > 1]
    return not crowded or (crowded == ["object"] and _by_constant(by_type["object"], look))


def _by_constant(branches: list[Any], look: Look) -> bool:
    if not all(isinstance(branch, Mapping) for branch in branches):
        return False
    names = set.intersection(*(set(branch.get("required", ())) for branch in branches))
    for name in names:
        seen: list[str] = []
        for branch in branches:
            tag = look(branch.get("properties", {}).get(name, {}))
            values = listed(tag) if isinstance(tag, Mapping) else None
            if values is None:
                break
            seen += {key_of(value) for value in values}
        else:
            if len(seen) == len(set(seen)):
                return True
    return False


def matched(
    old: Sequence[Any], new: Sequence[Any], prints: Prints, looks: tuple[Look, Look]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Indices of branches that belong together, in new order; then the old ones and the new ones left over."""
    pairs: list[tuple[int, int]] = []
    left, right = list(range(len(old))), list(range(len(new)))
    tags: tuple[Callable[[Any, Look], Hashable], ...] = (
        lambda branch, _: prints.of(branch),
        lambda branch, _: branch.get("$ref") if isinstance(branch, Mapping) else None,
        lambda branch, look: _constants(look(branch), look),
        lambda branch, look: types_of(look(branch)),
    )
    for tag in tags:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for index in reversed(left):
            waiting[tag(old[index], looks[0])].append(index)
        taken = {}
        for index in right:
            key = tag(new[index], looks[1])
            if key is not None and waiting[key]:
                taken[index] = waiting[key].pop()
        pairs += [(before, after) for after, before in taken.items()]
        gone = set(taken.values())
        left, right = [index for index in left if index not in gone], [index for index in right if index not in taken]
    return sorted(pairs, key=lambda pair: pair[1]), left, right


def _constants(schema: Any, look: Look) -> Hashable:
    """What a discriminated branch is known by: its members that have one value each. None if there are none."""
    if not isinstance(schema, Mapping):
        return None
    tags = []
    for name, child in schema.get("properties", {}).items():
        tag = look(child)
        values = listed(tag) if isinstance(tag, Mapping) else None
        if values is not None and len(values) == 1:
            tags.append((name, key_of(values[0])))
    return tuple(sorted(tags)) or None


def same_branches(
    old: Sequence[Any], new: Sequence[Any], prints: Prints, looks: tuple[Look, Look], step: Step
) -> Iterator[Found]:
    """Differences of two `anyOf`, or of two `oneOf` whose branches are told apart."""
    pairs, gone, fresh = matched(old, new, prints, looks)
    yield from (Pair(old[before], new[after], step(after), in_place=True) for before, after in pairs)
    for index in gone:
        yield Finding("branch_removed", step(index), old[index], keeps=old[index] is False)
    met = frozenset().union(*(types_of(looks[0](branch)) for branch in old))
    for index in fresh:
        strange = types_of(looks[1](new[index])) - met
        yield Finding(
            *("branch_added", step(index)),
            after=new[index],
            adds_nothing=new[index] is False,
            readers="breaking" if strange else None,
            why=f"new: {', '.join(sorted(strange))}" if strange and strange != ALL_TYPES else "",
        )
    if [before for before, _ in pairs] != sorted(before for before, _ in pairs):
        yield Finding("branch_order", (), [before for before, _ in pairs])


def same_unions(
    old: tuple[str, Sequence[Any]], new: tuple[str, Sequence[Any]], prints: Prints, looks: tuple[Look, Look]
) -> Iterator[Found]:
    """Differences of two unions, each a keyword (empty: types of one schema) and branches.

    A `oneOf` whose branches may overlap is less than its `anyOf`, and by how much cannot be told: only if every
    branch keeps its values does it keep its own.
    """
    strict = [
        keyword == "oneOf" and not told_apart(branches, look)
        for (keyword, branches), look in zip((old, new), looks, strict=True)
    ]
    alone = False
    for found in same_branches(old[1], new[1], prints, looks, lambda index: (new[0], str(index)) if new[0] else ()):
        alone = alone or (isinstance(found, Finding) and found.kind != "branch_order")
        yield replace(found, turn="exact") if all(strict) and isinstance(found, Pair) else found
    if all(strict) and alone:
        yield Finding("overlap", (new[0],), keeps=False, adds_nothing=False)
    elif old[0] != new[0] and ({old[0], new[0]} == {"anyOf", "oneOf"} or any(strict)):
        yield Finding(*("one_of_any", (), old[0], new[0]), keeps=not strict[1], adds_nothing=not strict[0])
    elif strict[0] != strict[1]:
        yield Finding("overlap", (new[0],), keeps=not strict[1], adds_nothing=not strict[0])


def same_parts(
    old: Mapping[str, Any], new: Mapping[str, Any], prints: Prints, looks: tuple[Look, Look]
) -> Iterator[Found]:
    """Differences of `allOf` and of a `$ref` beside other keywords: all must hold, in whatever order."""
    was, now = (
        [*schema.get("allOf", ()), *([{"$ref": schema["$ref"]}] if "$ref" in schema else ())] for schema in (old, new)
    )

    def step(schema: Mapping[str, Any], index: int) -> tuple[str, ...]:
        return ("allOf", str(index)) if index < len(schema.get("allOf", ())) else ("$ref",)

    pairs, gone, fresh = matched(was, now, prints, looks)
    yield from (Pair(was[before], now[after], step(new, after), in_place=True) for before, after in pairs)
    for index in gone:
        yield Finding("constraint_removed", step(old, index), was[index], adds_nothing=False)
    for index in fresh:
        yield Finding("constraint_added", step(new, index), after=now[index], keeps=False)
