"""Whether the branches of a oneOf exclude each other: only then is it the same as anyOf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pipeline.schema.fingerprint import canonical
from pipeline.schema.shape.source import Source, closure


@dataclass
class _Facts:
    """What every value of a branch has; None stands for no limit."""

    types: set[str] | None = None
    literals: set[str] | None = None
    required: set[str] = field(default_factory=set)
    closed_to: set[str] | None = None
    members: dict[str, set[str]] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)


def exclusive(source: Source, pointer: str) -> bool:
    """Whether no value can satisfy two branches of the oneOf at a pointer, as far as types and constants tell."""
    beside = _facts(source, pointer)
    branches = [_facts(source, f"{pointer}/oneOf/{index}") for index in range(len(source.nodes[pointer]["oneOf"]))]
    return all(_apart(one, other, beside) for one, other in combinations(branches, 2))


def _apart(one: _Facts, other: _Facts, beside: _Facts) -> bool:
    types = _both(_both(one.types, other.types), beside.types)
    if types is not None and not types:
        return True
    literals = _both(one.literals, other.literals)
    if literals is not None and not literals:
        return True
    if types != {"object"}:
        return False
    for first, second in ((one, other), (other, one)):
        needed = first.required | beside.required
        if needed & second.absent or (second.closed_to is not None and needed - second.closed_to):
            return True
    always = one.required | other.required | beside.required
    shared = always & one.members.keys() & other.members.keys()
    return any(not one.members[name] & other.members[name] for name in shared)


def _facts(source: Source, pointer: str) -> _Facts:
    facts = _Facts()
    for place in closure(source, (pointer,), branches=False):
        node = source.nodes[place]
        if node is False:
            facts.types = set()
        if not isinstance(node, Mapping):
            continue
        facts.types = _both(facts.types, _types(node))
        facts.literals = _both(facts.literals, _literals(node))
        facts.required |= set(node.get("required", ()))
        for name, child in node.get("properties", {}).items():
            _member(source, facts, name, child)
        if node.get("additionalProperties") is False and not node.get("patternProperties"):
            facts.closed_to = _both(facts.closed_to, set(node.get("properties", ())))
    return facts


def _member(source: Source, facts: _Facts, name: str, child: Any) -> None:
    child = source.follow(child)
    if child is False:
        facts.absent.add(name)
    members = _literals(child) if isinstance(child, Mapping) else None
    if members is not None:
        facts.members[name] = members & facts.members.get(name, members)


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    """The intersection, where None is everything."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _types(node: Mapping[str, Any]) -> set[str] | None:
    if "type" not in node:
        literals = [node["const"]] if "const" in node else node.get("enum")
        return None if literals is None else {_type_of(value) for value in literals}
    declared = node["type"]
    names = {declared} if isinstance(declared, str) else set(declared)
    return {"number" if name == "integer" else name for name in names}


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _literals(node: Mapping[str, Any]) -> set[str] | None:
    values = [node["const"]] if "const" in node else node.get("enum")
    return None if values is None else {canonical(_plain(value)) for value in values}


def _plain(value: Any) -> Any:
    """1.0 and 1 are one number in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
