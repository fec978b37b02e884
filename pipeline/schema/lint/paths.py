"""Checks that follow values downwards: nesting, recursion, and recursion that never ends."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.schema.lint.policy import MAX_NESTING
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import quoted
from pipeline.schema.lint.view import Scope, Site
from pipeline.schema.walk import escape


def check_paths(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    finished, loops = _traverse({pointer: scope.steps(site) for pointer, site in scope.by_pointer.items()})
    _, endless = _traverse({pointer: _musts(scope, site) for pointer, site in scope.by_pointer.items()})
    for source, goal in sorted(endless):
        why = f"A value here must contain a value of {quoted('#' + goal)}, and so on: no finite document is legal."
        yield found("endless", source, why)
    for source, goal in sorted(loops - endless):
        why = f"This leads back to {quoted('#' + goal)}, which it is part of; no keyword bounds how often."
        yield found("recursion", source, why)
    yield from _nesting(scope, finished, loops)


def _traverse(steps: dict[str, list[str]]) -> tuple[list[str], set[tuple[str, str]]]:
    """Depth first from every pointer: the pointers in the order in which they were left; the steps that close loops."""
    left: list[str] = []
    entered: set[str] = set()
    open_now: set[str] = set()
    loops: set[tuple[str, str]] = set()
    for start in steps:
        trail = [(start, iter([start]))]
        while trail:
            source, coming = trail[-1]
            step = next(coming, None)
            if step is None:
                trail.pop()
                if trail:
                    open_now.discard(source)
                    left.append(source)
            elif step in open_now:
                loops.add((source, step))
            elif step in steps and step not in entered:
                entered.add(step)
                open_now.add(step)
                trail.append((step, iter(steps[step])))
    return left, loops


def _nesting(scope: Scope, left: list[str], loops: set[tuple[str, str]]) -> Iterator[Finding]:
    """The deepest value: what is left last stands first, so each pointer comes after all that lead to it."""
    depths = {"": _own(scope, scope.by_pointer[""])}
    for pointer in reversed(left):
        for step in scope.steps(scope.by_pointer[pointer]):
            if step in scope.by_pointer and (pointer, step) not in loops and pointer in depths:
                depth = depths[pointer] + _own(scope, scope.by_pointer[step])
                depths[step] = max(depth, depths.get(step, 0))
    deepest = max(depths, key=lambda pointer: depths[pointer])
    if depths[deepest] > MAX_NESTING:
        why = f"Objects and arrays lie {depths[deepest]} deep inside each other here; more than {MAX_NESTING} is hard."
        yield found("deep_nesting", deepest, why)


def _own(scope: Scope, site: Site) -> int:
    """1 for an object or array that is described here, not by reference and not a second time in place."""
    if (
        not isinstance(site.node, dict)
        or "$ref" in site.node
        or (site.in_place and site.keyword not in ("anyOf", "oneOf"))
    ):
        return 0
    return int(any(key in site.node for key in ("properties", "items", "prefixItems", "patternProperties")))


def _musts(scope: Scope, site: Site) -> list[str]:
    """The pointers whose schemas every value of this site must also hold or satisfy."""
    node, musts = site.node, []
    if not isinstance(node, dict):
        return []
    types = scope.types(node)
    if "$ref" in node:
        musts += scope.steps(site)[-1:]
    musts += [f"{site.pointer}/allOf/{index}" for index in range(len(node.get("allOf", [])))]
    if types == {"object"} and not scope.members(node):
        held = node.get("properties", {})
        musts += [f"{site.pointer}/properties/{escape(name)}" for name in node.get("required", []) if name in held]
    if types == {"array"} and node.get("minItems", 0) > len(node.get("prefixItems", [])):
        musts += [f"{site.pointer}/items"] if "items" in node else []
    return musts
