"""Older drafts rewritten to the same language in JSON Schema 2020-12.

Read are draft-04, draft-06, draft-07, 2019-09 and 2020-12, as `$schema` says. Without `$schema` a schema is 2020-12 if
it can be: what is valid 2020-12 never changes its meaning, so `dependencies`, `additionalItems` and `id`, which are no
keywords there, stay without effect. What cannot be 2020-12 (`items` as an array, a boolean `exclusiveMinimum`, an
`$id` that names an anchor, `$recursiveRef`) is read as the newest draft that it is well-formed in.

What differs between the drafts and is kept as the draft had it: keywords that it did not have yet say nothing, and
up to draft-07 keywords beside `$ref` are ignored. Not kept: in draft-04 the number 1.0 was no integer. Names of
formats mean the same in every draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import SchemaError
from pipeline.schema.dialects import (
    DIALECTS,
    DRAFT_04,
    DRAFT_2019_09,
    DRAFT_2020_12,
    Dialect,
    dialect_of,
    is_annotation,
    malformed,
    places,
    rebuild,
)
from pipeline.schema.references import localise
from pipeline.schema.walk import escape, target

_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_CONTAINS = ("contains", "minContains", "maxContains")
_ANNOTATIONS: dict[str, type] = {
    "$comment": str,
    "deprecated": bool,
    "readOnly": bool,
    "writeOnly": bool,
    "examples": list,
    "contentEncoding": str,
    "contentMediaType": str,
}
"""Annotations that draft-04 did not have, with what they hold: before, authors put anything there."""


def upgrade(source: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The same schema in 2020-12, and the name of the draft that it was written in.

    A 2020-12 schema comes back as it is. Of an older one, references are made plain on the way (see `localise`), since
    what they point to moves.

    Raises:
        SchemaError: `unknown_draft`, `malformed` by the draft's own meta-schema, or what `localise` raises.
    """
    dialect = _dialect(source)
    if dialect is DRAFT_2020_12:
        return dict(source), dialect.name
    plain = localise(source, dialect)
    if plain != source:
        _check(dialect, plain)  # places that hold no schema by themselves were not judged before
    return _Rewrite(dialect, plain).body(), dialect.name


def _dialect(source: Mapping[str, Any]) -> Dialect:
    if "$schema" in source:
        dialect = dialect_of(source["$schema"])
        if dialect is None:
            known = ", ".join(one.uri for one in DIALECTS)
            raise SchemaError(f"declares the draft {source['$schema']!r:.200}; known are {known}.", "unknown_draft")
        _check(dialect, source)
        return dialect
    if malformed(DRAFT_2020_12, source) is None and not any(
        isinstance(node, Mapping) and "$recursiveRef" in node for node in _nodes(DRAFT_2020_12, source)
    ):
        return DRAFT_2020_12
    older = next((one for one in DIALECTS[1:] if malformed(one, source) is None), None)
    if older is None:
        _check(DRAFT_2020_12, source)
    return older or DRAFT_2020_12


def _check(dialect: Dialect, source: Mapping[str, Any]) -> None:
    fault = malformed(dialect, source)
    if fault is not None:
        raise SchemaError(f"{fault} (read as {dialect.name})", "malformed")


def _nodes(dialect: Dialect, source: Any) -> list[Any]:
    nodes = [source]
    for node in nodes:  # grows
        nodes += [child for _, _, child in places(dialect, node)]
    return nodes


class _Rewrite:
    """One schema with plain references on its way from an older draft to 2020-12."""

    def __init__(self, dialect: Dialect, source: dict[str, Any]) -> None:
        self.dialect, self.source = dialect, source
        # In 2020-12 `contains` tells `unevaluatedItems` which items it has seen; in 2019-09 it did not.
        self._hides_contains = dialect is DRAFT_2019_09 and any(
            isinstance(node, Mapping) and "unevaluatedItems" in node for node in _nodes(dialect, source)
        )
        self._moved: dict[str, str] = {}
        self._move("", "", source)

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = rebuild(self.dialect, self.source, self._rewritten)
        if "$schema" in body:
            body["$schema"] = DRAFT_2020_12.uri
        return body

    def _move(self, old: str, new: str, schema: Any) -> None:
        """Note where a schema and all below it go."""
        pending = [(old, new, schema)]
        while pending:
            at, to, node = pending.pop()
            self._moved[at] = to
            for keyword, step, child in places(self.dialect, node):
                rest = step[len(escape(keyword)) + 1 :]
                pending.append((at + step, f"{to}/{self._home(node, keyword)}{rest}", child))

    def _home(self, node: Mapping[str, Any], keyword: str) -> str:
        """Where below a schema the subschemas of one of its keywords go."""
        if keyword == "items" and isinstance(node["items"], list):
            return "prefixItems"
        if keyword == "contains" and self._hides_contains:
            return f"allOf/{len(node.get('allOf', ()))}/not/not/contains"
        return {"additionalItems": "items", "dependencies": "dependentSchemas"}.get(keyword, keyword)

    def _rewritten(self, _pointer: str, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            schema["$ref"] = f"#{self._moved[target(schema['$ref'])]}"
            if not self.dialect.siblings:
                return {key: value for key, value in schema.items() if _stays_beside_ref(key, value)}
        kept: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword == self.dialect.identifier:
                kept["$id"] = value
            elif keyword == "items" and isinstance(value, list):
                kept |= {"prefixItems": value} if value else {}
            elif keyword == "additionalItems":
                kept |= {"items": value} if isinstance(schema.get("items"), list) else {}
            elif keyword == "dependencies" and self.dialect.knows(keyword):
                kept |= _dependencies(value)
            elif self.dialect.knows(keyword) or not _is_later(keyword, value):
                kept[keyword] = value
        if self.dialect is DRAFT_04:
            _limits(kept)
        return self._without_contains(kept) if self._hides_contains and "contains" in kept else kept

    def _without_contains(self, schema: dict[str, Any]) -> dict[str, Any]:
        """`contains` behind two `not`, which keep what it has seen to themselves."""
        hidden = {keyword: schema.pop(keyword) for keyword in _CONTAINS if keyword in schema}
        return {**schema, "allOf": [*schema.get("allOf", []), {"not": {"not": hidden}}]}


def _stays_beside_ref(keyword: str, value: Any) -> bool:
    return keyword in ("$ref", "definitions", "$schema") or (is_annotation(keyword) and not _is_later(keyword, value))


def _is_later(keyword: str, value: Any) -> bool:
    """Whether 2020-12 has a keyword, or another use of it, that an older draft without it must not be taken to mean."""
    if keyword in _ANNOTATIONS:
        return not isinstance(value, _ANNOTATIONS[keyword])
    return DRAFT_2020_12.knows(keyword) or keyword in ("$id", "$vocabulary", "$recursiveRef", "dependencies")


def _dependencies(value: Mapping[str, Any]) -> dict[str, Any]:
    names = {key: item for key, item in value.items() if isinstance(item, list)}
    schemas = {key: item for key, item in value.items() if not isinstance(item, list)}
    return {
        **({"dependentRequired": names} if names else {}),
        **({"dependentSchemas": schemas} if schemas else {}),
    }


def _limits(schema: dict[str, Any]) -> None:
    """Draft-04's flags that make a bound exclusive become bounds of their own."""
    for exclusive, inclusive in _LIMITS:
        if schema.pop(exclusive, False) is True and inclusive in schema:
            schema[exclusive] = schema.pop(inclusive)
