"""Mutate: what to put in place of a good part so that one keyword is just violated, or just not.

`aimed` knows each keyword; `anyhow` does not and tries a little of everything. Neither promises a violation: the
validator judges what comes of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

from pipeline.schema.probe import mutate_members as members
from pipeline.schema.probe import mutate_text
from pipeline.schema.probe.mutate_members import ONE_OF_EACH
from pipeline.schema.probe.numbers import spelled
from pipeline.schema.shape.merge import exact

_Aim = Callable[[Any, Any, Mapping[str, Any]], Iterator[Any]]


def aimed(keyword: str, schema: Mapping[str, Any], part: Any) -> Iterator[Any]:
    """Values for the place of `part` that are near the border of a keyword of the schema that judges it."""
    value = schema[keyword]
    aim = _AIMS.get(keyword)
    if aim is not None:
        yield from aim(part, value, schema)
    elif keyword in mutate_text.KEYWORDS and isinstance(part, str):
        yield from mutate_text.aimed(keyword, schema, part)


def anyhow(part: Any, rng: random.Random) -> Iterator[Any]:
    """Values for the place of `part`: other types, other sizes, other members, in random order where there are many."""
    if isinstance(part, dict):
        keys = list(part)
        rng.shuffle(keys)
        yield from chain(
            members.without_keys(part, keys), members.renamed(part, keys), members.extended_object(part, len(part) + 1)
        )
        yield from ({**part, key: other} for key in keys[:4] for other in ONE_OF_EACH[:6])
    elif isinstance(part, list):
        yield from (part[:-1], part[1:], [*part, *part[-1:]], [*part, None], part[::-1], [*part, {}])
    elif isinstance(part, str):
        yield from mutate_text.altered(part)
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield from (part + 1, part - 1, -part, part * 10, part + 0.5, 0)
    yield from ONE_OF_EACH


def _types(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if value == "integer" and isinstance(part, int | float):
        yield part + 0.5
    if value == "string" and isinstance(part, int | float | None):
        yield str(part)
    yield from ONE_OF_EACH


def _constants(_part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    members = value if isinstance(value, list) else [value]
    for member in (*members[:2], *members[-1:]):
        if isinstance(member, str):
            yield from (f"{member}x", member.swapcase(), member[:-1], f" {member}", f"{member}\n")
        elif isinstance(member, int | float) and not isinstance(member, bool):
            yield from (member + 1, -member, member + 0.5, str(member))
        elif isinstance(member, list):
            yield from ([*member, 0], member[:-1])
        elif isinstance(member, dict):
            yield from ({**member, "extra": 0}, {})
    yield from ONE_OF_EACH


def _constant(part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    return _constants(part, [value], schema)


def _bound(below: bool) -> _Aim:
    def aim(_part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        bound, sign = exact(value), -1 if below else 1
        step = exact(schema["multipleOf"]) if schema.get("multipleOf") else Fraction(1)
        for distance in (0, step, Fraction(1, 2), Fraction(1, 1000), 10 * step, 1000):
            for side in (sign, -sign):
                number = spelled(bound + side * distance)
                if number is not None:
                    yield number

    return aim


def _steps(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    step = exact(value)
    start = exact(part) if isinstance(part, int | float) and not isinstance(part, bool) else Fraction(0)
    for number in (start + step / 2, start + 1, start + step / 10, start - step / 10, start + step, start - step):
        shown = spelled(number)
        if shown is not None:
            yield shown


def _refused(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """For `not`: what the inner schema seems to ask for."""
    if isinstance(value, Mapping):
        yield from value.get("enum", ())
        yield from (value["const"],) if "const" in value else ()
        if isinstance(part, dict):
            names = [*value.get("required", ()), *value.get("properties", ())]
            yield {**dict.fromkeys(names, 0), **part}
            yield {**dict.fromkeys(names, ""), **part}
        for inner in (*value.get("anyOf", ()), *value.get("oneOf", ()), *value.get("allOf", ())):
            yield from _refused(part, inner, _schema)
        yield from mutate_text.members(value.get("pattern", ""), 3)
    yield from anyhow(part, random.Random(0))


def _unions(part: Any, _value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from ONE_OF_EACH
    yield from anyhow(part, random.Random(0))


_AIMS: dict[str, _Aim] = {
    "type": _types,
    "enum": _constants,
    "const": _constant,
    "minimum": _bound(True),
    "exclusiveMinimum": _bound(True),
    "maximum": _bound(False),
    "exclusiveMaximum": _bound(False),
    "multipleOf": _steps,
    "required": members.missing,
    "minProperties": members.fewer_keys,
    "maxProperties": members.more_properties,
    "minItems": members.items_below,
    "maxItems": members.items_above,
    "uniqueItems": members.twice,
    "contains": members.contained,
    "minContains": members.contained,
    "maxContains": members.contained,
    "dependentRequired": members.depends,
    "not": _refused,
    "anyOf": _unions,
    "oneOf": _unions,
    "then": _unions,
    "else": _unions,
    "allOf": _unions,
    **dict.fromkeys(("items", "unevaluatedItems", "prefixItems"), members.longer),
    **dict.fromkeys(
        (
            "additionalProperties",
            "unevaluatedProperties",
            "properties",
            "patternProperties",
            "propertyNames",
            "dependentSchemas",
        ),
        members.more_keys,
    ),
}
