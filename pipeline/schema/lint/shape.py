"""Checks of how values are put together: nesting, objects, conditions, unions, recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.schema.lint.keywords import TYPED
from pipeline.schema.lint.policy import MAX_OPTIONAL, MAX_PROPERTIES
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names, quoted
from pipeline.schema.lint.view import ALL, Scope, Site
from pipeline.schema.walk import constrains

_CONDITIONS = ("if", "not", "dependentSchemas", "dependentRequired")
_TOLD_OTHERWISE = ("not", "if", "format", "anyOf", "oneOf")
_HOLDS_VALUE = ("properties", "patternProperties", "items", "prefixItems")


def check_shape(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    yield from _root(scope)
    for site in scope.nodes:
        yield from _conditions(site)
        yield from _open_types(scope, site)
        yield from _objects(scope, site)
        yield from _declarations(scope, site)
    yield from (_any_value(site.pointer) for site in scope.sites if site.node is True and site.keyword in _HOLDS_VALUE)
    yield from _impossible(scope)


def _root(scope: Scope) -> Iterator[Finding]:
    types = scope.types(scope.root)
    if types not in (ALL, {"object"}, frozenset()):
        yield found("root_not_object", "", f"The root may be {names(sorted(types))}; a record is an object.")
    if scope.unused:
        yield found("unused_definition", scope.unused[0], f"Nothing refers to {names(scope.unused)}.")


def _conditions(site: Site) -> Iterator[Finding]:
    for keyword in _CONDITIONS:
        if keyword in site.node:
            why = f"`{keyword}` is dropped by xgrammar and refused by llguidance: only the validator sees it."
            yield found("conditional", site.pointer, why)


def _any_value(pointer: str) -> Finding:
    return found("any_value", pointer, "Any JSON value is legal here; the column holds JSON text.")


def _open_types(scope: Scope, site: Site) -> Iterator[Finding]:
    """What may be of any type, or of several."""
    types, node = scope.types(site.node), site.node
    if (site.keyword in _HOLDS_VALUE or not site.pointer) and types == ALL:
        pointer = scope.described(site)
        rules = sorted({key for part in scope.parts(node) for key in part if constrains(key)} & TYPED)
        if rules:
            why = f"Without `type`, {names(rules)} let every value of another type pass."
            yield found("missing_type", pointer, why)
        elif node == {} and site.parent is not None and site.name and _added(scope, site.parent, site.name):
            return  # undeclared_required says it
        elif not any(key in part for part in scope.parts(node) for key in _TOLD_OTHERWISE):
            yield _any_value(pointer)
        return
    kinds = types - {"null"} - ({"integer"} if "number" in types else set())
    alone = scope.described(site) == site.pointer  # a bare reference repeats what is said where it leads
    if site.home is site and alone and len(kinds) > 1 and types != ALL and site.pointer:
        why = f"The value may be {names(sorted(kinds))}: it has no column type and is kept as JSON text."
        yield found("mixed_types", site.pointer, why)


def _objects(scope: Scope, site: Site) -> Iterator[Finding]:
    node = site.node
    properties = node.get("properties", {})
    if not site.aside and properties:
        required = scope.required(node)
        optional = [name for name in properties if name not in required]
        if len(optional) > MAX_OPTIONAL:
            why = f"{len(optional)} of {len(properties)} properties are optional: {names(optional)}."
            yield found("many_optional", site.pointer, why)
        if len(properties) > MAX_PROPERTIES:
            why = f"{len(properties)} properties in one object; from about {MAX_PROPERTIES} on models skip some."
            yield found("wide_object", site.pointer, why)
    if site.aside or "object" not in scope.types(node) or scope.types(node) == ALL:
        return
    yield from _openness(scope, site)


def _openness(scope: Scope, site: Site) -> Iterator[Finding]:
    node = site.node
    extra = node.get("additionalProperties", node.get("unevaluatedProperties"))
    keyed = isinstance(extra, Mapping) and any(map(constrains, extra))
    united = any(key in part for part in scope.parts(node) for key in ("anyOf", "oneOf", "if", "then", "enum", "const"))
    if "patternProperties" in node or keyed:
        yield found("map_object", site.pointer, "The keys of this object are data that the document decides.")
    elif not scope.properties(node) and not united and extra is not False:
        if "type" in node and site.home is site:
            yield found(
                "free_form_object", site.pointer, "No property is declared: the model makes up keys and values."
            )
    elif "additionalProperties" in node and extra is not False:
        yield found(
            "open_object", site.pointer, "additionalProperties lets undeclared keys pass; no column holds them."
        )


def _declarations(scope: Scope, site: Site) -> Iterator[Finding]:
    node = site.node
    if "properties" in node and not site.in_place and not site.aside:
        known = set(scope.properties(node)) | _branch_names(scope, node)
        patterns = [pattern for part in scope.parts(node) for pattern in part.get("patternProperties", {})]
        known -= {name for name in node["properties"] if _added(scope, site, name)}
        missing = [name for name in node.get("required", []) if name not in known and not _keyed(name, patterns)]
        if missing:
            refused = node.get("additionalProperties") is False and missing[0] not in node["properties"]
            effect = "no record can be valid" if refused else "the model may write anything there"
            yield found("undeclared_required", site.pointer, f"`required` names {names(missing)}: {effect}.")
    if node.get("additionalProperties") is False and not site.aside:
        own = node.get("properties", {})
        elsewhere = {**dict.fromkeys(scope.properties(node)), **dict.fromkeys(sorted(_branch_names(scope, node)))}
        lost = [name for name in elsewhere if name not in own and not _keyed(name, node.get("patternProperties", {}))]
        if lost:
            why = f"additionalProperties: false sees only the properties beside it and so refuses {names(lost)}."
            yield found("closed_against_parts", site.pointer, why)


def _added(scope: Scope, site: Site, name: str) -> bool:
    """Whether closing listed a required name that the author did not describe: it becomes `{}`."""
    listed = site.pointer in scope.closed and site.node["properties"][name] == {}
    return listed and name in site.node.get("required", ())


def _branch_names(scope: Scope, node: Any) -> set[str]:
    branches = [branch for key in ("anyOf", "oneOf") for branch in node.get(key, [])]
    return {name for branch in branches for name, held in scope.properties(branch).items() if held is not False}


def _keyed(name: str, patterns: Any) -> bool:
    """Whether a key of `patternProperties` may cover a name; only plain ones are tried, the others might take long."""
    return any(len(pattern) > 40 or re.search(r"[*+{]", pattern) or re.search(pattern, name) for pattern in patterns)


def _impossible(scope: Scope) -> Iterator[Finding]:
    for site in scope.nodes:
        told = "type" in site.node and (
            "enum" in site.node or "const" in site.node
        )  # enum_type_mismatch says it better
        if not site.in_place and not scope.types(site.node) and not told:
            yield found("impossible", site.pointer, "`type`, enum and the parts of this schema have no type in common.")
        for name in site.node.get("required", []) if "properties" in site.node else []:
            if site.node["properties"].get(name) is False:
                yield found("impossible", site.pointer, f"{quoted(name)} is required and its schema is false.")
