"""The source as the reader sees it: schemas by pointer, conjunctions of them, and what they make of one value together.

A conjunction is a tuple of pointers: a value has to satisfy the schemas at all of them. Two keywords can put
several schemas on one value (allOf, a $ref with siblings, the same key in two places), so conjunctions rather than
schemas are what shapes are read from. They are finitely many and may refer to themselves, as references do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.schema.shape.shapes import Left
from pipeline.schema.validator import PatternTimeout, compile_pattern, validator_of
from pipeline.schema.walk import children, descend, escape, resolve, target

Conjunction = tuple[str, ...]

EXCLUDED = "$excluded"
"""A keyword of ours, in schemas that the reader makes: a list of values that are not meant."""

_ASIDE = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Choice:
    """One of `options` has to be added to the conjunction. `exact`: choosing freely adds nothing to the language."""

    pointer: str
    keyword: str
    options: tuple[Conjunction, ...]
    exact: bool = True


@dataclass
class Source:
    """A schema body with its subschemas by pointer. Schemas that the reader makes have pointers that begin with `#`."""

    body: Mapping[str, Any]
    nodes: dict[str, Any] = field(init=False)
    left: dict[tuple[str, str], Left] = field(default_factory=dict)
    _origins: dict[str, tuple[str, str]] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)
    _judges: dict[tuple[str, frozenset[str]], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = dict(descend(self.body))
        self.validator = validator_of(self.body)

    def make(self, schema: Any, origin: tuple[str, str]) -> str:
        """The pointer of a schema that stands for a part of `origin`; equal ones are made once."""
        key = f"{origin} {schema!r}"
        if key not in self._made:
            pointer = self._made[key] = f"#{len(self._origins)}"
            self._origins[pointer] = self.origin(*origin)
            self.nodes.update(descend(schema, pointer))
        return self._made[key]

    def origin(self, pointer: str, keyword: str) -> tuple[str, str]:
        """Where a site stands in the body: schemas that the reader made stand for theirs."""
        return self._origins[pointer.split("/")[0]] if pointer.startswith("#") else (pointer, keyword)

    def leave(self, pointer: str, keyword: str, why: str) -> None:
        """Note that shapes do not hold a site, nor anything below it."""
        site = self.origin(pointer, keyword)
        self.left.setdefault(site, Left(*site, why))

    def accepts(self, pointer: str, value: Any, without: frozenset[str] = frozenset()) -> bool:
        """Whether the schema at a pointer accepts a value, some of its keywords aside; yes, if that takes too long."""
        if (pointer, without) not in self._judges:
            node = self.nodes[pointer]
            kept = {key: part for key, part in node.items() if key not in without} if without else node
            self._judges[pointer, without] = self.validator.evolve(schema=kept)
        try:
            return bool(self._judges[pointer, without].is_valid(value))
        except PatternTimeout:
            self.leave(pointer, "*", "a pattern takes too long to be judged")
            return True

    def referred(self, node: Mapping[str, Any]) -> str:
        """The pointer that a node's $ref leads to."""
        return target(node["$ref"])

    def follow(self, node: Any) -> Any:
        """A node, or what it refers to if it does nothing else."""
        for _ in range(100):
            if not isinstance(node, Mapping) or set(node) & (_ASIDE | {"enum", "const", "type"}) != {"$ref"}:
                break
            node = resolve(self.body, node["$ref"])
        return node


def closure(source: Source, conjunction: Sequence[str], *, branches: bool) -> Iterator[str]:
    """The schemas that judge the same value through `$ref` and `allOf`, each once, in the order of the text.

    A schema comes where its `properties` stand among its other keywords. With `branches`, also those that may judge it
    (anyOf, oneOf, if, then, else, dependentSchemas).
    """
    seen: set[str] = set()
    lists = ("allOf", "anyOf", "oneOf") if branches else ("allOf",)
    stack: list[tuple[str, bool]] = [(pointer, False) for pointer in reversed(conjunction)]
    while stack:
        pointer, itself = stack.pop()
        if itself:
            yield pointer
            continue
        if pointer in seen:
            continue
        seen.add(pointer)
        node = source.nodes[pointer]
        if not isinstance(node, Mapping):
            yield pointer
            continue
        steps: list[tuple[str, bool]] = []
        for keyword, value in node.items():
            if keyword == "properties":
                steps.append((pointer, True))
            elif keyword == "$ref":
                steps.append((source.referred(node), False))
            elif keyword in lists:
                steps += [(f"{pointer}/{keyword}/{index}", False) for index in range(len(value))]
            elif branches and keyword in ("if", "then", "else"):
                steps.append((f"{pointer}/{keyword}", False))
            elif branches and keyword == "dependentSchemas":
                steps += [(f"{pointer}/{keyword}/{escape(name)}", False) for name in value]
        if "properties" not in node:
            steps.append((pointer, True))
        stack += reversed(steps)


def key_order(source: Source, conjunction: Sequence[str]) -> dict[str, int]:
    """The rank of every declared key of a conjunction's objects: the order of the text, whatever branch is taken."""
    order: dict[str, int] = {}
    for pointer in closure(source, conjunction, branches=True):
        node = source.nodes[pointer]
        for name in node.get("properties", ()) if isinstance(node, Mapping) else ():
            order.setdefault(name, len(order))
    return order


def conditions(source: Source) -> Iterator[tuple[frozenset[str], tuple[str, str]]]:
    """For every `if` with an `else`: the pointers of all schemas that have a say in it, and the site of the `else`."""
    for pointer, node in list(source.nodes.items()):
        if not isinstance(node, Mapping) or not {"if", "else"} <= node.keys():
            continue
        reach: set[str] = set()
        pending = [f"{pointer}/if"]
        while pending:
            place = pending.pop()
            if place in reach:
                continue
            reach.add(place)
            here = source.nodes[place]
            pending += (place + step for _, step, _ in children(here))
            if isinstance(here, Mapping) and "$ref" in here:
                pending.append(source.referred(here))
        yield frozenset(reach), source.origin(pointer, "else")


def judges_of_key(source: Source, places: Sequence[str], key: str) -> Iterator[str]:
    """The schemas that judge the value of a key, from the places that judge its object. Patterns match as the
    validator matches them; undeclared keys are the business of `additionalProperties`."""
    for pointer in places:
        node = source.nodes[pointer]
        if not isinstance(node, Mapping):
            continue
        found = [f"{pointer}/properties/{escape(key)}"] if key in node.get("properties", ()) else []
        for pattern in node.get("patternProperties", ()):
            if compile_pattern(pattern).search(key):
                found.append(f"{pointer}/patternProperties/{escape(pattern)}")
        if not found and "additionalProperties" in node:
            found.append(f"{pointer}/additionalProperties")
        yield from found


def judges_of_item(source: Source, places: Sequence[str], index: int) -> Iterator[str]:
    """The schemas that judge the item at an index, from the places that judge its array."""
    for pointer in places:
        node = source.nodes[pointer]
        if not isinstance(node, Mapping):
            continue
        if index < len(node.get("prefixItems", ())):
            yield f"{pointer}/prefixItems/{index}"
        elif "items" in node:
            yield f"{pointer}/items"
