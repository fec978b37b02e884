"""Objects and arrays near the border of a keyword: keys and items more, less, twice, renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pipeline.schema.probe import mutate_text

ONE_OF_EACH: tuple[Any, ...] = (None, True, 7, 1.5, "text", [], {}, "", False, ["a"], {"a": 1}, -1)
MAX_COPIES = 5000
"""Items or keys that a part is extended to."""


def missing(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Objects without one of the keys of `required`."""
    if isinstance(part, dict):
        yield from without_keys(part, [name for name in value if name in part])


def more_keys(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Objects with undeclared, odd and renamed keys."""
    if not isinstance(part, dict):
        return
    if isinstance(value, Mapping):  # declared, but `false`
        yield from ({**part, name: 0} for name, child in value.items() if child is False)
        yield from ({**part, name: 0} for text in value for name in mutate_text.members(text, 3))
    yield {**part, "extra": 0}
    yield {**part, 'odd "key" \\ 中': None}
    yield from ({**part, f"{key}x": item} for key, item in islice(part.items(), 3))
    yield from renamed(part, list(part)[:3])
    yield {**part, "": "", "0": {}}


def fewer_keys(part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Objects with one key less, two less, and so on, optional ones first."""
    if isinstance(part, dict):
        keys = [key for key in part if key not in schema.get("required", ())] + list(schema.get("required", ()))
        for count in range(1, len(keys) + 1):
            yield {key: item for key, item in part.items() if key not in keys[:count]}


def extended_object(part: Any, count: int) -> Iterator[Any]:
    """Objects filled up to a number of keys, under several kinds of names."""
    if not isinstance(part, dict) or count > MAX_COPIES:
        return
    fill = next(iter(part.values()), 0)
    for prefix in ("k", "key-", "Key_"):
        yield {**part, **{f"{prefix}{index}": fill for index in range(count - len(part))}}


def items_below(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Lists just shorter than a minimum, and just long enough."""
    if isinstance(part, list) and value <= MAX_COPIES:
        yield part[: max(0, int(value) - 1)]
        yield []
        yield from repeated(part, int(value))


def items_above(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Lists just longer than a maximum, and just short enough."""
    if isinstance(part, list) and value < MAX_COPIES:
        yield from repeated(part, int(value) + 1)
        yield from repeated(part, int(value))


def repeated(part: list[Any], count: int) -> Iterator[Any]:
    """The list cut or filled up to a length, by copies or by different simple items."""
    yield (part * count)[:count] if part else [0] * count
    seeds: tuple[Any, ...] = ("a{}", "{}.5", "{}")
    for seed in seeds:
        made = [seed.format(index + 1) for index in range(count)]
        yield [*part, *(made if seed == "a{}" else map(float if "." in seed else int, made))][:count]


def twice(part: Any, _value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Lists that hold an item twice."""
    if isinstance(part, list):
        yield from ([*part, part[-1]], [part[0], *part], [part[0]] * len(part)) if part else ()
        yield from ([1, 1], ["a", "a"], [{}, {}], [None, None])


def contained(part: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Lists with fewer, more and other items of every kind."""
    if isinstance(part, list):
        yield from ([], part[:1], part[:-1], part[1:])
        yield from ([other] * max(1, len(part)) for other in ONE_OF_EACH)
        yield from (part * count for count in (2, 3))
        yield from ([item] * (int(schema.get("maxContains", 1)) + 1) for item in part[:3])
        yield from ([*part, other] for other in ONE_OF_EACH)


def depends(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Objects that have a key but not one that it depends on."""
    if isinstance(part, dict):
        for name, needed in value.items():
            for absent in needed:
                if absent != name:
                    yield {**{key: item for key, item in part.items() if key != absent}, name: part.get(name, 0)}


def longer(part: Any, _value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Lists with items beyond those declared."""
    if isinstance(part, list):
        yield from ([*part, other] for other in (0, "a", None))
        yield from (part * 2, [0, 0, 0])


def without_keys(part: dict[str, Any], keys: list[str]) -> Iterator[Any]:
    """Objects without each of these keys in turn."""
    yield from ({key: item for key, item in part.items() if key != gone} for gone in keys)


def renamed(part: dict[str, Any], keys: list[str]) -> Iterator[Any]:
    """Objects with each of these keys under another name in turn."""
    for old in keys:
        yield {old + "_" if key == old else key: item for key, item in part.items()}


def more_properties(part: Any, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Objects just larger than a maximum, and just small enough."""
    yield from extended_object(part, int(value) + 1)
    yield from extended_object(part, int(value))
