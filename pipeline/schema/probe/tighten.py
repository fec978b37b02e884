"""Tighten: bodies that differ from a body in one keyword, and refuse values that it accepts.

Whether a tightened body does refuse one is for the caller to judge: what is made here only tries to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any

from pipeline.schema.probe.loosen import Body, Node, accepts, edited
from pipeline.schema.probe.mutate_text import members
from pipeline.schema.probe.repair import same
from pipeline.schema.shape.shapes import Site

MAX_CANDIDATES = 8
MAX_PATTERN = 60
"""Characters of a string that a pattern is narrowed to."""
_SPECIAL = frozenset("\\^$.|?*+()[]{}/")
_FORMATS = ("date", "time", "ipv4", "uuid")


def tightened(body: Mapping[str, Any], node: Mapping[str, Any], site: Site, parts: Sequence[Any]) -> Iterator[Body]:
    """Bodies in which the keyword of a site may refuse some of the parts that it judged. `node` is what stands there.

    There are none for keywords that nothing simple can be done to.
    """
    pointer, keyword = site
    aim = _TIGHTER.get(keyword)
    for other in islice(aim(dict(node), parts), MAX_CANDIDATES) if aim is not None and parts else ():
        changed = edited(body, pointer, lambda _node, other=other: other)  # type: ignore[misc]
        if changed is not None:
            yield changed


def narrowed(body: Mapping[str, Any], pointer: str, member: Any) -> Body | None:
    """The body with an enum of one member at a pointer."""
    return edited(body, pointer, lambda node: {**node, "enum": [member]})


def _enum(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
    used = [member for member in node["enum"] if any(same(member, part) for part in parts)]
    rest = [member for member in node["enum"] if not any(same(member, one) for one in used)]
    if rest:
        yield {**node, "enum": rest}
    elif len(node["enum"]) > 1:
        yield from ({**node, "enum": [one for one in node["enum"] if not same(one, gone)]} for gone in used)


def _const(node: Node, _parts: Sequence[Any]) -> Iterator[Node]:
    value = node["const"]
    if isinstance(value, bool):
        yield {**node, "const": not value}
    elif isinstance(value, str):
        yield {**node, "const": f"{value}-z"}
    elif isinstance(value, int):
        yield {**node, "const": value + 1}


def _sized(keyword: str, size: Callable[[Any], float | None], *, above: bool) -> Callable[..., Iterator[Node]]:
    """Bounds just beyond the parts, one way or the other: beyond all of them, or beyond the farthest."""

    def aim(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
        sizes = sorted({found for found in map(size, parts) if found is not None}, reverse=above)
        bounds = [one + 1 if above else one - 1 for one in sizes]
        if size is not _number:
            bounds = [bound for bound in bounds if bound >= 0]
        yield from ({**node, keyword: bound} for bound in bounds)

    return aim


def _number(part: Any) -> float | None:
    return part if isinstance(part, int | float) and not isinstance(part, bool) else None


def _length(kind: type[Sized]) -> Callable[[Any], float | None]:
    return lambda part: len(part) if isinstance(part, kind) else None


def _pattern(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
    for text in members(node["pattern"], 6):
        if text not in parts and text.isprintable() and len(text) <= 60:
            escaped = "".join(f"\\{char}" if char in _SPECIAL else char for char in text)
            yield {**node, "pattern": f"^{escaped}$"}


def _format(node: Node, _parts: Sequence[Any]) -> Iterator[Node]:
    yield from ({**node, "format": name} for name in _FORMATS if name != node["format"])


def _type(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
    if "enum" in node or "const" in node:
        return
    named = [node["type"]] if isinstance(node["type"], str) else list(node["type"])
    used = {name for part in parts for name in named if _is(part, name)}
    rest = [name for name in named if name not in used]
    if rest:
        yield {**node, "type": rest}
    yield from ({**node, "type": name} for name in ("integer", "boolean", "string", "null") if name not in named)


def _is(part: Any, name: str) -> bool:
    return accepts({"type": name}, part)


def _required(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
    absent = [name for name in node.get("properties", ()) if all(name not in part for part in parts)]
    yield from ({**node, "required": [*node["required"], name]} for name in absent)


def _closed(node: Node, parts: Sequence[Any]) -> Iterator[Node]:
    """A member taken away: what had been declared is now a key that nobody declared."""
    objects = [part for part in parts if isinstance(part, dict)]
    for gone in node.get("properties", ()):
        if any(gone in part for part in objects):
            left = {name: schema for name, schema in node["properties"].items() if name != gone}
            needed = [name for name in node.get("required", ()) if name != gone]
            yield {**node, "properties": left, "required": needed}


def _branches(keyword: str) -> Callable[..., Iterator[Node]]:
    def aim(node: Node, _parts: Sequence[Any]) -> Iterator[Node]:
        branches = node[keyword]
        if len(branches) > 1:
            yield from (
                {**node, keyword: [*branches[:place], *branches[place + 1 :]]} for place in range(len(branches))
            )

    return aim


def _steps(node: Node, _parts: Sequence[Any]) -> Iterator[Node]:
    if isinstance(node["multipleOf"], int):
        yield from ({**node, "multipleOf": node["multipleOf"] * factor} for factor in (3, 7))


_TIGHTER: dict[str, Callable[..., Iterator[Node]]] = {
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "format": _format,
    "type": _type,
    "required": _required,
    "multipleOf": _steps,
    "anyOf": _branches("anyOf"),
    "oneOf": _branches("oneOf"),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _closed),
    **{name: _sized(name, _number, above=True) for name in ("minimum", "exclusiveMinimum")},
    **{name: _sized(name, _number, above=False) for name in ("maximum", "exclusiveMaximum")},
    "minLength": _sized("minLength", _length(str), above=True),
    "maxLength": _sized("maxLength", _length(str), above=False),
    "minItems": _sized("minItems", _length(list), above=True),
    "maxItems": _sized("maxItems", _length(list), above=False),
    "minProperties": _sized("minProperties", _length(dict), above=True),
    "maxProperties": _sized("maxProperties", _length(dict), above=False),
}
