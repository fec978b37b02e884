"""What the model and the grammar get to see: texts, prose, rules and definitions, apart from what values they allow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.schema.drift.found import ABSENT, Finding
from pipeline.schema.drift.members import MEMBER_KEYWORDS
from pipeline.schema.drift.prints import Prints
from pipeline.schema.drift.values import VALUE_KEYWORDS
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.walk import ANNOTATIONS, escape, is_assertion, rebuild

RULES = "x-validations"
_DEFINITIONS = ("$defs", "definitions")
_HIDDEN = ("$schema", "$id")
_KNOWN = VALUE_KEYWORDS | MEMBER_KEYWORDS | {"allOf", "anyOf", "oneOf", "$ref", *_DEFINITIONS}
_SEVERITIES = ("observe", "degrade", "block")


def text_of(value: Any) -> str:
    """JSON text in its own order: what a prompt or a grammar compiler would read."""
    return json.dumps(value, separators=(",", ":"))


def prompt_of(schema: DocumentSchema) -> tuple[str, str, str]:
    """Instructions, schema and examples as the shared system message shows them."""
    body = {key: value for key, value in schema.asked.items() if key not in _HIDDEN}
    examples = [[example.document, example.record] for example in schema.examples]
    return schema.instructions, text_of(body), text_of(examples)


def grammar_of(schema: DocumentSchema) -> str:
    """All that a grammar can be made of, for any back end: the schema in its order, without what refuses nothing.

    Where this is the same, every grammar is; where it is not, a grammar may still be.
    """

    def bare(_pointer: str, node: Any) -> Any:
        return {key: part for key, part in node.items() if is_assertion(key)} if isinstance(node, dict) else node

    return text_of(rebuild(schema.asked, bare))


def same_prose(old: Any, new: Any, root: bool) -> Iterator[Finding]:
    """Differences of keywords that refuse no value of a schema: annotations, extensions, rules, unknown keywords."""
    was, now = (schema if isinstance(schema, Mapping) else {} for schema in (old, new))
    for keyword in {**was, **now}:
        before, after = was.get(keyword, ABSENT), now.get(keyword, ABSENT)
        if keyword in _KNOWN or (ABSENT not in (before, after) and text_of(before) == text_of(after)):
            continue
        if keyword == RULES:
            yield from _rules(before, after)
        elif keyword.startswith("x-"):
            yield Finding("extension", (keyword,), before, after)
        elif keyword not in ANNOTATIONS:
            yield Finding("unknown_keyword", (keyword,), before, after)
        else:
            kind = "identity" if root and keyword in _HIDDEN else "annotation"
            yield Finding(kind, (keyword,), before, after)


def _rules(before: Any, after: Any) -> Iterator[Finding]:
    """Rules are known by what they demand and where; how severe they are decides whether they refuse."""
    sides = [_read(rules) for rules in ([] if rules is ABSENT else rules for rules in (before, after))]
    was, now = sides
    if was is None or now is None:
        yield Finding("rules_unread", (RULES,), before, after, keeps=False, adds_nothing=False)
        return
    for key in {**was, **now}:
        old, new = was.get(key), now.get(key)
        level, later = (_level(rule) for rule in (old, new))
        values = (ABSENT if old is None else old, ABSENT if new is None else new)
        if old is None or later > level:
            yield Finding("rule_added", (RULES,), *values, keeps=later <= 0)
        elif new is None or later < level:
            yield Finding("rule_removed", (RULES,), *values, adds_nothing=level <= 0)
        elif text_of(old) != text_of(new):
            yield Finding("extension", (RULES,), *values)
    if [key for key in was if key in now] != [key for key in now if key in was]:
        yield Finding("extension", (RULES,), before, after)


def _read(rules: Any) -> dict[str, Any] | None:
    if not isinstance(rules, list) or not all(isinstance(rule, Mapping) and "rule" in rule for rule in rules):
        return None
    return {text_of([rule["rule"], rule.get("pointer")]): rule for rule in rules}


def _level(rule: Any) -> int:
    """How severe: -1 no rule, 0 counted only; what says nothing, or something unknown, blocks."""
    if rule is None:
        return -1
    severity = rule.get("severity", "block")
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES) - 1


def same_definitions(old: Any, new: Any, reached: set[str], prints: Prints) -> Iterator[Finding]:
    """Definitions added, removed, renamed, or changed where no reference that was followed (`reached`) led."""
    heads = {"/".join(pointer.split("/")[:3]) for pointer in reached}
    for keyword in _DEFINITIONS:
        was, now = old.get(keyword, {}), new.get(keyword, {})
        gone = {prints.of(was[name]): name for name in was if name not in now}
        for name in now:
            steps = (keyword, name)
            if name not in was:
                former = gone.pop(prints.of(now[name]), None)
                kind = "definition_added" if former is None else "definition_renamed"
                yield Finding(kind, steps, ABSENT if former is None else former, name)
            elif f"/{keyword}/{escape(name)}" not in heads and text_of(was[name]) != text_of(now[name]):
                yield Finding("definition_unused", steps, was[name], now[name])
        for name in gone.values():
            yield Finding("definition_removed", (keyword, name), name)


def same_folder(old: DocumentSchema, new: DocumentSchema) -> Iterator[Finding]:
    """Differences of what stands beside `schema.json`, and of who closed an object."""
    if old.instructions != new.instructions:
        yield Finding("instructions", (), old.instructions, new.instructions)
    if prompt_of(old)[2] != prompt_of(new)[2]:
        yield Finding("few_shot", (), f"{len(old.examples)} examples", f"{len(new.examples)} examples")
    if old.closed != new.closed and text_of(old.body) == text_of(new.body):
        yield Finding("closing", (), list(old.closed), list(new.closed))
