"""Emit: shapes as the schema that one back end decodes under, with everything it does not hold.

Only constructs that the back end reads exactly are written (see dialect.py), so what comes out may look longer than the
source and means no less. Shapes used once stand where they are used, the others below `$defs`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pipeline.schema.shape import dialect as dialects
from pipeline.schema.shape.dialect import Dialect
from pipeline.schema.shape.shapes import (
    ANYTHING,
    NEVER,
    Anything,
    Array,
    Boolean,
    Left,
    Literals,
    Null,
    Number,
    Object,
    Ref,
    Shape,
    Shapes,
    Site,
    Text,
    Union,
    parts,
)

MAX_INLINE = 20
"""Shapes nested deeper in one definition get their own: vLLM counts the nesting of a schema."""


def emit(shapes: Shapes, backend: str) -> tuple[dict[str, Any], tuple[Left, ...]]:
    """The schema for a back end, and all sites that it leaves to the validator."""
    writer = _Writer(shapes, dialects.DIALECTS[backend])
    schema = writer.root()
    left = {pointer for pointer, _ in writer.left}
    for reach, site in shapes.conditions:
        if not left.isdisjoint(reach):
            writer.drop(site, "its `if` is not wholly held")
    return schema, tuple(writer.left.values())


class _Writer:
    def __init__(self, shapes: Shapes, dialect: Dialect) -> None:
        self.dialect = dialect
        self.left = {(left.pointer, left.keyword): left for left in shapes.left}
        self._shapes = shapes
        self._uses = Counter(
            part.name
            for shape in (shapes.root, *shapes.named.values())
            for part in _all(shape)
            if isinstance(part, Ref)
        )
        self._definitions: dict[str, dict[str, Any]] = {}
        self._pending: list[str] = []

    def root(self) -> dict[str, Any]:
        schema = self._write(self._shapes.root, 0)
        while self._pending:
            name = self._pending.pop()
            if name == "any":
                self._definitions[name] = self._write_anything()
            else:
                self._definitions[name] = self._write(self._shapes.named[name], 0)
        if self._definitions:
            schema = {**schema, "$defs": self._definitions}
        return schema

    def drop(self, site: Site, why: str) -> None:
        self.left.setdefault(site, Left(*site, why))

    def _refer(self, name: str) -> dict[str, Any]:
        if name not in self._definitions:
            self._definitions[name] = {}
            self._pending.append(name)
        return {"$ref": f"#/$defs/{name}"}

    def _write(self, shape: Shape, depth: int) -> dict[str, Any]:
        if isinstance(shape, Ref):
            inner = self._shapes.named[shape.name]
            alone = self._uses[shape.name] == 1 and depth < MAX_INLINE
            return self._write(inner, depth) if alone or _is_small(inner) else self._refer(shape.name)
        if isinstance(shape, Anything):
            # xgrammar's own idea of "anything" demands blanks after commas, which compact JSON does not have.
            return self._refer("any") if self.dialect is dialects.XGRAMMAR else {}
        if isinstance(shape, Union):
            return self._union(shape, depth)
        if isinstance(shape, Array):
            return self._array(shape, depth)
        if isinstance(shape, Object):
            return self._object(shape, depth)
        return _joined(self._scalar(shape))

    def _scalar(self, shape: Shape) -> list[dict[str, Any]]:
        if isinstance(shape, Literals):
            widest: dict[str, Shape] = {"object": Object((), ANYTHING), "array": Array((), ANYTHING)}
            written = dialects.literals(self.dialect, shape, self.drop)
            # Where constants were widened: xgrammar reads a bare type as it reads no type.
            return [self._write(widest[one["type"]], 0) if one.get("type") in widest else one for one in written]
        if isinstance(shape, Number):
            return [dialects.number(self.dialect, shape, self.drop)]
        if isinstance(shape, Text):
            return [dialects.text(self.dialect, shape, self.drop)]
        assert isinstance(shape, Boolean | Null), shape
        return [{"type": "boolean" if isinstance(shape, Boolean) else "null"}]

    def _write_anything(self) -> dict[str, Any]:
        itself = {"$ref": "#/$defs/any"}
        scalars = [{"type": name} for name in ("string", "number", "boolean", "null")]
        nested = [{"type": "object", "additionalProperties": itself}, {"type": "array", "items": itself}]
        return {"anyOf": [*scalars, *nested]}

    def _union(self, shape: Union, depth: int) -> dict[str, Any]:
        schemas: list[dict[str, Any]] = []
        for option in shape.options:
            schema = self._write(option, depth + 2)
            schemas += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        return _joined(schemas)

    def _array(self, shape: Array, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array"}
        if shape.first:
            schema["prefixItems"] = [self._write(part, depth + 2) for part in shape.first]
        schema["items"] = False if shape.rest == NEVER else self._write(shape.rest, depth + 1)
        for keyword, count in (("minItems", shape.minimum), ("maxItems", shape.maximum)):
            if not count and (keyword == "minItems" or count is None):
                continue
            if count is not None and count <= self.dialect.largest_count:
                schema[keyword] = count
                continue
            for site in shape.sites:
                if dialects.speaks(site, (keyword,)):
                    self.drop(site, f"{self.dialect.name} is not asked to count beyond {self.dialect.largest_count}")
        return schema

    def _object(self, shape: Object, depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        for item in shape.properties:
            if item.shape != NEVER:
                schema["properties"][item.name] = self._write(item.shape, depth + 2)
                if (
                    shape.rest not in (NEVER, item.shape)
                    and item.shape != ANYTHING
                    and not self.dialect.tells_name_apart(item.name)
                ):
                    for site in item.judges:
                        self.drop(site, f"{self.dialect.name} also takes this key for an undeclared one")
            elif self.dialect.absent_keys:
                schema["properties"][item.name] = False
            else:
                for site in item.judges:
                    self.drop(site, f"{self.dialect.name} cannot forbid one undeclared key")
        required = [item.name for item in shape.properties if item.required]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False if shape.rest == NEVER else self._write(shape.rest, depth + 1)
        self._names(shape, schema)
        self._count_keys(shape, schema, len(required))
        if not schema["properties"]:
            del schema["properties"]
        return schema

    def _names(self, shape: Object, schema: dict[str, Any]) -> None:
        if shape.names is None or shape.rest == NEVER:
            return
        if self.dialect.names and not schema["properties"]:
            written = dialects.text(self.dialect, Text(patterns=((("", "pattern"), shape.names),)), lambda *_: None)
            if "pattern" in written:
                schema["propertyNames"] = {"pattern": written["pattern"]}
                return
        for site in shape.sites:
            if dialects.speaks(site, ("propertyNames", "patternProperties")):
                self.drop(site, f"{self.dialect.name} does not hold the names of undeclared keys here")
                if site[1] == "patternProperties":
                    self.drop((site[0], "additionalProperties"), "beside patternProperties")

    def _count_keys(self, shape: Object, schema: dict[str, Any], required: int) -> None:
        declared = len(schema["properties"])
        most = (
            None if shape.rest == NEVER and shape.maximum is not None and shape.maximum >= declared else shape.maximum
        )
        least = shape.minimum if shape.minimum > required else 0
        held = self.dialect.counts_optional_keys or required == declared
        for keyword, count in (("minProperties", least or None), ("maxProperties", most)):
            if count is not None and held and count <= self.dialect.largest_count:
                schema[keyword] = count
            elif count is not None:
                for site in shape.sites:
                    if dialects.speaks(site, (keyword,)):
                        self.drop(site, f"{self.dialect.name} does not count optional keys")


def _joined(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Any of these schemas: constants in one enum, bare types in one list, the rest as branches."""
    constants = [value for schema in schemas if schema.keys() == {"enum"} for value in schema["enum"]]
    others = [schema for schema in schemas if schema.keys() != {"enum"}]
    branches = [*others, *([{"enum": constants}] if constants else [])]
    unique = [schema for index, schema in enumerate(branches) if schema not in branches[:index]]
    assert unique, "a shape without values was not pruned"
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _is_small(shape: Shape) -> bool:
    if isinstance(shape, Literals):
        return len(shape.texts) <= 2
    if isinstance(shape, Number):
        return shape == Number(shape.integer, sites=shape.sites)
    plain = isinstance(shape, Text) and shape == Text(sites=shape.sites)
    return plain or isinstance(shape, Boolean | Null | Anything)


def _all(shape: Shape) -> list[Shape]:
    found, pending = [], [shape]
    while pending:
        part = pending.pop()
        found.append(part)
        pending += parts(part)
    return found
