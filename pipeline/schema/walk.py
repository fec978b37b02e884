"""Where schemas sit inside a schema: the one traversal that every schema module uses.

A property may be called `title` or `enum`; only a walk that knows which keywords hold schemas can tell it from the
keyword. Keywords are those of JSON Schema 2020-12 (core, applicator, unevaluated and content vocabularies).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES = (
    "items",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
)
IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Applicators whose schemas judge the same instance as their parent."""

ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "$vocabulary",
        "title",
        "description",
        "default",
        "deprecated",
        "readOnly",
        "writeOnly",
        "examples",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    }
)
"""Keywords that never refuse a value. Extension keywords (`x-…`) are the others: see `is_assertion`."""


def is_assertion(keyword: str) -> bool:
    """Whether a keyword can have a say in which values are accepted."""
    return keyword not in ANNOTATIONS and not keyword.startswith("x-")


def constrains(keyword: str) -> bool:
    """Whether a keyword has a say where it stands: `$defs` only holds schemas for others to refer to."""
    return is_assertion(keyword) and keyword not in ("$defs", "definitions")


def escape(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901): `~` first, then `/`."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """The inverse of `escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def children(schema: Any) -> Iterator[tuple[str, str, Any]]:
    """The direct subschemas of a schema: (keyword, pointer from the schema, subschema)."""
    if not isinstance(schema, Mapping):
        return
    for keyword, value in schema.items():
        if keyword in MAPS and isinstance(value, Mapping):
            yield from ((keyword, f"/{escape(keyword)}/{escape(key)}", child) for key, child in value.items())
        elif keyword in LISTS and isinstance(value, list):
            yield from ((keyword, f"/{keyword}/{index}", child) for index, child in enumerate(value))
        elif keyword in SINGLES:
            yield keyword, f"/{keyword}", value


def descend(schema: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every subschema with its pointer, the schema itself first."""
    yield pointer, schema
    for _, step, child in children(schema):
        yield from descend(child, pointer + step)


def rebuild(schema: Any, change: Callable[[str, Any], Any], pointer: str = "") -> Any:
    """A copy in which every subschema went through `change(pointer, subschema)`, leaves first. Key order is kept."""
    if not isinstance(schema, Mapping):
        return change(pointer, schema)
    copy: dict[str, Any] = {}
    for keyword, value in schema.items():
        here = f"{pointer}/{escape(keyword)}"
        if keyword in MAPS and isinstance(value, Mapping):
            copy[keyword] = {key: rebuild(child, change, f"{here}/{escape(key)}") for key, child in value.items()}
        elif keyword in LISTS and isinstance(value, list):
            copy[keyword] = [rebuild(child, change, f"{here}/{index}") for index, child in enumerate(value)]
        elif keyword in SINGLES:
            copy[keyword] = rebuild(value, change, here)
        else:
            copy[keyword] = value
    return change(pointer, copy)


def target(reference: str) -> str:
    """The JSON pointer that a local reference (`#` or `#/pointer`, percent-encoded) names.

    Raises:
        KeyError: the reference is not a local pointer.
    """
    pointer = unquote(reference[1:])
    if not reference.startswith("#") or not (pointer == "" or pointer.startswith("/")):
        raise KeyError(reference)
    return "".join(f"/{escape(unescape(token))}" for token in pointer.split("/")[1:])


def resolve(root: Any, reference: str) -> Any:
    """The value that a local reference names.

    Raises:
        KeyError: nothing is there, or the reference is not a local pointer.
    """
    node = root
    for token in target(reference).split("/")[1:]:
        key = unescape(token)
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and re.fullmatch(r"0|[1-9][0-9]*", key) and int(key) < len(node):
            node = node[int(key)]
        else:
            raise KeyError(reference)
    return node
