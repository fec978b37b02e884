"""Normalised: a record with the normalisers of its schema done to its leaves, and what changed on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.alongside import Part, parts
from pipeline.schema.normalisers import KEYWORD, annotates, chain_of, types_of
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import descend, escape


@dataclass(frozen=True, slots=True)
class Normalised:
    """`raw` has the values that were changed, `missed` what could not be read (in words), both by pointer."""

    value: JsonValue
    raw: Mapping[str, JsonValue] = field(default_factory=dict)
    missed: Mapping[str, str] = field(default_factory=dict)


class Normaliser:
    """The normalisers of one loaded body. Building it is what takes time: keep it."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body
        self.idle = not annotates(body)
        """Whether there is nothing to do."""
        self._validator: Any = None if self.idle else validator_of(body)
        self._conditions = frozenset(
            id(node["if"]) for _, node in descend(body) if isinstance(node, Mapping) and "if" in node
        )

    def of(self, value: JsonValue) -> Normalised:
        """A record, normalised; itself where nothing is to be done. Every branch of a union has a say before that.

        Raises:
            PatternTimeout: a pattern takes too long on a key, or on a value that an `if` asks about.
        """
        if self.idle:
            return Normalised(value)
        made: dict[str, JsonValue] = {}
        raw: dict[str, JsonValue] = {}
        missed: dict[str, str] = {}
        for part in parts(self._body, value, self._counts):
            if not isinstance(part.value, str):
                continue
            for after, words in self._leaf(part):
                if words:
                    missed[part.pointer] = words
                if after != part.value:
                    made[part.pointer], raw[part.pointer] = after, part.value
        return Normalised(_with(value, made), raw, missed)

    def _counts(self, schema: Any, value: JsonValue) -> bool:
        return id(schema) not in self._conditions or self._accepts(schema, value)

    def _accepts(self, schema: Any, value: JsonValue) -> bool:
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _leaf(self, part: Part) -> Iterator[tuple[JsonValue, str]]:
        """What a text becomes, and why not what is declared; nothing if no normaliser is. Of several subschemas that
        have some, the innermost that accepts what it makes decides."""
        nodes = [node for node in reversed(part.nodes) if KEYWORD in node]
        types = frozenset(kind for node in part.nodes for kind in types_of(node))
        kept: tuple[JsonValue, str] | None = None
        for node in nodes:
            chain = chain_of(node[KEYWORD])
            after, read = chain.run(part.value, types)
            if read and (len(nodes) == 1 or self._accepts(node, after)):
                yield after, ""
                return
            kept = kept or (after, "" if read else f"not read as a {chain.converts}: copy it as it is printed")
        if kept is None:
            return
        whole, last = part.nodes[0], nodes[0]
        elsewhere = whole is not last and self._accepts(whole, part.value) and not self._accepts(last, part.value)
        yield (part.value, "") if elsewhere else kept


def _with(value: JsonValue, made: Mapping[str, JsonValue]) -> JsonValue:
    """A value with other parts at some pointers; what is not on the way to them is shared."""
    if not made:
        return value
    inside = {pointer[:at] for pointer in made for at, sign in enumerate(pointer) if sign == "/"}
    return _rebuilt(value, "", made, inside)


def _rebuilt(value: JsonValue, pointer: str, made: Mapping[str, JsonValue], inside: set[str]) -> JsonValue:
    if pointer in made:
        return made[pointer]
    if pointer not in inside:
        return value
    if isinstance(value, dict):
        return {key: _rebuilt(child, f"{pointer}/{escape(key)}", made, inside) for key, child in value.items()}
    if isinstance(value, list):
        return [_rebuilt(child, f"{pointer}/{index}", made, inside) for index, child in enumerate(value)]
    return value


def restored(value: JsonValue, raw: Mapping[str, JsonValue]) -> JsonValue:
    """A normalised record as it was before: `raw` has the values that were changed, by pointer."""
    return _with(value, raw)
