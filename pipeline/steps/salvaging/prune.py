"""Prune: a value without some of its parts, and where the others went."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from pipeline.records import JsonValue
from pipeline.schema.walk import escape


@dataclass(frozen=True, slots=True)
class Pruned:
    """`origin` has, for each pointer into `value`, the pointer of the same part in what it was made of; `shortened`
    are the lists of `value` that lost items, `emptied` the containers, by their old pointers, that lost all."""

    value: JsonValue
    origin: dict[str, str] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)


def prune(value: JsonValue, removed: Collection[str]) -> Pruned:
    """The value without the parts at the given pointers; a container that loses all it held goes with them."""
    pruned = Pruned(None)
    kept = _prune(value, "", "", removed, pruned)
    return Pruned(kept, pruned.origin, pruned.shortened, pruned.emptied)


def _prune(value: JsonValue, old: str, new: str, removed: Collection[str], made: Pruned) -> JsonValue:
    made.origin[new] = old
    if isinstance(value, dict):
        copy: JsonValue = {}
        for key, child in value.items():
            step = f"/{escape(key)}"
            if old + step not in removed:
                copy[key] = _prune(child, old + step, new + step, removed, made)
                if _is_emptied(child, copy[key], old + step, made):
                    del copy[key]
        return copy
    if not isinstance(value, list):
        return value
    items: list[JsonValue] = []
    for index, child in enumerate(value):
        here = f"{old}/{index}"
        if here not in removed:
            item = _prune(child, here, f"{new}/{len(items)}", removed, made)
            if not _is_emptied(child, item, here, made):
                items.append(item)
    if len(items) < len(value):
        made.shortened.append(new)
    return items


def _is_emptied(before: JsonValue, after: JsonValue, pointer: str, made: Pruned) -> bool:
    emptied = isinstance(before, dict | list) and bool(before) and not after
    if emptied:
        made.emptied.append(pointer)
    return emptied
