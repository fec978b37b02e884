"""Normalisers: what `x-normalise` declares on a leaf, read when a schema is loaded, done to the values of a record.

Tidying ones (`trim`, `collapse`, `invisible`, `digits`, `upper`, `lower`) leave a text a text of the same form.
Converting ones (`decimal`, `date`, `currency`) read what is printed: the model is asked for it (see `asked`), and what
they cannot read for certain stays as it is. Values in the form that they give pass. docs/normalise.md tells all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.locales.currencies import CurrencyStyle, is_code, read_currency
from pipeline.schema.locales.dates import date_style, read_date
from pipeline.schema.locales.letters import ascii_digits, collapsed, visible
from pipeline.schema.locales.numbers import COMMA, POINT, NumberStyle, locale_of, read_number, signs_of
from pipeline.schema.walk import children

KEYWORD = "x-normalise"
MAX_STEPS = 10
MAX_OPTIONS = 20

_TIDYING: dict[str, Callable[[str], str]] = {
    "trim": str.strip,
    "collapse": collapsed,
    "invisible": visible,
    "digits": ascii_digits,
    "upper": str.upper,
    "lower": str.lower,
}
_SHORT = {"decimal-comma": ("decimal", "comma"), "decimal-point": ("decimal", "point"), "currency": ("currency", "")}
_OPTIONS: dict[str, dict[str, type]] = {
    "decimal": {"locale": str, "fraction": int, "around": list},
    "date": {"locale": str, "formats": list, "pivot": int},
    "currency": {"locale": str, "default": list},
}
_OF_NUMBERS = frozenset("0123456789+-−–—.,' \u00a0\u202f")
"""A text of these alone cannot stand around a number: taken away, it would leave another one."""
_ASIDE = frozenset({"not", "if", "contains", "propertyNames", "contentSchema"})
"""Keywords below which no annotation reaches a value, or only after it was judged."""
_TYPE_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", list: "array"}
_HOLDERS = frozenset({"properties", "patternProperties", "additionalProperties", "items", "prefixItems"})


@dataclass(frozen=True, slots=True)
class Step:
    """One normaliser. `read` gives what a text becomes: a text, a Decimal, or None where it cannot be read."""

    name: str
    read: Callable[[str], str | Decimal | None]
    converts: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """The normalisers of one leaf, in order. Converting ones that follow each other are tried in turn."""

    steps: tuple[Step, ...]

    @property
    def converts(self) -> str:
        """The name of what its converting steps read; empty: it only tidies."""
        return next((step.name for step in self.steps if step.converts), "")

    def run(self, value: JsonValue, types: frozenset[str]) -> tuple[JsonValue, bool]:
        """(what a value becomes under a leaf of these types, whether it was read). What is no text passes."""
        read = not self.converts
        for step in self.steps:
            if not isinstance(value, str):
                break
            if not step.converts:
                value = step.read(value)
            elif not read:
                made = step.read(value)
                stored = _number(made, types) if isinstance(made, Decimal) else made
                value, read = (value, False) if stored is None else (stored, True)
        return value, read or not isinstance(value, str)


@lru_cache(maxsize=1024)
def _chain(text: str) -> Chain:
    spec = json.loads(text)
    if not isinstance(spec, list) or not spec or len(spec) > MAX_STEPS:
        raise ValueError(f"must be a list of 1 to {MAX_STEPS} normalisers")
    chain = Chain(tuple(map(_step, spec)))
    if len({step.name for step in chain.steps if step.converts}) > 1:
        raise ValueError("can convert to one form only: decimal, date or currency")
    return chain


def chain_of(spec: Any) -> Chain:
    """The chain that the value of an `x-normalise` declares.

    Raises:
        ValueError: it is none; the text says why.
    """
    return _chain(json.dumps(spec))


def check_normalisers(body: Mapping[str, Any]) -> None:
    """Refuse an `x-normalise` that cannot be read, or that stands where it has no effect.

    Raises:
        SchemaError: with the code `bad_annotation`.
    """
    pending: list[tuple[str, Any, str]] = [("", body, "")]
    while pending:
        pointer, node, aside = pending.pop()
        if not isinstance(node, Mapping):
            continue
        pending += (
            (pointer + step, child, aside or keyword * (keyword in _ASIDE)) for keyword, step, child in children(node)
        )
        if KEYWORD not in node:
            continue
        try:
            _check_place(node, chain_of(node[KEYWORD]), aside)
        except (ValueError, TypeError) as error:
            raise SchemaError(f"at {pointer or '/'}: {KEYWORD} {error}.", "bad_annotation") from error


def annotates(body: Any) -> bool:
    """Whether any subschema declares normalisers."""
    pending = [body]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping) and KEYWORD in node:
            return True
        pending += (child for _, _, child in children(node))
    return False


def types_of(node: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema names itself, or those of the constants that it lists."""
    named = node.get("type", ())
    if not named:
        constants = [node["const"]] if "const" in node else node.get("enum", ())
        return frozenset(_TYPE_NAMES.get(type(constant), "object") for constant in constants)
    return frozenset([named] if isinstance(named, str) else named)


def _check_place(node: Mapping[str, Any], chain: Chain, aside: str) -> None:
    types = types_of(node) - {"null"}
    if aside:
        raise ValueError(f"has no effect below {aside}")
    if _HOLDERS & node.keys() or (types and types <= {"object", "array"}):
        raise ValueError("belongs on a leaf: on the items of a list, on the members of an object")
    if types and chain.converts in ("date", "currency") and "string" not in types:
        raise ValueError(f"gives a text by {chain.converts}, but the type is {', '.join(sorted(types))}")
    if types and not types & {"string", "number", "integer"}:
        raise ValueError(f"is for texts and numbers, but the type is {', '.join(sorted(types))}")


def _step(item: Any) -> Step:
    if isinstance(item, str) and item in _TIDYING:
        return Step(item, _TIDYING[item])
    if isinstance(item, str) and item in _SHORT:
        name, kind = _SHORT[item]
        return _decimal({}, COMMA if kind == "comma" else POINT) if name == "decimal" else _currency({})
    if not isinstance(item, Mapping) or len(item) != 1:
        known = ", ".join([*_TIDYING, *_SHORT, *(f'{{"{name}": …}}' for name in _OPTIONS)])
        raise ValueError(f"has an unknown normaliser {json.dumps(item)[:60]}. Known are {known}")
    ((name, options),) = item.items()
    if name not in _OPTIONS or not isinstance(options, Mapping):
        raise ValueError(f"has an unknown normaliser {str(name)[:40]!r}, or its options are no object")
    wrong = [key for key, value in options.items() if not _is_option(value, _OPTIONS[name].get(key))]
    if wrong:
        known = ", ".join(f"{option} ({form.__name__})" for option, form in _OPTIONS[name].items())
        raise ValueError(f"has a {name} with a wrong option {str(wrong[0])[:40]!r}. Its options are {known}")
    return {"decimal": _decimal, "date": _date, "currency": _currency}[name](options)


def _is_option(value: Any, form: type | None) -> bool:
    if isinstance(value, int):
        return form is int and not isinstance(value, bool) and value >= 0
    if isinstance(value, str):
        return form is str
    if form is not list:
        return False
    texts = value if isinstance(value, list) else []
    return 0 < len(texts) <= MAX_OPTIONS and all(isinstance(text, str) and text for text in texts)


def _decimal(options: Mapping[str, Any], signs: Any = ()) -> Step:
    if not signs and "locale" not in options:
        raise ValueError("has a decimal without a locale")
    if any(set(mark) <= _OF_NUMBERS for mark in options.get("around", ())):
        raise ValueError("has a text in `around` that is part of numbers: signs and digits are read without it")
    style = NumberStyle(signs or signs_of(options["locale"]), options.get("fraction"), tuple(options.get("around", ())))
    return Step("decimal", partial(read_number, style=style), converts=True)


def _date(options: Mapping[str, Any]) -> Step:
    if "locale" not in options:
        raise ValueError("has a date without a locale")
    pivot = options.get("pivot")
    if pivot is not None and not 1583 <= pivot <= 2100:
        raise ValueError("has a date whose pivot is no year from 1583 to 2100")
    style = date_style(options["locale"], tuple(options.get("formats", ())), pivot)
    return Step("date", partial(read_date, style=style), converts=True)


def _currency(options: Mapping[str, Any]) -> Step:
    default = tuple(options.get("default", ()))
    for code in default:
        if not is_code(code):
            raise ValueError(f"has a default currency {code[:10]!r} that is no ISO 4217 code")
    if "locale" in options:
        locale_of(options["locale"])
    style = CurrencyStyle(options.get("locale", ""), default)
    return Step("currency", partial(read_currency, style=style), converts=True)


def _number(value: Decimal, types: frozenset[str]) -> JsonValue:
    """A decimal in the form of a leaf of these types, exactly; None if it has none.

    A number where numbers are allowed (or no type is named), else its digits as a text. A number that no double shows
    as printed is none.
    """
    if types & {"string", "number", "integer"} == {"string"}:
        return format(value, "f")
    whole = value == value.to_integral_value()
    if whole and (value.as_tuple().exponent == 0 or ("number" not in types and "integer" in types)):
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else None
