"""Loosen: a body with one keyword of one subschema taken away, and nothing else.

What a grammar does for a keyword shows in the difference between two answers to one request, with the keyword and
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pipeline.schema.shape.shapes import TYPES, Site
from pipeline.schema.validator import PatternTimeout, validator_of
from pipeline.schema.walk import rebuild

Body = dict[str, Any]
Node = dict[str, Any]

_HOLD = frozenset({"properties", "patternProperties", "allOf", "dependentSchemas", "then", "else"})
"""Keywords that hold much besides what they refuse: without them a body is another one."""

MAX_NAMES = 64


def loosened(body: Mapping[str, Any], site: Site, violation: Any) -> Body | None:
    """The body with as little taken away at a site as makes it accept a value that violates that site alone.

    None if nothing simple does.
    """
    pointer, keyword = site
    for change in () if keyword in _HOLD else _looser(keyword):
        changed = edited(body, pointer, change)
        if changed is not None and accepts(changed, violation):
            return changed
    return None


def edited(body: Mapping[str, Any], pointer: str, change: Callable[[Node], Node | None]) -> Body | None:
    """A copy with another subschema at a pointer; None if `change` makes none, or there is nothing to change."""
    made: list[Node] = []

    def at(place: str, node: Any) -> Any:
        if place != pointer or not isinstance(node, dict):
            return node
        other = change(node)
        made.extend([] if other is None else [other])
        return other

    changed = rebuild(body, at)
    return changed if made and isinstance(changed, dict) else None


def accepts(body: Mapping[str, Any], value: Any) -> bool:
    """Whether a body accepts a value; no, if a pattern takes too long to say."""
    try:
        return bool(validator_of(body).is_valid(value))
    except PatternTimeout:
        return False


def _looser(keyword: str) -> Iterator[Callable[[Node], Node | None]]:
    """Changes of a subschema, the smallest first."""
    if keyword == "type":
        yield from (partial(_also, kind) for kind in ("integer", *TYPES))
        return
    if keyword == "required":
        yield from (partial(_without_name, place) for place in range(MAX_NAMES))
    if keyword in ("enum", "const"):
        yield from (partial(_typed, keyword, kind) for kind in ("integer", *TYPES))
    yield partial(_without, keyword)


def _without(keyword: str, node: Node) -> Node:
    return {name: value for name, value in node.items() if name != keyword}


def _also(kind: str, node: Node) -> Node:
    named = node["type"]
    return {**node, "type": list(dict.fromkeys([*([named] if isinstance(named, str) else named), kind]))}


def _without_name(place: int, node: Node) -> Node | None:
    names = node["required"]
    return {**node, "required": [*names[:place], *names[place + 1 :]]} if place < len(names) else None


def _typed(keyword: str, kind: str, node: Node) -> Node | None:
    """Without its constants, but of one type: free of both, a model writes whatever it likes, for long."""
    return None if "type" in node else {**_without(keyword, node), "type": kind}
