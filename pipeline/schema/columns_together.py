"""What several subschemas say of one value together: `allOf` and `$ref` beside other keywords, laid side by side.

Columns need to hold every valid value, no more: keywords that only refuse values may be overlooked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.walk import resolve

_EVALUATES = frozenset(
    {"patternProperties", "additionalProperties", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"}
)
"""Keywords beside `properties` that decide which keys `unevaluatedProperties` no longer sees."""

_MEMBERS_PER_COLUMN = 500
"""So many members of a list or map count as one column."""

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(slots=True)
class Budget:
    """How many columns a whole schema may still reach through references. Long lists count as columns, too: a huge
    `enum` or `allOf` behind many references costs as much time."""

    left: int


@dataclass(slots=True)
class Together:
    """Subschemas that judge one value, without their `$ref` and `allOf`, in schema order.

    `seen` are the references that led here; following one of them again is recursion. `blocked` says why
    there is no column type, if so.
    """

    root: Mapping[str, Any]
    seen: frozenset[str]
    budget: Budget
    parts: list[Mapping[str, Any]] = field(default_factory=list)
    closed: list[frozenset[str]] = field(default_factory=list)
    blocked: str = ""
    followed: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def add(self, schema: Any) -> frozenset[str] | None:
        """Lay out one more subschema. Returns the keys that it evaluates, or None if nobody can tell."""
        if not isinstance(schema, Mapping):
            if schema is False:
                self.blocked = self.blocked or "the schema `false` allows no value"
            return frozenset()
        own = {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "allOf")}
        self.budget.left -= (
            sum(len(value) for value in own.values() if isinstance(value, list | dict)) // _MEMBERS_PER_COLUMN
        )
        names: set[str] = set(own.get("properties", ()))
        known, placed = not _EVALUATES & own.keys(), False
        for keyword, value in schema.items():
            inner: list[frozenset[str] | None] = []
            if keyword == "$ref":
                inner = [self._follow(value)]
            elif keyword == "allOf":
                self.budget.left -= len(value)
                inner = [self.add(branch) for branch in value]
            elif keyword == "properties":
                placed = True
                self.parts.append(own)
            known &= None not in inner
            names.update(*(some for some in inner if some))
        if not placed and own:
            self.parts.append(own)
        if own.get("additionalProperties") is False and not own.get("patternProperties"):
            self.closed.append(frozenset(own.get("properties", ())))
        if own.get("unevaluatedProperties") is False and known:
            self.closed.append(frozenset(names))
        return frozenset(names) if known else None

    def _follow(self, reference: str) -> frozenset[str] | None:
        if reference in self.followed:
            return self.followed[reference]
        self.budget.left -= 1
        if reference in self.seen or self.budget.left <= 0:
            recursive = reference in self.seen
            self.blocked = "the schema is recursive" if recursive else "references lead to too many columns"
            return None
        self.followed[reference] = None
        self.followed[reference] = self.add(resolve(self.root, reference))
        return self.followed[reference]

    def trail(self) -> frozenset[str]:
        """The references that lead to what is inside this value."""
        return self.seen | self.followed.keys()

    def values(self, keyword: str) -> list[Any]:
        """What the parts that have a keyword give for it."""
        return [part[keyword] for part in self.parts if keyword in part]

    def members(self) -> list[JsonValue] | None:
        """The only values that `enum` or `const` of some part leaves, or None if none of the parts has them."""
        for part in self.parts:
            if "enum" in part or "const" in part:
                return list(part["enum"]) if "enum" in part else [part["const"]]
        return None

    def types(self) -> set[str] | None:
        """The JSON types that are left, `integer` and `number` not both; None if no part says."""
        said = [spread(type_names(value)) for value in self.values("type")]
        said += [spread(map(type_of, values)) for values in self.values("enum")]
        said += [spread([type_of(value)]) for value in self.values("const")]
        if not said:
            return None
        left = set.intersection(*said)
        return left - {"integer"} if "number" in left else left


def spread(types: Iterable[str]) -> set[str]:
    """The types as a set in which whatever allows numbers allows integers too."""
    names = set(types)
    return names | {"integer"} if "number" in names else names


def type_names(declared: Any) -> list[str]:
    """The value of `type` as a list."""
    return [declared] if isinstance(declared, str) else list(declared)


def type_of(value: JsonValue) -> str:
    """The JSON type of a value, the narrowest: 1.0 is an integer."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return _NAMES.get(type(value), "null")
