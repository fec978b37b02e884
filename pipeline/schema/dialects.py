"""The drafts of JSON Schema that are read: where each keeps its subschemas, which keywords it has, its own meta-schema.

Only `upgrade` and `localise` meet older drafts; every other module sees 2020-12 and walks it with `walk`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urljoin

from pipeline.schema.fingerprint import canonical
from pipeline.schema.walk import ANNOTATIONS, LISTS, MAPS, SINGLES, escape, unescape

MAX_SHOWN = 300
_OLD_MAPS = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
_OLD_SINGLES = frozenset({"items", "additionalItems", "additionalProperties", "not"})
_OLD_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_NUMBERS = frozenset({"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"})
_SIZES = frozenset(f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties"))
_PLAIN = _NUMBERS | _SIZES | {"$ref", "pattern", "uniqueItems", "required", "enum", "type", "format"}
_2019 = {"const", "minContains", "maxContains", "dependentRequired", "$anchor"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One draft. `asserts` are its keywords that hold no schema and are no annotation; `siblings` says whether
    keywords beside `$ref` count."""

    name: str
    uri: str
    identifier: str
    siblings: bool
    maps: frozenset[str]
    lists: frozenset[str]
    singles: frozenset[str]
    asserts: frozenset[str]

    def knows(self, keyword: str) -> bool:
        """Whether a keyword means something in this draft: it asserts, applies schemas, or points."""
        return keyword in self.maps | self.lists | self.singles | self.asserts

    @property
    def container(self) -> str:
        """The keyword under which schemas wait to be referred to."""
        return "$defs" if "$defs" in self.maps else "definitions"


def _old(name: str, singles: frozenset[str], asserts: frozenset[str]) -> Dialect:
    uri, identifier = f"http://json-schema.org/{name}/schema", "id" if name == "draft-04" else "$id"
    return Dialect(name, uri, identifier, False, _OLD_MAPS, _OLD_LISTS, singles, asserts)


_06 = _OLD_SINGLES | {"contains", "propertyNames"}
_NOW_MAPS, _NOW_SINGLES, _NOW_ASSERTS = frozenset(MAPS), frozenset(SINGLES), _PLAIN | _2019
DRAFT_2020_12 = Dialect(
    "2020-12",
    "https://json-schema.org/draft/2020-12/schema",
    "$id",
    True,
    _NOW_MAPS,
    frozenset(LISTS),
    _NOW_SINGLES,
    _NOW_ASSERTS | {"$dynamicRef", "$dynamicAnchor"},
)
DRAFT_2019_09 = Dialect(
    "2019-09",
    "https://json-schema.org/draft/2019-09/schema",
    "$id",
    True,
    _NOW_MAPS,
    _OLD_LISTS,
    _NOW_SINGLES | {"additionalItems"},
    _NOW_ASSERTS | {"$recursiveRef", "$recursiveAnchor"},
)
DRAFT_07 = _old("draft-07", _06 | {"if", "then", "else"}, _PLAIN | {"const"})
DRAFT_06 = _old("draft-06", _06, _PLAIN | {"const"})
DRAFT_04 = _old("draft-04", _OLD_SINGLES, _PLAIN)
DIALECTS = (DRAFT_2020_12, DRAFT_2019_09, DRAFT_07, DRAFT_06, DRAFT_04)
"""Newest first."""


def dialect_of(declared: Any) -> Dialect | None:
    """The draft that a `$schema` names: by http or https, with or without an empty fragment."""
    if not isinstance(declared, str):
        return None
    name = declared.removesuffix("#").partition("://")
    return next((one for one in DIALECTS if name[0] in ("http", "https") and one.uri.endswith(f"://{name[2]}")), None)


def is_schema(value: Any) -> bool:
    """Whether a value can be a schema at all."""
    return isinstance(value, Mapping | bool)


def places(dialect: Dialect, schema: Any) -> Iterator[tuple[str, str, Any]]:
    """The direct subschemas of a schema of a draft: (keyword, pointer from the schema, subschema)."""
    if not isinstance(schema, Mapping):
        return
    for keyword, value in schema.items():
        if _holds(dialect, schema, keyword):
            yield from (
                (keyword, f"/{escape(keyword)}{step}", child) for step, child in _inside(dialect, keyword, value)
            )


def _holds(dialect: Dialect, schema: Mapping[str, Any], keyword: str) -> bool:
    if "$ref" in schema and not dialect.siblings:
        return keyword == "definitions"
    if keyword == "additionalItems":  # says nothing unless `items` is an array
        return keyword in dialect.singles and isinstance(schema.get("items"), list)
    return keyword in dialect.maps or keyword in dialect.lists or keyword in dialect.singles


def _inside(dialect: Dialect, keyword: str, value: Any) -> Iterator[tuple[str, Any]]:
    if keyword in dialect.maps:
        members = ((escape(key), child) for key, child in value.items()) if isinstance(value, Mapping) else ()
        yield from ((f"/{key}", child) for key, child in members if is_schema(child))
    elif isinstance(value, list):
        if keyword in dialect.lists or keyword == "items":
            yield from ((f"/{index}", child) for index, child in enumerate(value) if is_schema(child))
    elif keyword in dialect.singles and is_schema(value):
        yield "", value


def rebuild(dialect: Dialect, schema: Any, change: Callable[[str, Any], Any], pointer: str = "") -> Any:
    """A copy in which every subschema went through `change(pointer, subschema)`, leaves first. Key order is kept."""
    if not isinstance(schema, Mapping):
        return change(pointer, schema)
    copy: dict[str, Any] = dict(schema)
    for keyword, step, child in places(dialect, schema):
        changed = rebuild(dialect, child, change, pointer + step)
        value = schema[keyword]
        if keyword in dialect.maps:
            copy[keyword] = dict(value) if copy[keyword] is value else copy[keyword]
            copy[keyword][unescape(step.rpartition("/")[2])] = changed
        elif isinstance(value, list):
            copy[keyword] = list(value) if copy[keyword] is value else copy[keyword]
            copy[keyword][int(step.rpartition("/")[2])] = changed
        else:
            copy[keyword] = changed
    return change(pointer, copy)


def malformed(dialect: Dialect, source: Any) -> str | None:
    """Where and why a value is not a schema of a draft, judged by the draft's own meta-schema; None if it is one."""
    error = next(_meta(dialect).iter_errors(source), None)
    if error is None:
        return None
    keyword = next((str(part) for part in reversed(error.path) if part in ("required", "type")), "")
    return f"is malformed at {error.json_path}: {error.message[:MAX_SHOWN]}{_hint(keyword, error.instance)}"


def _hint(keyword: str, found: Any) -> str:
    if keyword == "required" and isinstance(found, bool):
        return ". A boolean `required` is draft-03: list the required names in the `required` of the object around it."
    if keyword == "type":
        return ". Since draft-04 `type` names null, boolean, object, array, number, string, integer, or lists these."
    return ""


@cache
def _meta(dialect: Dialect) -> Any:
    """A validator of schemas.

    The stock one is not used: its `uniqueItems` takes quadratic time on a long array of mixed values, and the
    vocabularies of the newer meta-schemas, tied together by dynamic references, take it several times as long as one
    merged schema.
    """
    from jsonschema import validators

    stock = validators.validator_for({"$schema": f"{dialect.uri}#" if "draft-" in dialect.uri else dialect.uri})
    extended: Any = validators.extend(stock, {"uniqueItems": _unique_items})  # type: ignore[no-untyped-call]
    return extended(_merged(dialect.uri))


def _merged(uri: str) -> dict[str, Any]:
    """A meta-schema as one schema with references into itself: the parts have no keyword in common."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    whole = REGISTRY.contents(uri)
    parts = [whole, *(REGISTRY.contents(urljoin(uri, part["$ref"])) for part in whole.get("allOf", ()))]
    merged = {key: _local(value) for key, value in whole.items() if key not in ("$schema", "$id", "id", "allOf")}
    for keyword in ("properties", "$defs") if len(parts) > 1 else ():
        merged[keyword] = {name: _local(child) for part in parts for name, child in part.get(keyword, {}).items()}
    return merged


def _local(value: Any) -> Any:
    if isinstance(value, list):
        return [_local(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    local = {key: _local(item) for key, item in value.items() if key not in ("$dynamicRef", "$recursiveRef")}
    if "$dynamicRef" in value or value.get("$recursiveRef") == "#":
        local["$ref"] = "#"
    elif isinstance(value.get("$ref"), str):
        local["$ref"] = "#" + value["$ref"].partition("#")[2]
    return local


def _unique_items(_validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if unique and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError("the array holds a value twice")


def is_annotation(keyword: str) -> bool:
    """Whether a keyword never refuses a value nor points anywhere, in any draft."""
    return keyword.startswith("x-") or (keyword in ANNOTATIONS and keyword not in ("$id", "$schema"))
