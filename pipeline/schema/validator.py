"""The validator of document schemas: JSON Schema 2020-12 with formats, corrected where the library is not exact.

`multipleOf` is decided on the decimals as written (19.99 is a multiple of 0.01), and `pattern` as ECMA 262 has it,
the dialect of JSON Schema and of the grammars, not as Python has it. Keys of `patternProperties` keep Python's reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

_BLANKS = r" \t\n\r\f\v\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_OUTSIDE_CLASS = {r"\s": f"[{_BLANKS}]", r"\S": f"[^{_BLANKS}]", "$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}
_INSIDE_CLASS = {r"\s": _BLANKS}
_TOKEN = re.compile(r"\\.|.", re.DOTALL)


def validator_of(schema: Mapping[str, Any]) -> Validator:
    """A validator for a schema that `check_schema` let pass."""
    checker = Draft202012Validator.FORMAT_CHECKER
    return _Validator(schema, format_checker=checker)  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """An ECMA 262 pattern for `search`: `$` is the very end, `\\d` and `\\w` are ASCII, `.` is not a line separator.

    Not covered: `\\S` in a class means "not an ASCII blank" there.

    Raises:
        re.error, OverflowError, RecursionError: Python cannot express it.
    """
    translated, in_class = [], False
    for token in _TOKEN.findall(pattern):
        translated.append((_INSIDE_CLASS if in_class else _OUTSIDE_CLASS).get(token, token))
        in_class = token != "]" and (in_class or token == "[")
    return re.compile("".join(translated), re.ASCII)


def _pattern(validator: Validator, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not compile_pattern(pattern).search(instance):
        yield ValidationError(f"does not match {pattern}")


def _multiple_of(validator: Validator, divisor: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "number") and (_exact(instance) / _exact(divisor)).denominator != 1:
        yield ValidationError(f"is not a multiple of {divisor}")


def _exact(number: float) -> Fraction:
    """The decimal that JSON shows for a number, rather than the binary fraction next to it."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


_KEYWORDS = {"multipleOf": _multiple_of, "pattern": _pattern}
_Validator: Any = validators.extend(Draft202012Validator, _KEYWORDS)  # type: ignore[no-untyped-call]
