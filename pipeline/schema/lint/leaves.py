"""Checks of single values: free strings, unknown answers, bounds, and what is typed as a string but is none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.schema.lint.patterns import UNBOUNDED, read_pattern
from pipeline.schema.lint.policy import (
    CODE_WORDS,
    DATE_WORDS,
    MAX_FREE_SHARE,
    MIN_LEAVES_FOR_SHARE,
    NOT_A_DATE,
    NOT_A_NUMBER,
    NUMBER_WORDS,
    SAYS_DAY,
    UNKNOWN_WORDS,
)
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.samples import samples
from pipeline.schema.lint.show import names, quoted
from pipeline.schema.lint.view import SCALARS, Scope, Site, declared
from pipeline.schema.lint.words import words

_HELD = ("enum", "const", "pattern", "format", "maxLength")
_NUMERIC = re.compile(r"[+-]?\d{1,15}(?:[.,]\d{1,9})?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.{0,20})?|\d\d?[./]\d\d?[./]\d{4}")
_ONE = r"(?:\\d|\[0-9\])"
_MARK = r"[-/.\\]{1,2}"
_DIGITS = re.compile(
    r"\^?(?:[+-]\?|\[[+-]{1,2}\]\?)?" + _ONE + r"[+*](?:\(?(?:\\\.|\[.,\]|\[\.\])\??" + _ONE + r"[+*]\)?\??)?\$?"
)
_DAY_PATTERN = re.compile(
    r"\^?\(?"
    + _ONE
    + r"\{4\}\)?"
    + _MARK
    + r"\(?"
    + _ONE
    + r"\{1?,?2\}\)?"
    + _MARK
    + r"\(?"
    + _ONE
    + r"\{1?,?2\}\)?\$?"
)
"""Patterns for plain numbers and for days, as people write them."""


def check_leaves(scope: Scope, records: Iterable[Any]) -> Iterator[Finding]:
    """All findings of this family."""
    leaves = [site for site in scope.nodes if _is_leaf(scope, site)]
    strings = [site for site in leaves if "string" in declared(site.node) and "string" in scope.types(site.node)]
    free = [site for site in strings if not site.says(*_HELD)]
    if len(leaves) >= MIN_LEAVES_FOR_SHARE and len(free) / len(leaves) > MAX_FREE_SHARE:
        why = f"{len(free)} of {len(leaves)} leaves are strings without enum, pattern, format or maxLength."
        yield found("free_text_share", "", why)
    shown = samples(scope, records)
    for site in strings:
        yield from _typed_as_string(site, shown.get(site.pointer, []))
    yield from grouped("unbounded_string", "No longest length", [site for site in strings if _endless(site)])
    numbers = [site for site in leaves if declared(site.node) & {"integer", "number"} and _boundless(site)]
    yield from grouped("unbounded_number", "No smallest and largest value", numbers)
    for site in scope.nodes:
        yield from _unknown(scope, site)
        yield from _arrays(scope, site)


def _is_leaf(scope: Scope, site: Site) -> bool:
    """A scalar that is described here, rather than a part that adds to it or a case of it."""
    typed = any(key in site.node for key in ("type", "enum", "const"))
    kinds = scope.types(site.node) - {"null"}
    return typed and bool(kinds) and kinds <= SCALARS and not site.aside and "anyOf" not in site.node


def grouped(code: str, what: str, sites: list[Site]) -> Iterator[Finding]:
    """One finding per object for its properties; one for every other place."""
    groups: dict[str, list[str]] = defaultdict(list)
    for site in sites:
        home = site.home
        owner = home.parent.pointer if home.keyword == "properties" and home.parent is not None else home.pointer
        groups[owner] += [site.name] if site.name else []
    for pointer, held in groups.items():
        shown = f": {names(dict.fromkeys(held))}" if held else ""
        yield found(code, pointer, f"{what}{shown}.")


def _endless(site: Site) -> bool:
    if site.says("maxLength", "enum", "const", "format"):
        return False
    patterns = [around.node["pattern"] for around in site.around() if "pattern" in around.node]
    readings = [read_pattern(pattern) for pattern in patterns]
    return not any(r is None or (r.anchored and r.longest < UNBOUNDED) for r in readings)


def _boundless(site: Site) -> bool:
    if site.says("enum", "const"):
        return False
    return not (site.says("minimum", "exclusiveMinimum") and site.says("maximum", "exclusiveMaximum"))


def _unknown(scope: Scope, site: Site) -> Iterator[Finding]:
    """One finding per object for required leaves that must be answered."""
    if site.aside or "properties" not in site.node:
        return
    held = site.node["properties"]
    required = [name for name in site.node.get("required", []) if name in held]
    verdicts: dict[int, bool] = {}  # by what a bare reference names: many properties may share a large enum
    forced = []
    for name in required:
        node = scope.bare(held[name])
        if id(node) not in verdicts:
            verdicts[id(node)] = _forced(scope, node)
        forced += [name] if verdicts[id(node)] else []
    if forced:
        yield found("no_unknown", site.pointer, f'Required, and neither null nor "unknown" is legal: {names(forced)}.')


def _forced(scope: Scope, node: Any) -> bool:
    types = scope.types(node)
    if not types or not types <= SCALARS or "null" in types:
        return False
    members = scope.members(node)
    if members is None:
        return True
    spelt = {re.sub(r"[^a-z]", "", member.lower()) for member in members if isinstance(member, str)}
    return len(members) > 1 and not spelt & UNKNOWN_WORDS and "" not in members


def _arrays(scope: Scope, site: Site) -> Iterator[Finding]:
    node = site.node
    if site.aside or "array" not in declared(node) or "type" not in node or site.says("enum", "const"):
        return
    if node.get("prefixItems"):
        yield found(
            "tuple_array", site.pointer, f"The meaning of {len(node['prefixItems'])} items hangs on their position."
        )
        if node.get("items") is False:
            return
    if not any("maxItems" in part for around in site.around() for part in scope.parts(around.node)):
        yield found("unbounded_array", site.pointer, "No maxItems: the array may go on until the tokens end.")


def _typed_as_string(site: Site, shown: list[Any]) -> Iterator[Finding]:
    """Numbers and days by pattern, by name, by examples: conservative, digits are often names (postcodes, phones)."""
    node, spelt = site.node, words(site.name)
    if site.says("enum", "const", "format"):
        return
    pattern = node.get("pattern", "")
    samples = [v for v in [*node.get("examples", []), node.get("default"), *shown] if v is not None]
    texts = [v for v in samples if isinstance(v, str)]
    uniform = texts if len(texts) == len(samples) else []
    if _DAY_PATTERN.fullmatch(pattern):
        yield found("date_as_string", site.pointer, f"Pattern {quoted(pattern)} lets days such as 2024-99-99 pass.")
    elif uniform and all(map(_DAY.fullmatch, uniform)):
        yield found(
            "date_as_string", site.pointer, f"The examples are dates ({names(uniform)}), the schema takes any text."
        )
    elif not pattern and spelt and (_is_date(spelt) or SAYS_DAY.search(site.text)):
        yield found("date_as_string", site.pointer, "Name or description promise a date, the schema takes any text.")
    elif set(spelt) & CODE_WORDS:
        return
    elif _DIGITS.fullmatch(pattern):
        yield found("number_as_string", site.pointer, f"Pattern {quoted(pattern)} admits nothing but numbers.")
    elif len(uniform) > 1 and all(map(_NUMERIC.fullmatch, uniform)) and not any(t[:1] == "0" != t for t in uniform):
        yield found(
            "number_as_string", site.pointer, f"The examples are numbers ({names(uniform)}), the type is string."
        )
    elif not pattern and spelt and spelt[-1] in NUMBER_WORDS and not set(spelt) & NOT_A_NUMBER:
        yield found("number_as_string", site.pointer, f"{quoted(site.name)} promises a number, the type is string.")


def _is_date(spelt: list[str]) -> bool:
    return spelt[-1] in DATE_WORDS and not set(spelt) & NOT_A_DATE
