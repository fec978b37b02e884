"""Schemas for every rewrite: what has to get through, what must not, what is left."""

from __future__ import annotations

from typing import Any


def obj(properties: Any, *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


INT, STR, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
TAGGED = [obj({"kind": {"const": tag}, "v": schema}, "kind", "v") for tag, schema in (("x", INT), ("y", STR))]
LINKED = {"$defs": {"n": obj({"v": INT, "next": {"anyOf": [{"$ref": "#/$defs/n"}, NULL]}}, "v", "next")}}

# name: (schema, values that must get through, values that must not)
EXACT: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "unanchored pattern": ({"type": "string", "pattern": "b"}, ["b", "abc", 'a"b\\'], ["", "ac"]),
    "pattern open at the end": ({"type": "string", "pattern": "^a"}, ["a", "ab\n"], ["ba", ""]),
    "pattern with a length": ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ["abc"], ["abcd", "", "A"]),
    "free text that looks like a pattern": ({"type": "string", "pattern": "^.*$"}, ['5" \\ 😀', ""], []),
    "a length counts characters": (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"\n', "😀é中"],
        ["a", "😀😀😀😀"],
    ),
    "allOf of objects": (
        {"allOf": [obj({"a": INT}, "a"), obj({"b": STR}, "b")]},
        [{"a": 1, "b": ""}, {"a": 1, "b": "", "c": 1}],
        [{"a": 1}, {"b": ""}, {"a": "x", "b": ""}],
    ),
    "allOf of bounds": (
        {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"exclusiveMaximum": 5}]},
        [3, 4],
        [2, 5, 6, "a"],
    ),
    "allOf of arrays": (
        {
            "allOf": [
                {"type": "array", "items": {"type": ["integer", "null"]}},
                {"items": {"type": ["integer", "string"]}},
            ]
        },
        [[], [1, 2]],
        [[None], ["a"]],
    ),
    "one key in two places": (
        {
            "type": "object",
            "properties": {"a": INT},
            "required": ["a"],
            "allOf": [{"properties": {"a": {"enum": [1, "1"]}}}],
        },
        [{"a": 1}],
        [{"a": "1"}, {"a": 2}],
    ),
    "a reference with siblings": (
        {"$defs": {"s": {"type": "string", "maxLength": 3}}, "$ref": "#/$defs/s", "minLength": 2},
        ["ab", "abc"],
        ["a", "abcd"],
    ),
    "oneOf with a discriminator": (
        {"oneOf": TAGGED},
        [{"kind": "x", "v": 1}, {"kind": "y", "v": "s"}],
        [{"kind": "x", "v": "s"}, {"kind": "z", "v": 1}],
    ),
    "oneOf by types": ({"oneOf": [INT, STR, NULL]}, [1, "a", None], [1.5, True, []]),
    "oneOf by constants": ({"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}]}, ["a", "b", "c"], ["d", 1]),
    "oneOf by a forbidden key": (
        {
            "type": "object",
            "oneOf": [
                obj({"a": INT}, "a", additionalProperties=False),
                obj({"b": INT}, "b", additionalProperties=False),
            ],
        },
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
    "if, then and else": (
        {
            "type": "object",
            "properties": {"k": {"enum": ["x", "y"]}, "v": {"type": ["integer", "string"]}},
            "required": ["k", "v"],
            "additionalProperties": False,
            "if": {"properties": {"k": {"const": "x"}}},
            "then": {"properties": {"v": INT}},
            "else": {"properties": {"v": STR}},
        },
        [{"k": "x", "v": 1}, {"k": "y", "v": "s"}],
        [{"k": "x", "v": "s"}, {"k": "y", "v": 1}],
    ),
    "if without else": (
        {"type": ["integer", "string"], "if": {"type": "number"}, "then": {"minimum": 5}},
        [5, "a"],
        [4],
    ),
    "dependentRequired": (
        obj({"a": INT, "b": INT}, dependentRequired={"a": ["b"]}, additionalProperties=False),
        [{}, {"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}],
    ),
    "dependentSchemas": (
        obj(
            {"a": INT, "b": INT},
            dependentSchemas={"a": {"properties": {"b": {"const": 1}}, "required": ["b"]}},
            additionalProperties=False,
        ),
        [{}, {"b": 2}, {"a": 1, "b": 1}],
        [{"a": 1}, {"a": 1, "b": 2}],
    ),
    "const implies its type": ({"const": {"a": [1, True]}}, [{"a": [1, True]}], [{"a": [1]}, {}]),
    "enum judged by its siblings": (
        {"enum": ["a", "bb", 1, None], "type": "string", "minLength": 2},
        ["bb"],
        ["a", 1, None],
    ),
    "const and enum meet": ({"enum": [1, 2, 3], "allOf": [{"enum": [2, 3, 4]}, {"not": {"const": 3}}]}, [2], [1, 3, 4]),
    "whole floats are integers": ({"const": 1.0}, [1, 1.0], [1.5, 2]),
    "not a type": ({"not": {"type": ["object", "array", "boolean"]}}, [1, "a", None], [{}, [], True]),
    "not a required key": (
        {
            "type": "object",
            "properties": {"a": INT, "b": INT},
            "additionalProperties": False,
            "not": {"required": ["a"]},
        },
        [{}, {"b": 1}],
        [{"a": 1}],
    ),
    "recursion": (
        {**LINKED, "$ref": "#/$defs/n"},
        [{"v": 1, "next": None}, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}],
        [{"v": 1}, {"v": 1, "next": 5}],
    ),
    "an optional child that needs itself": (
        {"$defs": {"n": obj({"v": INT, "n": {"$ref": "#/$defs/n"}}, "v")}, "$ref": "#/$defs/n"},
        [{"v": 1}, {"v": 1, "n": {"v": 2}}],
        [{"n": {"v": 1}}],
    ),
    "a branch without end is taken out": (
        {"$defs": {"n": obj({"n": {"$ref": "#/$defs/n"}}, "n")}, "anyOf": [INT, {"$ref": "#/$defs/n"}]},
        [1],
        [{}, {"n": 1}],
    ),
    "anyOf beside properties": (
        {
            "type": "object",
            "properties": {"a": INT},
            "required": ["a"],
            "additionalProperties": False,
            "anyOf": [{"required": ["a"]}],
        },
        [{"a": 1}],
        [{}, "anything", {"a": "x"}],
    ),
    "keywords of another type": ({"type": "integer", "minLength": 3, "properties": {"a": STR}}, [1], ["abc", {}]),
    "no type": ({"maxLength": 2, "minItems": 1}, ["ab", 1, None, {"x": [1]}, [1]], ["abc", []]),
    "tuples": (
        {"type": "array", "prefixItems": [INT, STR], "items": False, "minItems": 1},
        [[1], [1, "a"]],
        [[], ["a"], [1, "a", 2]],
    ),
    "few multiples": (
        {"type": "integer", "multipleOf": 5, "minimum": -5, "maximum": 12},
        [-5, 0, 10],
        [12, -10, 3, 15],
    ),
    "crossing bounds in one branch": ({"anyOf": [{"type": "integer", "minimum": 3, "maximum": 2}, STR]}, ["a"], [2, 3]),
    "a map": ({"type": "object", "additionalProperties": INT}, [{}, {'a"b': 1, "": 2}], [{"a": "x"}]),
    "an empty object": (obj({}, additionalProperties=False), [{}], [{"a": 1}]),
    "booleans": ({"type": "array", "items": True, "maxItems": 2}, [[], [None, {"a": []}]], [[1, 2, 3]]),
    "an exact format": (
        {"type": "string", "format": "date"},
        ["2024-02-29", "0001-01-01"],
        ["2023-02-29", "24-1-1", ""],
    ),
}

# name: (schema, what is left, a value that is let through because of it)
LEFT: dict[str, tuple[Any, set[str], Any]] = {
    "branches that overlap": ({"oneOf": [INT, {"type": "number"}]}, {":oneOf"}, 3),
    "unique items": ({"type": "array", "items": INT, "uniqueItems": True}, {":uniqueItems"}, [1, 1]),
    "contains": ({"type": "array", "contains": {"const": 1}, "minContains": 2}, {":contains", ":minContains"}, []),
    "look-ahead that is not followed": ({"type": "string", "pattern": r"^(a)\1$"}, {":pattern"}, "b"),
    "an unknown format": ({"type": "string", "format": "made-up"}, {":format"}, None),
    "an outlined format": ({"type": "string", "format": "uri"}, {":format"}, None),
    "a required key without a place": (
        {"type": "object", "required": ["ghost"], "additionalProperties": INT},
        {":required"},
        {"other": 1},
    ),
    "not whole": ({"type": ["number", "null"], "not": {"type": "integer"}}, {":not"}, 1),
    "a single number": ({"type": "integer", "not": {"const": 3}}, {":not"}, 3),
    "if that has no complement": (
        {"type": "array", "if": {"uniqueItems": True}, "then": {"maxItems": 1}},
        {":then", "/if:uniqueItems"},
        [1, 2],
    ),
    "unevaluated items": ({"type": "array", "unevaluatedItems": INT}, {":unevaluatedItems"}, ["a"]),
    "a map by patterns and more": (
        {"type": "object", "patternProperties": {"^a": INT}, "additionalProperties": STR},
        {":patternProperties", ":additionalProperties"},
        {"a": "x"},
    ),
}
