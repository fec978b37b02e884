"""Drift held against the validators: random schemas, edits of all kinds, and values near both.

Hypothesis draws seeds and `random` builds schemas from them: drawing each keyword took fifty times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.drift import drift, worst
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import DocumentSchema, check_schema
from pipeline.schema.validator import validator_of
from pipeline.steps.prompt import system_prompt

NAMES = ("a", "b", "c")
TYPES = ("null", "string", "integer", "number", "object", "array", "boolean")
VALUES: tuple[Any, ...] = (None, True, False, 0, 1, 1.0, 2.5, 3, -1, "", "a", "ab", "2024-02-29", [], {})
DEFS = {
    "leaf": {"type": "string", "maxLength": 1},
    "tree": {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"$ref": "#/$defs/leaf"}}},
}
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties")
LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
MAPS = ("properties", "patternProperties", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "contains", "propertyNames")
CONDITIONS = ("not", "if", "then", "else")

Make = Callable[[Random], Any]
PLAIN: dict[str, Make] = {
    "type": lambda r: r.choice(TYPES) if r.random() < 0.5 else r.sample(TYPES, r.randint(1, 3)),
    "enum": lambda r: r.sample(VALUES, r.randint(1, 4)),
    "const": lambda r: r.choice(VALUES),
    **{name: lambda r: r.randint(0, 2) for name in (*COUNTS, "maxProperties")},
    **{name: lambda r: r.randint(-1, 3) for name in LIMITS},
    "multipleOf": lambda r: r.choice([0.5, 1, 2, 2.5, 3]),
    "pattern": lambda r: r.choice(["^a", "b"]),
    "format": lambda r: r.choice(["date", "email", "nobody-checks"]),
    "uniqueItems": lambda r: r.random() < 0.5,
    "required": lambda r: r.sample(NAMES, r.randint(0, 2)),
    "dependentRequired": lambda r: {
        name: r.sample(NAMES, r.randint(0, 2)) for name in r.sample(NAMES, r.randint(0, 2))
    },
    "$ref": lambda r: r.choice(["#/$defs/leaf", "#/$defs/tree"]),
    "description": lambda r: r.choice(["one", "two"]),
    "x-note": lambda r: r.randint(0, 1),
}
HOLDING = (*MAPS, *LISTS, *SINGLES, *CONDITIONS)
KEYWORDS = (*PLAIN, *HOLDING, *("properties", "anyOf", "oneOf", "additionalProperties", "type") * 2)
PATTERNS = ("^a", "b|c", "^")


def schema(r: Random, depth: int) -> Any:
    if depth == 0 or r.random() < 0.1:
        return r.random() < 0.6
    return {keyword: part(r, keyword, depth - 1) for keyword in r.sample(KEYWORDS, r.randint(0, 4))}


def part(r: Random, keyword: str, depth: int) -> Any:
    if keyword in PLAIN:
        return PLAIN[keyword](r)
    if keyword in MAPS:
        names = PATTERNS if keyword == "patternProperties" else NAMES
        return {name: schema(r, depth) for name in r.sample(names, r.randint(0, 3))}
    if keyword in LISTS:
        return [schema(r, depth) for _ in range(r.randint(1, 3))]
    return schema(r, depth)


def edited(r: Random, node: Any) -> Any:
    """The schema with one keyword set, dropped or added, or edited further down."""
    if isinstance(node, bool) or not node:
        return schema(r, 1)
    keyword = r.choice([key for key in node if key != "$defs"] or ["type"])
    below, how = node.get(keyword), r.choice(("deeper", "deeper", "deeper", "set", "drop", "add"))
    if how == "drop":
        return {key: value for key, value in node.items() if key != keyword}
    if how == "add":
        return {**node, (other := r.choice(KEYWORDS)): part(r, other, 1)}
    if how == "deeper" and keyword in HOLDING and below not in ({}, []):
        return {**node, keyword: deeper(r, below, keyword)}
    return {**node, keyword: part(r, keyword, 1)}


def deeper(r: Random, below: Any, keyword: str) -> Any:
    if keyword in LISTS:
        index, how = r.randrange(len(below)), r.choice(("edit", "swap", "drop"))
        if how == "edit" or len(below) == 1:
            return [edited(r, item) if at == index else item for at, item in enumerate(below)]
        return list(reversed(below)) if how == "swap" else below[:index] + below[index + 1 :]
    if keyword in MAPS:
        name = r.choice(list(below))
        if r.random() < 0.3:
            return {key: value for key, value in below.items() if key != name}
        return {**below, name: edited(r, below[name])}
    return edited(r, below)


def loads(body: Any) -> bool:
    try:
        check_schema(body, "s@1")
    except SchemaError:
        return False
    return True


def pair(r: Random) -> tuple[DocumentSchema, DocumentSchema]:
    """Two schemas that load, one or two edits apart."""
    while True:
        root = schema(r, 3)
        old = new = {"$defs": DEFS, **root} if isinstance(root, dict) else {"$defs": DEFS}
        if r.random() < 0.2:  # rare by chance, and only telling at the top
            shape = {keyword: part(r, keyword, 2) for keyword in ("allOf", "anyOf")}
            old = new = {"$defs": DEFS, "unevaluatedProperties": False, **shape}
        for _ in range(r.randint(1, 2)):
            new = edited(r, new)
            new = {"$defs": DEFS, **new} if isinstance(new, dict) else {"$defs": DEFS}
        if r.random() < 0.3:
            new = {**new, "$defs": {**DEFS, "leaf": edited(r, DEFS["leaf"])}}
        bodies = (old, new) if r.random() < 0.5 else (new, old)
        if all(map(loads, bodies)):
            first, second = (DocumentSchema("s@1", body, "", (), (), digest(body)) for body in bodies)
            return first, second


def value(r: Random, depth: int = 2) -> Any:
    kind = r.random()
    if depth == 0 or kind < 0.3:
        return r.choice(VALUES)
    if kind < 0.55:
        return [value(r, depth - 1) for _ in range(r.randint(0, 3))]
    return {name: value(r, depth - 1) for name in r.sample((*NAMES, "ab"), r.randint(0, 3))}


@settings(max_examples=500)
@given(st.integers(0, 2**64))
def test_what_is_said_of_the_language_holds_for_every_value(seed: int) -> None:
    r = Random(seed)
    old, new = pair(r)
    found = drift(old, new)
    event(f"language {found.language}")
    event(f"readers {found.readers}")
    validators = [validator_of(side.body) for side in (old, new)]
    for item in [*VALUES, *(value(r) for _ in range(25))]:
        was, now = (validator.is_valid(item) for validator in validators)
        shown = f"{old.body} → {new.body}: {item}"
        if found.language in ("compatible", "widening"):
            assert now or not was, shown
        if found.language in ("compatible", "narrowing") or found.readers in ("compatible", "narrowing"):
            assert was or not now, shown


@settings(max_examples=200)
@given(st.integers(0, 2**64))
@example(5366658)  # a definition that nothing reaches gets a keyword that no model is shown
def test_prompt_grammar_and_classes_agree(seed: int) -> None:
    old, new = pair(Random(seed))
    found = drift(old, new)
    assert found.same_prompt == (system_prompt(old) == system_prompt(new))
    assert (found.model == "compatible") == (found.same_prompt and found.same_grammar)
    assert found.model == found.language or (found.language, found.model) == ("compatible", "retest")
    assert worst(found) != "compatible" or found.same_prompt
    assert drift(old, old).changes == () == drift(new, new).changes
