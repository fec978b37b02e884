"""Asked: the schema that the model is asked for, where that is not the schema that a record must satisfy.

A leaf with a converting normaliser is asked as it is printed: a text of 1 to MAX_PRINTED characters, or null where the
leaf may be null. Whatever else judges such a leaf, or decides by its value, would judge the printed text instead, so
it is left out, too: the asked schema accepts every record that becomes a legal one. `x-` keywords are for us alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.alongside import Part, all_branches, parts
from pipeline.schema.locales.numbers import MAX_PRINTED
from pipeline.schema.normalised import restored
from pipeline.schema.normalisers import KEYWORD, chain_of
from pipeline.schema.validator import PatternTimeout, validator_of
from pipeline.schema.walk import IN_PLACE, children, constrains, descend, rebuild, target

HINT = "as printed"
_DECIDING = ("if", "not", "contains")
_TOLD = ("title", "description", "deprecated")
_OF_TEXT = {"type", "format", "pattern", "minLength", "maxLength"}
_PARTNERS = {
    "if": ("then", "else", "unevaluatedProperties", "unevaluatedItems"),
    "contains": ("minContains", "maxContains", "unevaluatedItems"),
}


def asked(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the model is asked for, of a loaded body; the body itself if it has no `x-` keyword."""
    extended = any(
        keyword.startswith("x-") for _, node in descend(body) if isinstance(node, Mapping) for keyword in node
    )
    return body if not extended else _Change(body).made()


def printed(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The pointers of the leaves of a loaded body that are asked as they are printed."""
    return tuple(
        pointer
        for pointer, node in descend(body)
        if isinstance(node, Mapping) and KEYWORD in node and chain_of(node[KEYWORD]).converts
    )


@dataclass
class _Change:
    body: Mapping[str, Any]
    nodes: dict[str, Any] = field(init=False)
    printed: set[str] = field(init=False)
    freed: set[str] = field(default_factory=set)
    """Schemas beside a printed leaf that judge the same value."""
    undecided: set[tuple[str, str]] = field(default_factory=set)
    """Keywords that decide by a printed leaf: (pointer, keyword)."""

    def __post_init__(self) -> None:
        self.nodes = dict(descend(self.body))
        self.validator: Any = validator_of(self.body)
        self.printed = set(printed(self.body))
        self.printed |= {pointer for pointer in self.nodes if self._prints(pointer, set())}
        self.touched = self._touched()
        for pointer in self.touched:
            self._free(pointer)

    def made(self) -> Mapping[str, Any]:
        """The asked body."""
        made: Mapping[str, Any] = rebuild(self.body, self._node)
        return made

    def _node(self, pointer: str, node: Any) -> Any:
        if pointer in self.printed and not self._only_refers(pointer):
            return self._leaf(pointer)
        if pointer in self.freed:
            return True
        if not isinstance(node, Mapping):
            return node
        dropped = self._dropped(pointer)
        kept = {key: value for key, value in node.items() if not key.startswith("x-") and key not in dropped}
        if "oneOf" in kept and any(f"{pointer}/oneOf/{n}" in self.touched for n in range(len(node["oneOf"]))):
            # What tells the branches apart may be the form of a printed value. Not anyOf of its own: that may be there.
            union = {"anyOf": kept.pop("oneOf")}
            kept = {**kept, "allOf": [*kept.get("allOf", ()), union]} if "anyOf" in kept else {**kept, **union}
        return kept

    def _dropped(self, pointer: str) -> set[str]:
        """The keywords of a schema that would judge or decide by what is printed."""
        dropped = {keyword for keyword in _DECIDING if (pointer, keyword) in self.undecided}
        if pointer in self.touched:
            dropped |= {"const", "enum"}
            if any(
                place in self.printed for place, decides in self._family(pointer) if place != pointer and not decides
            ):
                dropped |= _OF_TEXT  # some branch of this very value is printed
        return dropped | {other for keyword in dropped for other in _PARTNERS.get(keyword, ())}

    def _leaf(self, pointer: str) -> dict[str, Any]:
        node = self.nodes[pointer]
        told = {key: node[key] for key in _TOLD if key in node}
        words = str(told.get("description", ""))
        if HINT not in words:
            told["description"] = f"{words} ({HINT})" if words else HINT.capitalize()
        kind = ["string", "null"] if self._accepts_null(node) else "string"
        return {**told, "type": kind, "minLength": 1, "maxLength": MAX_PRINTED}

    def _accepts_null(self, node: Mapping[str, Any]) -> bool:
        try:
            return bool(self.validator.evolve(schema=node).is_valid(None))
        except (PatternTimeout, RecursionError):
            return True

    def _prints(self, pointer: str, seen: set[str]) -> bool:
        """Whether every value of a schema is printed: itself, what it refers to, or a part of its `allOf` says so."""
        node = self.nodes[pointer]
        if pointer in self.printed or pointer in seen or not isinstance(node, Mapping):
            return pointer in self.printed
        seen.add(pointer)
        parts = [f"{pointer}/allOf/{index}" for index in range(len(node.get("allOf", ())))]
        parts += [target(node["$ref"])] if "$ref" in node else []
        return any(self._prints(part, seen) for part in parts if part in self.nodes)

    def _only_refers(self, pointer: str) -> bool:
        node = self.nodes[pointer]
        return KEYWORD not in node and [key for key in node if constrains(key)] == ["$ref"]

    def _touched(self) -> set[str]:
        """The schemas that hold a printed leaf, or lead to one."""
        above: dict[str, list[str]] = {}
        for pointer, node in self.nodes.items():
            for _, step, _ in children(node):
                above.setdefault(pointer + step, []).append(pointer)
            if isinstance(node, Mapping) and "$ref" in node:
                above.setdefault(target(node["$ref"]), []).append(pointer)
        found: set[str] = set()
        pending = list(self.printed)
        while pending:
            pointer = pending.pop()
            if pointer not in found:
                found.add(pointer)
                pending += above.get(pointer, ())
        return found

    def _free(self, pointer: str) -> None:
        """Note what else judges the printed parts of a value that a schema judges, and what decides by them."""
        family = list(self._family(pointer))
        steps = {step for place, _ in family for step, inner in self._parts(place) if inner in self.printed}
        for place, decides in family:
            for step, inner in self._parts(place):
                if step not in steps:
                    continue
                if decides is not None:
                    self.undecided.add(decides)
                elif inner not in self.printed:
                    self.freed.add(inner)

    def _family(self, pointer: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
        """The schemas that judge the same value as one, and the keyword that only decides by them, if one does."""
        seen: set[tuple[str, tuple[str, str] | None]] = set()
        pending: list[tuple[str, tuple[str, str] | None]] = [(pointer, None)]
        while pending:
            item = pending.pop()
            place, decides = item
            node = self.nodes.get(place)
            if item in seen or not isinstance(node, Mapping):
                continue
            seen.add(item)
            yield item
            if "$ref" in node:
                pending.append((target(node["$ref"]), decides))
            for keyword, step, _ in children(node):
                if keyword in IN_PLACE:
                    inner = (place, keyword) if keyword in _DECIDING else None
                    pending.append((place + step, decides or inner))

    def _parts(self, pointer: str) -> Iterable[tuple[str, str]]:
        """(how the schema of a part is reached in the value, its pointer)."""
        for keyword, step, _ in children(self.nodes[pointer]):
            if keyword not in IN_PLACE and keyword not in ("$defs", "definitions", "contentSchema", "propertyNames"):
                yield ("/items" if keyword in ("items", "contains", "unevaluatedItems") else step), pointer + step


def as_asked(body: Mapping[str, Any], record: JsonValue) -> JsonValue:
    """A record in the form that is asked for, as far as that can be told: numbers at printed leaves become texts."""
    try:
        found = [part for part in parts(body, record, all_branches) if _is_printed_number(part)]
    except (PatternTimeout, RecursionError):  # whoever judges the record will say so
        return record
    return restored(record, {part.pointer: str(part.value) for part in found})


def _is_printed_number(part: Part) -> bool:
    number = isinstance(part.value, int | float) and not isinstance(part.value, bool)
    return number and any(KEYWORD in node and bool(chain_of(node[KEYWORD]).converts) for node in part.nodes)
