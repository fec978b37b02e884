"""Checks of what only descriptions and instructions say, and of what they leave out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.schema.lint.policy import SAYS_BOUND, SAYS_ENUM, SAYS_LIST, SAYS_OPTIONAL
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names, quoted
from pipeline.schema.lint.view import ALL, Scope, Site

_MIN_CODES = 3
_CODE_LETTERS = 1
_MARKED = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+)`")
_COUNTED = {"characters": "maxLength", "chars": "maxLength"}


def check_prose(scope: Scope, instructions: str) -> Iterator[Finding]:
    """All findings of this family."""
    for site in scope.nodes:
        if site.keyword in ("properties", "items") or site.in_place:
            yield from _described(scope, site)
            yield from _codes(scope, site)
        yield from _both_ways(scope, site)
    yield from _stale(scope, instructions)


def _described(scope: Scope, site: Site) -> Iterator[Finding]:
    node, text = site.node, site.node.get("description")
    if not isinstance(text, str):
        return
    types = scope.types(node)
    rules = {key for part in scope.parts(node) for key in part}
    said = SAYS_BOUND.search(text)
    if said:
        keyword = _COUNTED.get(said[2].lower(), "maxItems")
        fits = "string" in types if keyword == "maxLength" else "array" in types
        if fits and not rules & {keyword, "enum", "const", "pattern", "format"}:
            fix = f"Add {keyword}: {said[1]}."
            yield found("prose_constraint", site.pointer, f"The description says {quoted(said[0])}.", fix)
    if (
        "string" in types
        and types <= {"string", "null"}
        and not rules & {"enum", "const", "pattern", "format", "anyOf", "oneOf"}
    ):
        if SAYS_ENUM.search(text):
            yield found("prose_constraint", site.pointer, "The description lists the legal values.", "Add an enum.")
        if SAYS_LIST.search(text):
            yield found("list_as_string", site.pointer, f"The description says {quoted(SAYS_LIST.findall(text)[0])}.")
    parent = site.parent.node if site.parent is not None and site.keyword == "properties" else {}
    says = SAYS_OPTIONAL.search(text)
    forced = site.name in parent.get("required", []) and types and not types & {"null", "array"}
    empty = [member for member in scope.members(node) or [] if member in ("", "none", "unknown")]
    if says and forced and not empty:
        yield found("described_optional", site.pointer, f"The description says {quoted(says[0])}.")


def _codes(scope: Scope, site: Site) -> Iterator[Finding]:
    members = [member for member in site.node.get("enum", []) if member is not None]
    short = [m for m in members if (isinstance(m, str) and 0 < len(m) <= _CODE_LETTERS) or type(m) is int]
    if len(members) >= _MIN_CODES and len(short) == len(members) and not site.text:
        yield found("cryptic_enum", site.pointer, f"Nothing says what {names(members)} mean.")


def _both_ways(scope: Scope, site: Site) -> Iterator[Finding]:
    held = site.node.get("properties", {})
    if site.aside or not held:
        return
    required = scope.required(site.node)
    null = {name for name in held if name not in required and "null" in scope.types(held[name])}
    chosen = [
        name
        for name in held
        if name in null and held[name] is not True and held[name] and scope.types(held[name]) != ALL
    ]
    if chosen:
        yield found("optional_and_null", site.pointer, f"Missing and null mean the same for {names(chosen)}.")


def _stale(scope: Scope, instructions: str) -> Iterator[Finding]:
    """Names in backticks that look like fields: snake_case or camelCase, and nothing in the schema is called so."""
    marked = dict.fromkeys(_MARKED.findall(instructions))
    if not marked:
        return
    known = {name for site in scope.nodes for name in site.node.get("properties", {})}
    known |= {str(member) for site in scope.nodes for member in scope.members(site.node) or []}
    unknown = [name for name in marked if name not in known]
    if unknown:
        yield found(
            "stale_instructions", "", f"The instructions name {names(unknown)}; the schema has no such field or value."
        )
