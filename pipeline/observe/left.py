"""Violations at the sites that a plan left to the validator, under names that are the schema's and never a model's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.observe.paths import starred
from pipeline.records import Outcome
from pipeline.schema.lately import Lately
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.walk import escape, resolve, target

MAX_SITES = 20
"""Sites of one schema that are counted by name, in the plan's order; the others are `OTHER`."""
OTHER = "other"

_MAX_PLACES = 2000
_MAX_DEPTH = 40
_KEYWORD = re.compile(r"\w+(?=:)")

Sites = Mapping[int, Sequence[tuple[Sequence[str], str, str]]]
"""The sites by how many tokens the pointer of their place in a record has: the tokens (array indexes as `*`), keyword,
name."""

_SITES: Lately[str, Sites] = Lately()
"""By plan digest."""


def left_violations(outcome: Outcome, plan: DecodingPlan) -> set[str]:
    """The sites that a document's answers violated under a constraint: `place keyword`.

    What a grammar was to hold has a code of its own, so whatever else violates a schema under one was left.
    """
    constrained = {attempt.number for attempt in outcome.attempts if attempt.constrained}
    found = [p for p in outcome.problems if p.code == "schema_violation" and p.attempt in constrained]
    if not found:
        return set()
    sites = _SITES.get(plan.digest, lambda: _sites(plan))
    return {_name(sites, starred(problem.pointer), problem.message) for problem in found}


def _name(sites: Sites, place: str, message: str) -> str:
    """The site itself, else the nearest one at the same place or above it, which covers what is below."""
    keyword = _KEYWORD.match(message)
    tokens = place.split("/")
    for length in range(len(tokens), 0, -1):
        here = {site: name for where, site, name in sites.get(length, ()) if _fits(where, tokens)}
        if here:
            own = keyword[0] if keyword and length == len(tokens) else ""
            return here.get(own) or next(iter(here.values()))
    return OTHER


def _fits(declared: Sequence[str], found: Sequence[str]) -> bool:
    """Whether a place is, or is below, a declared one, whose `*` stands for any item or key."""
    return all(one in ("*", other) for one, other in zip(declared, found, strict=False))


def _sites(plan: DecodingPlan) -> Sites:
    """Walks the schema that the model was asked for, breadth first, to where in a record each of its places is."""
    root = plan.asked or plan.acceptance
    left: dict[str, list[str]] = {}
    for item in plan.left:
        left.setdefault(item.pointer, []).append(item.keyword)
    found: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str]] = set()
    pending: list[tuple[str, str, Any, int]] = [("", "", root, 0)]
    for pointer, place, node, depth in pending:  # grows as it goes
        if (pointer, place) in seen or not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            continue
        seen.add((pointer, place))
        for keyword in left.get(pointer, ()):
            name = f"{place or '/'} {keyword}" if len(found) < MAX_SITES else OTHER
            found.setdefault((place, keyword), name)
        if len(pending) < _MAX_PLACES:
            pending += [(*step, depth + 1) for step in _steps(root, pointer, place, node)]
    sites: dict[int, list[tuple[Sequence[str], str, str]]] = {}
    for (place, keyword), name in found.items():
        tokens = place.split("/")
        sites.setdefault(len(tokens), []).append((tokens, keyword, name))
    return sites


def _steps(root: Mapping[str, Any], pointer: str, place: str, node: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """The schemas below one: their pointers, and their places in a record."""
    steps: list[tuple[str, str, Any]] = []
    if "$ref" in node:
        steps.append((target(node["$ref"]), place, resolve(root, node["$ref"])))
    for keyword in ("allOf", "anyOf", "oneOf"):
        steps += [(f"{pointer}/{keyword}/{n}", place, inner) for n, inner in enumerate(node.get(keyword, ()))]
    steps += [(f"{pointer}/{key}", place, node[key]) for key in ("if", "then", "else") if key in node]
    for name, inner in node.get("properties", {}).items():
        token = escape(name)
        steps.append((f"{pointer}/properties/{token}", starred(f"{place}/{token}"), inner))
    steps += [(f"{pointer}/{key}", f"{place}/*", node[key]) for key in ("items", "additionalProperties") if key in node]
    steps += [
        (f"{pointer}/prefixItems/{n}", f"{place}/*", inner) for n, inner in enumerate(node.get("prefixItems", ()))
    ]
    return steps
