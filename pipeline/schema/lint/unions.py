"""Checks of anyOf and oneOf: what tells the branches apart, and when."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from pipeline.schema.fingerprint import canonical
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import quoted
from pipeline.schema.lint.view import Scope, Site

_MAX_BRANCHES = 64


def check_unions(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    for site in scope.nodes:
        for keyword in ("anyOf", "oneOf"):
            branches = site.node.get(keyword, [])[:_MAX_BRANCHES]
            if len(branches) > 1 and not site.aside:
                yield from _objects(scope, site, keyword, branches)
                if keyword == "oneOf":
                    yield from _overlap(scope, site, branches)


def _objects(scope: Scope, site: Site, keyword: str, branches: list[Any]) -> Iterator[Finding]:
    objects = [branch for branch in branches if "object" in scope.types(branch) and scope.properties(branch)]
    described = [branch for branch in objects if any("type" in part for part in scope.parts(branch))]
    if len(objects) < 2 or ("properties" in site.node and len(described) < 2):
        return
    pointer = f"{site.pointer}/{keyword}"
    told = [name for name in scope.properties(objects[0]) if _tells(scope, name, objects)]
    if _told_by_key(scope, objects):
        return
    if not told:
        why = f"No required property has a constant of its own in each of the {len(objects)} object branches."
        yield found("untold_union", pointer, why)
    elif not all(next(iter(scope.properties(branch))) in told for branch in objects):
        why = f"{quoted(told[0])} tells the branches apart, but is not their first property."
        yield found("late_discriminator", pointer, why)


def _told_by_key(scope: Scope, branches: list[Any]) -> bool:
    """Whether the first key of each branch is required and foreign to all others: {"pay": …} or {"refund": …}."""
    firsts = [next(iter(scope.properties(branch))) for branch in branches]
    held = [name for branch in branches for name in scope.properties(branch)]
    return all(held.count(f) == 1 and f in scope.required(b) for f, b in zip(firsts, branches, strict=True))


def _tells(scope: Scope, name: str, branches: list[Any]) -> bool:
    """Whether a property is required with enumerated values in every branch, and none in two of them."""
    seen: set[str] = set()
    for branch in branches:
        if name not in scope.required(branch):
            return False
        values = scope.members(scope.properties(branch).get(name, True))
        keys = {canonical(value) for value in values or []}
        if not keys or keys & seen:
            return False
        seen |= keys
    return True


def _overlap(scope: Scope, site: Site, branches: list[Any]) -> Iterator[Finding]:
    """Branches that surely share values: same scalar type, and one of them does not restrict it."""
    for (i, a), (j, b) in combinations(enumerate(branches), 2):
        common = scope.types(a) & scope.types(b) - {"object", "array"}
        if common and (_plain(scope, a) or _plain(scope, b)):
            why = f"Branches {i} and {j} both accept {quoted(min(common))} values: oneOf refuses what both accept."
            yield found("overlapping_one_of", f"{site.pointer}/oneOf", why)
            return


def _plain(scope: Scope, node: Any) -> bool:
    """Whether a schema says nothing but its type."""
    rules = {key for part in scope.parts(node) for key in part}
    return not rules - {"type", "title", "description", "$ref", "default", "examples", "$comment"}
