"""How the validator searches: one reading of patterns everywhere, exact, and never for long."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pipeline.schema import validator
from pipeline.schema.validator import PatternError, PatternTimeout, compile_pattern, validator_of


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^(?=.*\d)[a-z\d]{3}$", ["a1b"], ["abc", "a1b2"]),
        (r"^(?!foo)[\S]+$", ["bar"], ["foobar", "\u00a0"]),
        (r"(?<=\$)\d", ["$1"], ["1"]),
        (r"(?<!\$)\b\d\b", ["1"], ["$1x", "12"]),
        (r"^(\w)\1$", ["aa"], ["ab", "éé"]),
        (r"^\Afoo\Z$", ["foo"], ["foo\n"]),
        (r"(?i)^foo$", ["FOO"], ["food"]),
        (r"(^a|,)*$", ["", "x"], []),
    ],
)
def test_what_no_tree_holds_is_still_judged(pattern: str, yes: list[str], no: list[str]) -> None:
    for text in [*yes, *no]:
        assert compile_pattern(pattern).search(text) == (text in yes), text


@pytest.mark.parametrize(
    "pattern",
    ["(", "a**", "[z-a]", "a{2,1}", r"\p{Nonsense}", "(?<n", "a{100001}", "(?:(?:ab|c){1000}){1000}", r"(a)\1{200000}"],
)
def test_what_cannot_be_compiled_is_refused_in_words(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        compile_pattern(pattern)


CATASTROPHES = ["^(a|a)*$", "^(a|aa)+$", "^(a*)*(b|a)*c$", r"^(\w|a)*\1$", "a?" * 40 + "a" * 40, "^(?=(a|a)*$).$"]


@pytest.mark.parametrize("pattern", CATASTROPHES)
def test_a_search_without_end_becomes_its_own_exception(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(validator, "SEARCH_SECONDS", 0.05)
    texts = ["a" * size + end for size in (35, 39, 3000) for end in ("", "!")]
    try:
        for text in texts:
            compile_pattern(pattern).search(text)
    except PatternTimeout as error:
        assert "searched" in str(error)


def test_a_time_out_leaves_validation_as_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validator, "SEARCH_SECONDS", 0.05)
    for schema, value in (
        ({"pattern": "^(a|a)*$"}, "a" * 40 + "!"),
        ({"patternProperties": {"^(a|a)*$": {}}}, {"a" * 40 + "!": 1}),
        ({"patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}, {"a" * 40 + "!": 1}),
    ):
        with pytest.raises(PatternTimeout, match=r"\^\(a\|a\)\*\$"):
            validator_of(schema).is_valid(value)


KEYS = [("^\\d$", "٣"), ("^a$", "a\n"), ("^\\S+$", "\u00a0"), ("^.$", "\u2028"), (r"^\p{L}$", "1"), ("^[^]$", "ab")]


@pytest.mark.parametrize(("pattern", "key"), KEYS)
def test_keys_are_read_like_values(pattern: str, key: str) -> None:
    assert validator_of({"patternProperties": {pattern: False}}).is_valid({key: 1})
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        closed = {"patternProperties": {pattern: True}, keyword: False}
        assert not validator_of(closed).is_valid({key: 1})
        assert validator_of({"patternProperties": {pattern: True}, keyword: {"const": 1}}).is_valid({key: 1})
    assert not validator_of({"propertyNames": {"pattern": pattern}}).is_valid({key: 1})


@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties"])
def test_patterns_that_only_ecma_reads_declare_keys(keyword: str) -> None:
    schema = {
        "properties": {"a": {}},
        "patternProperties": {r"^\p{Lu}": {"type": "integer"}, "^x-": {}},
        keyword: False,
    }
    judge = validator_of(schema)
    assert judge.is_valid({"a": "", "É": 1, "x-é": None})
    assert [list(error.absolute_path) for error in judge.iter_errors({"É": "no"})] == [["É"]]
    assert [error.validator for error in judge.iter_errors({"é": 1})] == [keyword]


UNEVALUATED: list[dict[str, Any]] = [
    {"properties": {"a": {}}, "unevaluatedProperties": False},
    {"unevaluatedProperties": {"type": "integer"}},
    {"allOf": [{"properties": {"a": {}}}, {"patternProperties": {"^b": {}}}], "unevaluatedProperties": False},
    {"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {"const": 1}}}],
     "unevaluatedProperties": False},
    {"oneOf": [{"required": ["a"], "properties": {"a": {}}}, {"required": ["b"], "properties": {"b": {}}}],
     "unevaluatedProperties": False},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"properties": {"b": {}}},
     "else": {"properties": {"c": {}}}, "unevaluatedProperties": False},
    {"dependentSchemas": {"a": {"properties": {"b": {}}}}, "properties": {"a": {}}, "unevaluatedProperties": False},
    {"$ref": "#/$defs/d", "$defs": {"d": {"properties": {"a": {}}}}, "unevaluatedProperties": False},
    {"$ref": "#/$defs/d", "$defs": {"d": {"additionalProperties": {"type": "integer"}}},
     "unevaluatedProperties": False},
    {"allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False},
    {"not": {"properties": {"a": {"const": 0}}, "required": ["a"]}, "unevaluatedProperties": False},
    {"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": False},
    {"unevaluatedProperties": True},
    {"additionalProperties": {"type": "integer"}, "properties": {"a": {}}},
    {"additionalProperties": False, "properties": {"a": {}}, "patternProperties": {"^b": {"type": "integer"}}},
]  # fmt: skip
VALUES: list[Any] = [
    {}, {"a": 1}, {"a": 0}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}, {"c": 1}, {"b": 0, "c": ""}, {"a": {"b": 1}},
    {"a": {"a": {}}}, {"bb": 1, "a": ""}, {"bb": "", "a": 1}, {"a": 0, "b": 0}, 1, "a", [],
]  # fmt: skip


@pytest.mark.parametrize("schema", UNEVALUATED, ids=str)
def test_which_keys_are_left_over_is_decided_as_the_library_does(schema: dict[str, Any]) -> None:
    for value in VALUES:
        assert validator_of(schema).is_valid(value) == Draft202012Validator(schema).is_valid(value), value


def test_the_corrections_hold_below_a_reference_to_a_root_with_a_draft() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"n": {"multipleOf": 0.01}, "s": {"pattern": "^a$"}, "next": {"$ref": "#"}},
        "patternProperties": {"^x$": False},
    }
    judge = validator_of(schema)
    assert judge.is_valid({"next": {"n": 19.99, "x\n": 1, "next": {"n": 19.99}}})
    assert not judge.is_valid({"next": {"s": "a\n"}})
    assert not judge.is_valid({"next": {"x": 1}})
