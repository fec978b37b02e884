"""Mutate: what to put in place of a good part so that one keyword is just violated, or just not.

`aimed` knows each keyword; `anyhow` does not and tries a little of everything. Neither promises a violation: the
validator judges what comes of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import chain, islice
from typing import Any

from pipeline.schema.probe import mutate_text
from pipeline.schema.probe.numbers import spelled
from pipeline.schema.shape.merge import exact

ONE_OF_EACH: tuple[Any, ...] = (None, True, 7, 1.5, "text", [], {}, "", False, ["a"], {"a": 1}, -1)
MAX_COPIES = 5000
"""Items or keys that a part is extended to."""

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
        yield from chain(_without_keys(part, keys), _renamed(part, keys), _extended_object(part, len(part) + 1))
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


def _missing(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, dict):
        yield from _without_keys(part, [name for name in value if name in part])


def _more_keys(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if not isinstance(part, dict):
        return
    if isinstance(value, Mapping):  # declared, but `false`
        yield from ({**part, name: 0} for name, child in value.items() if child is False)
        yield from ({**part, name: 0} for text in value for name in mutate_text.members(text, 3))
    yield {**part, "extra": 0}
    yield {**part, 'odd "key" \\ 中': None}
    yield from ({**part, f"{key}x": item} for key, item in islice(part.items(), 3))
    yield from _renamed(part, list(part)[:3])
    yield {**part, "": "", "0": {}}


def _fewer_keys(part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, dict):
        keys = [key for key in part if key not in schema.get("required", ())] + list(schema.get("required", ()))
        for count in range(1, len(keys) + 1):
            yield {key: item for key, item in part.items() if key not in keys[:count]}


def _extended_object(part: Any, count: int) -> Iterator[Any]:
    if not isinstance(part, dict) or count > MAX_COPIES:
        return
    fill = next(iter(part.values()), 0)
    for prefix in ("k", "key-", "Key_"):
        yield {**part, **{f"{prefix}{index}": fill for index in range(count - len(part))}}


def _items_below(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, list) and value <= MAX_COPIES:
        yield part[: max(0, int(value) - 1)]
        yield []
        yield from _repeated(part, int(value))


def _items_above(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, list) and value < MAX_COPIES:
        yield from _repeated(part, int(value) + 1)
        yield from _repeated(part, int(value))


def _repeated(part: list[Any], count: int) -> Iterator[Any]:
    """The list cut or filled up to a length, by copies or by different simple items."""
    yield (part * count)[:count] if part else [0] * count
    seeds: tuple[Any, ...] = ("a{}", "{}.5", "{}")
    for seed in seeds:
        made = [seed.format(index + 1) for index in range(count)]
        yield [*part, *(made if seed == "a{}" else map(float if "." in seed else int, made))][:count]


def _twice(part: Any, _value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, list):
        yield from ([*part, part[-1]], [part[0], *part], [part[0]] * len(part)) if part else ()
        yield from ([1, 1], ["a", "a"], [{}, {}], [None, None])


def _contained(part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, list):
        yield from ([], part[:1], part[:-1], part[1:])
        yield from ([other] * max(1, len(part)) for other in ONE_OF_EACH)
        yield from (part * count for count in (2, 3))
        yield from ([item] * (int(schema.get("maxContains", 1)) + 1) for item in part[:3])
        yield from ([*part, other] for other in ONE_OF_EACH)


def _depends(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, dict):
        for name, needed in value.items():
            for absent in needed:
                if absent != name:
                    yield {**{key: item for key, item in part.items() if key != absent}, name: part.get(name, 0)}


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


def _longer(part: Any, _value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    if isinstance(part, list):
        yield from ([*part, other] for other in (0, "a", None))
        yield from (part * 2, [0, 0, 0])


def _without_keys(part: dict[str, Any], keys: list[str]) -> Iterator[Any]:
    yield from ({key: item for key, item in part.items() if key != gone} for gone in keys)


def _renamed(part: dict[str, Any], keys: list[str]) -> Iterator[Any]:
    for old in keys:
        yield {old + "_" if key == old else key: item for key, item in part.items()}


def _more_properties(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    yield from _extended_object(part, int(value) + 1)
    yield from _extended_object(part, int(value))


_AIMS: dict[str, _Aim] = {
    "type": _types,
    "enum": _constants,
    "const": _constant,
    "minimum": _bound(True),
    "exclusiveMinimum": _bound(True),
    "maximum": _bound(False),
    "exclusiveMaximum": _bound(False),
    "multipleOf": _steps,
    "required": _missing,
    "minProperties": _fewer_keys,
    "maxProperties": _more_properties,
    "minItems": _items_below,
    "maxItems": _items_above,
    "uniqueItems": _twice,
    "contains": _contained,
    "minContains": _contained,
    "maxContains": _contained,
    "dependentRequired": _depends,
    "not": _refused,
    "anyOf": _unions,
    "oneOf": _unions,
    "then": _unions,
    "else": _unions,
    "allOf": _unions,
    **dict.fromkeys(("items", "unevaluatedItems", "prefixItems"), _longer),
    **dict.fromkeys(
        (
            "additionalProperties", "unevaluatedProperties", "properties", "patternProperties", "propertyNames",
            "dependentSchemas",
        ),
        _more_keys,
    ),
}
