"""Checks of keywords: unknown, misspelt, of other drafts, without effect where they stand, formats and patterns."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from pipeline.schema.lint.patterns import beyond_grammars, foreign, read_pattern
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names, quoted
from pipeline.schema.lint.view import Scope, Site
from pipeline.schema.lint.words import folded
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import ANNOTATIONS, LISTS, MAPS, SINGLES

APPLIES = {
    "string": frozenset({"minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType", "contentSchema"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset(
        {"items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems"}
        | {"unevaluatedItems"}
    ),
    "object": frozenset(
        {"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"}
        | {"maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"}
    ),
}
"""Which type each keyword looks at (2020-12, validation and applicator vocabularies)."""
TYPED: frozenset[str] = frozenset().union(*APPLIES.values())

_CORE = {"$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$defs", "definitions", "type", "enum", "const", "format"}
KNOWN = frozenset().union(_CORE, ANNOTATIONS, MAPS, LISTS, SINGLES, *APPLIES.values())

ELSEWHERE = {
    "dependencies": "Use dependentRequired or dependentSchemas.",
    "additionalItems": "Use items beside prefixItems.",
    "id": "Use $id, at the root only.",
    "$recursiveRef": "Use $ref.",
    "$recursiveAnchor": "Remove it and use $ref.",
    "divisibleBy": "Use multipleOf.",
    "disallow": "Use not.",
    "extends": "Use allOf.",
    "nullable": 'Add "null" to the type.',
    "discriminator": "Give each branch a first, required property with a const.",
    "example": "Use examples, a list.",
    "propertyOrder": "Write the properties in the order that is meant.",
    "propertyOrdering": "Write the properties in the order that is meant.",
    "optional": "Leave the name out of the `required` list.",
    "values": "Use enum.",
    "choices": "Use enum.",
    "options": "Use enum.",
    "regex": "Use pattern.",
    "range": "Use minimum and maximum.",
    "min": "Use minimum, minLength or minItems.",
    "max": "Use maximum, maxLength or maxItems.",
    "length": "Use minLength and maxLength.",
    "unique": "Use uniqueItems.",
}
"""Keywords of other drafts, of OpenAPI, of model providers, of other validators; and the 2020-12 way."""

_PARTNERS = {
    "then": "if",
    "else": "if",
    "minContains": "contains",
    "maxContains": "contains",
    "contentSchema": "contentMediaType",
}
_SOUNDS_CLOSE = 0.85


def check_keywords(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    checked = checked_formats()
    for site in scope.nodes:
        yield from _unknown(site)
        yield from _applies(scope, site)
        yield from _formats(site, checked)
        if isinstance(site.node.get("pattern"), str):
            yield from _pattern(site.pointer, site.node["pattern"])
        for pattern in site.node.get("patternProperties", {}):
            yield from (f for f in _pattern(site.pointer, pattern) if f.code != "loose_pattern")


def checked_formats() -> frozenset[str]:
    """The formats that the validator of this installation checks: it depends on the packages that are there."""
    checker = getattr(validator_of({}), "format_checker", None)
    return frozenset(getattr(checker, "checkers", {}))


@lru_cache(maxsize=4096)
def _meant(keyword: str) -> str:
    """The keyword that an unknown one is a slip of, or ""."""
    if len(keyword) < 4 or len(keyword) > 40 or not keyword[0].isalpha():  # `_format`, `@type`: put aside on purpose
        return ""
    alike = {folded(known): known for known in KNOWN}
    if folded(keyword) in alike:
        return alike[folded(keyword)]
    close = difflib.get_close_matches(keyword, sorted(KNOWN), 1, _SOUNDS_CLOSE)
    return close[0] if close else ""


def _unknown(site: Site) -> Iterator[Finding]:
    unknown = []
    for keyword, value in site.node.items():
        if keyword in KNOWN or (keyword.startswith(("x-", "$")) and keyword not in ELSEWHERE):
            continue
        if keyword in ELSEWHERE and not (isinstance(value, Mapping) and "type" in value):
            yield found(
                "other_draft_keyword", site.pointer, f"{quoted(keyword)} has no effect here.", ELSEWHERE[keyword]
            )
        elif _looks_like_schema(value) and site.node.get("type", "object") == "object":
            why = f"{quoted(keyword)} stands outside `properties` and has no effect."
            yield found("misplaced_property", site.pointer, why)
        elif _meant(keyword):
            why = f"{quoted(keyword)} has no effect; the keyword is {_meant(keyword)}."
            yield found("misspelt_keyword", site.pointer, why, f"Write {_meant(keyword)}.")
        else:
            unknown.append(keyword)
    if unknown:
        yield found("unknown_keyword", site.pointer, f"Nobody enforces {names(unknown)}.")


def _looks_like_schema(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(value.get("type"), str) and value["type"] in {*APPLIES, "integer", "boolean", "null"}


def _applies(scope: Scope, site: Site) -> Iterator[Finding]:
    node = site.node
    types = scope.types(node)
    idle = [
        keyword
        for kind, keywords in APPLIES.items()
        for keyword in node
        if keyword in keywords and kind not in types and not (kind == "number" and "integer" in types)
    ]
    if idle and types:
        yield found("inapplicable_keyword", site.pointer, f"{names(idle)} cannot apply to {names(sorted(types))}.")
    orphans = [f"{key} without {_PARTNERS[key]}" for key in node if key in _PARTNERS and _PARTNERS[key] not in node]
    if "if" in node and not {"then", "else"} & node.keys():
        orphans.append("if without then and else")
    if orphans:
        yield found("orphan_keyword", site.pointer, f"No effect: {', '.join(orphans)}.")
    described = [key for key in ("contentEncoding", "contentMediaType") if key in node]
    if described:
        yield found("annotation_only", site.pointer, f"{names(described)}: never checked by any validator here.")


def _formats(site: Site, checked: frozenset[str]) -> Iterator[Finding]:
    name = site.node.get("format")
    if isinstance(name, str) and name not in checked:
        close = difflib.get_close_matches(name.lower().replace("_", "-")[:40], sorted(checked), 1, 0.75)
        fix = f"Is {close[0]} meant? It is checked." if close else ""
        if name in ("int32", "int64", "float", "double"):
            fix = "Remove it and set minimum and maximum."
        yield found("unchecked_format", site.pointer, f"Nothing checks the format {quoted(name)}.", fix)


def _pattern(pointer: str, pattern: str) -> Iterator[Finding]:
    reading = read_pattern(pattern)
    shown = quoted(pattern)
    if beyond_grammars(pattern):
        yield found("grammarless_pattern", pointer, f"{shown}: xgrammar drops it, llguidance does not compile it.")
    if foreign(pattern):
        yield found("foreign_pattern", pointer, f"{shown} is read otherwise outside Python.")
    if reading is not None and reading.slow:
        yield found(
            "slow_pattern", pointer, f"{shown} repeats what itself repeats, with nothing between to tell where."
        )
    if reading is not None and not reading.anchored:
        yield found("loose_pattern", pointer, f"{shown} may match anywhere in the text.")
