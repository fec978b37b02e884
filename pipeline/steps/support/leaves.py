"""Which leaves of a record are looked for in the document, and which of them have to be supported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from pipeline.records import JsonValue
from pipeline.schema.alongside import Accepts, Part, parts
from pipeline.steps.support.currencies import CODES

LEVELS = ("exact", "normalised", "fuzzy")
"""How literal support has to be, as `x-ground` says it."""

Level = Literal["exact", "normalised", "fuzzy"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that holds no other. `wanted`: it is looked for; `needed`: it has to be supported, as literally as
    `least`; `label`: that it stands nowhere says nothing. `cites` is what `x-cites` says, None without."""

    pointer: str
    value: JsonValue
    parent: str
    in_list: bool
    wanted: bool
    needed: bool
    least: Level
    label: bool
    cites: str | None
    citing: str
    """The pointer of the leaf, or of the list in which it is an id among others."""
    nodes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Above:
    """What a container hands down to what it holds."""

    asked: Any = None
    cites: str | None = None
    citing: str = ""
    is_list: bool = False


def leaves_of(schema: Mapping[str, Any], value: JsonValue, accepts: Accepts) -> Iterator[Leaf]:
    """The leaves of a record, in its order; `accepts` tells which branches of the schema count.

    Raises:
        PatternTimeout: a pattern of a branch takes too long on its part of the value.
    """
    above: dict[str, _Above] = {"": _Above()}
    for part in parts(schema, value, accepts):
        parent = part.pointer.rpartition("/")[0]
        held = above[parent] if part.pointer else _Above()
        asked = _asked(part, held.asked)
        own = part.annotation("x-cites")
        cites, citing = (own, part.pointer) if isinstance(own, str) else (held.cites, held.citing)
        if part.is_leaf:
            yield _leaf(
                part, parent, held.is_list, asked, cites if isinstance(own, str) or held.is_list else None, citing
            )
        else:
            above[part.pointer] = _Above(asked, cites, citing, isinstance(part.value, list))


def takes_null(accepts: Accepts, leaf: Leaf) -> bool:
    """Whether the schema takes null for a leaf."""
    return not leaf.nodes or accepts(leaf.nodes[0], None)


def _leaf(part: Part, parent: str, in_list: bool, asked: Any, cites: str | None, citing: str) -> Leaf:
    value = part.value
    text = isinstance(value, str) and bool(value.strip())
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    insists = asked is True or asked in LEVELS
    return Leaf(
        pointer=part.pointer,
        value=value,
        parent=parent,
        in_list=in_list,
        wanted=(text or number) and asked is not False and cites is None,
        needed=insists or (part.required and not _is_label(part)),
        least=cast(Level, asked) if asked in LEVELS else "fuzzy",
        label=_is_label(part) and not insists,
        cites=cites,
        citing=citing,
        nodes=part.nodes,
    )


def _asked(part: Part, before: Any) -> Any:
    """What holds for a part: its own `x-ground`, else that of what it is in. Other words than those known say
    nothing."""
    own = part.annotation("x-ground")
    return own if isinstance(own, bool) or (isinstance(own, str) and own in LEVELS) else before


def _is_label(part: Part) -> bool:
    """Whether a value is one of a set of the schema's own words, which documents need not use. Codes of currencies are
    no such words: a document that names none supports none."""
    for node in part.nodes:
        words = [*_listed(node.get("enum")), *([node["const"]] if "const" in node else [])]
        texts = [word for word in words if isinstance(word, str)]
        if words and not (texts and all(text in CODES for text in texts)):
            return True
    return False


def _listed(words: Any) -> list[Any]:
    return list(words) if isinstance(words, list | tuple) else []
