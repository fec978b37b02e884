"""Checks of the values in a schema: enum, const, default, examples. Values are run through the project's validator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import comb
from typing import Any

from pipeline.schema.fingerprint import canonical
from pipeline.schema.lint.leaves import grouped
from pipeline.schema.lint.patterns import read_pattern
from pipeline.schema.lint.policy import (
    IDENTIFIER,
    MAX_PATTERN_STEPS,
    MAX_RISKY_CHARS,
    MAX_VALUE_CHARS,
    MAX_VALUES_CHECKED,
    VOLATILE,
)
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names, printable, quoted
from pipeline.schema.lint.view import Node, Scope, Site, declared, type_of
from pipeline.schema.lint.words import words
from pipeline.schema.validator import validator_of
from pipeline.schema.walk import constrains

_SHOWN = 120


def check_values(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    trial = _Trial(scope)
    for site in scope.nodes:
        node = site.node
        if "enum" in node or "const" in node:
            members = node["enum"] if "enum" in node else [node["const"]]
            yield from _types(scope, site, members)
            yield from _members(trial, site, members)
        if "enum" in node and len({canonical(member) for member in node["enum"]}) < len(node["enum"]):
            yield found("enum_repeats", site.pointer, "The enum holds the same value more than once.")
        if "default" in node:
            yield from trial.refused("default_refused", site.pointer, node, [node["default"]])
        if isinstance(node.get("examples"), list):
            yield from trial.refused("example_refused", site.pointer, node, node["examples"])
        yield from _volatile(site)
    given = [site for site in scope.nodes if site.home is site and site.node.get("default") is not None]
    yield from grouped("default_ignored", "Nothing fills in a default", given)


class _Trial:
    """Runs values through the validator, within bounds: so many values, and none that a pattern may take long on."""

    def __init__(self, scope: Scope) -> None:
        self._left = MAX_VALUES_CHECKED
        self._validator = validator_of(scope.root)
        patterns = [p for site in scope.nodes for p in _patterns(site.node)]
        readings = [read_pattern(pattern) for pattern in patterns]
        known = [reading for reading in readings if reading is not None]
        self._safe = len(known) == len(readings) and not any(reading.slow for reading in known)
        self._longest = MAX_RISKY_CHARS if any(reading.risky for reading in known) else MAX_VALUE_CHARS
        self._stretches = max((reading.stretches for reading in known), default=0)

    def refused(self, code: str, pointer: str, node: Node, values: list[Any]) -> Iterator[Finding]:
        """One finding for the values that a schema refuses, with the words for the first."""
        bad: list[Any] = []
        words_for_it = ""
        for value in values:
            size = len(canonical(value))
            if not self._safe or self._left <= 0 or size > self._longest:
                continue
            if comb(size + self._stretches, self._stretches) > MAX_PATTERN_STEPS:
                continue
            self._left -= 1
            error = next(self._validator.evolve(schema=node).iter_errors(value), None)
            if error is not None:
                bad.append(value)
                words_for_it = words_for_it or printable(error.message[:_SHOWN])
        if bad:
            yield found(code, pointer, f"Refused: {names(bad)}. {words_for_it}")


def _patterns(node: Node) -> list[str]:
    own = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
    return [*own, *node.get("patternProperties", {})]


def _types(scope: Scope, site: Site, members: list[Any]) -> Iterator[Finding]:
    """A member of another type than `type`; without `type`, the odd one among at least three of one type."""
    admitted = declared(site.node)
    for around in site.around():
        admitted &= declared(around.node) if isinstance(around.node, dict) else admitted
    odd = [member for member in members if type_of(member) not in admitted]
    if odd:
        yield found("enum_type_mismatch", site.pointer, f"{names(odd)} is not of type {names(sorted(admitted))}.")
    elif "type" not in site.node and len(members) > 3:
        kinds = [type_of(member) for member in members if member is not None]
        rare = [m for m in members if m is not None and kinds.count(type_of(m)) == 1]
        if len(rare) == 1 and len({"number" if kind == "integer" else kind for kind in kinds}) == 2:
            yield found("enum_type_mismatch", site.pointer, f"{names(rare)} is of another type than all other members.")


def _members(trial: _Trial, site: Site, members: list[Any]) -> Iterator[Finding]:
    rest = {key: value for key, value in site.node.items() if key not in ("enum", "const", "type")}
    if any(constrains(key) and not key.startswith("$defs") for key in rest):
        fitting = [member for member in members if type_of(member) in declared(site.node)]
        yield from trial.refused("enum_refused", site.pointer, rest, fitting)


def _volatile(site: Site) -> Iterator[Finding]:
    node = site.node
    values = [*node.get("enum", []), *(node[key] for key in ("const", "default") if key in node)]
    own_id = words(site.name)[-1:] in (["id"], ["uuid"], ["guid"]) and "const" in node
    for value in values:
        text = value if isinstance(value, str) and len(value) <= MAX_VALUE_CHARS else ""
        kind = next((kind for kind, form in VOLATILE if form.fullmatch(text)), "")
        if not kind and own_id and IDENTIFIER.fullmatch(text):
            kind = "the identifier of one document"
        if not kind and isinstance(value, int) and re.fullmatch(r"1[4-9]\d{8}(\d{3})?", str(value)):
            kind = "a point in time in seconds or milliseconds" if set(words(site.name)) & _TIME_WORDS else ""
        if kind:
            yield found("volatile_constant", site.pointer, f"{quoted(value)} looks like {kind}.")
            return


_TIME_WORDS = frozenset({"time", "timestamp", "date", "at", "epoch", "created", "updated"})
