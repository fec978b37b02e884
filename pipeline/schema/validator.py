"""The validator of document schemas: JSON Schema 2020-12 with formats, corrected where the library is not exact.

`multipleOf` is decided on the decimals as written (19.99 is a multiple of 0.01). `pattern` and the keys of
`patternProperties` are read as ECMA 262 has it, the dialect of JSON Schema and of the grammars, not as Python has it,
and no search takes longer than SEARCH_SECONDS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from pipeline.schema.formats import format_checker
from pipeline.schema.pattern.search import Finder, compile_finder
from pipeline.schema.walk import descend, rebuild, resolve

SEARCH_SECONDS = 1.0
_MAX_SHOWN = 80


class PatternError(ValueError):
    """A pattern that the validator cannot compile; the text says why."""


class PatternTimeout(Exception):
    """A search took longer than SEARCH_SECONDS, so nobody knows whether the value is valid."""


class Undeclared(ValidationError):
    """An object has `keys` that its schema does not allow; without them nothing is wrong with it here."""

    def __init__(self, message: str, keys: tuple[str, ...]) -> None:
        super().__init__(message)
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern."""

    source: str
    finder: Finder

    def search(self, text: str) -> bool:
        """Whether it matches somewhere in the text.

        Raises:
            PatternTimeout: it cannot be said in SEARCH_SECONDS.
        """
        try:
            return self.finder.finds(text, SEARCH_SECONDS)
        except TimeoutError as error:
            shown = self.source if len(self.source) <= _MAX_SHOWN else self.source[: _MAX_SHOWN - 1] + "…"
            words = f"pattern {shown!r} searched {len(text)} characters for over {SEARCH_SECONDS} s"
            raise PatternTimeout(f"{words}. Write it without repetitions that can share out one text.") from error


def validator_of(schema: Mapping[str, Any]) -> Validator:
    """A validator for a schema that `check_schema` let pass. Its methods raise PatternTimeout."""
    # The library picks its own class anew wherever it meets $schema, and would lose the corrections there.
    bare: Any = rebuild(schema, lambda _, node: _without_draft(node))
    kind: Any = _Validator
    if any(isinstance(node, Mapping) and "unevaluatedProperties" in node for _, node in descend(bare)):
        kind = _extended({"unevaluatedProperties": partial(_unevaluated, bare)})  # 1 ms, so only where it is needed
    return kind(bare, format_checker=format_checker())  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """An ECMA 262 pattern, for `search`. What ECMA 262 does not know is read as the `regex` package reads it.

    Raises:
        PatternError: neither can be compiled.
    """
    try:
        return Pattern(pattern, compile_finder(pattern))
    except ValueError as error:
        raise PatternError(str(error)) from error


def _without_draft(node: Any) -> Any:
    return {key: value for key, value in node.items() if key != "$schema"} if isinstance(node, Mapping) else node


def _pattern(validator: Validator, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not compile_pattern(pattern).search(instance):
        yield ValidationError(f"does not match {pattern}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for source, child in patterns.items():
        pattern = compile_pattern(source)
        for key, value in instance.items():
            if pattern.search(key):
                yield from validator.descend(value, child, path=key, schema_path=source)


def _additional(validator: Any, child: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    declared = _declared(schema, instance)
    extras = [key for key in instance if key not in declared]
    if child is False and extras:
        yield Undeclared(f"Additional properties are not allowed: {_listed(extras)}", tuple(extras))
    elif child is not False:
        for key in extras:
            yield from validator.descend(instance[key], child, path=key)


def _unevaluated(
    root: Any, validator: Any, child: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    seen = _evaluated(validator, instance, {k: v for k, v in schema.items() if k != "unevaluatedProperties"}, root)
    left = [key for key in instance if key not in seen]
    wrong = [key for key in left if not validator.evolve(schema=child).is_valid(instance[key])]
    if wrong:
        yield Undeclared(f"Unevaluated properties are not allowed: {_listed(wrong)}", tuple(wrong))


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any, root: Any) -> set[str]:
    """The keys that a schema, which accepts the instance, has a say about (core specification, section 11.3)."""
    if not isinstance(schema, Mapping):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    seen = _declared(schema, instance)
    for other in _in_place(validator, instance, schema, root):
        seen |= _evaluated(validator, instance, other, root)
    return seen


def _in_place(validator: Any, instance: Any, schema: Mapping[str, Any], root: Any) -> Iterator[Any]:
    """The subschemas that judge the same instance and accept it."""

    def accepts(child: Any) -> bool:
        return bool(validator.evolve(schema=child).is_valid(instance))

    if "$ref" in schema:
        yield resolve(root, schema["$ref"])
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from filter(accepts, schema.get(keyword, ()))
    for key, child in schema.get("dependentSchemas", {}).items():
        if key in instance and accepts(child):
            yield child
    if "if" in schema:
        branch = "then" if accepts(schema["if"]) else "else"
        yield from [schema["if"]] if branch == "then" else []
        yield schema.get(branch, True)


def _declared(schema: Mapping[str, Any], instance: Mapping[str, Any]) -> set[str]:
    """The instance's keys that `properties` or `patternProperties` of a schema name."""
    named = schema.get("properties", {})
    patterns = [compile_pattern(pattern) for pattern in schema.get("patternProperties", ())]
    return {key for key in instance if key in named or any(pattern.search(key) for pattern in patterns)}


def _listed(keys: list[str]) -> str:
    return ", ".join(repr(key) for key in sorted(keys))


def _multiple_of(validator: Validator, divisor: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "number") and (_exact(instance) / _exact(divisor)).denominator != 1:
        yield ValidationError(f"is not a multiple of {divisor}")


def _exact(number: float) -> Fraction:
    """The decimal that JSON shows for a number, rather than the binary fraction next to it."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _unique_items(validator: Validator, unique: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """The library compares every item with every other: 20,000 objects took minutes."""
    if unique and validator.is_type(instance, "array") and len(set(map(_frozen, instance))) < len(instance):
        yield ValidationError("has items that are equal")


def _frozen(value: Any) -> Any:
    """A hashable stand-in, equal for values that JSON Schema calls equal (core specification, section 4.2.2)."""
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(child)) for key, child in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_frozen, value))
    return ("bool", value) if isinstance(value, bool) else value


_KEYWORDS = {
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
}


def _extended(more: Mapping[str, Any]) -> Any:
    return validators.extend(Draft202012Validator, {**_KEYWORDS, **more})  # type: ignore[no-untyped-call]


_Validator: Any = _extended({})
