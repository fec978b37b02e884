"""JSON from files and from memory, bounded: what is too large, too deep or not JSON goes no further."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaError

MAX_SCHEMA_BYTES = 1 << 20
MAX_DEPTH = 64


def read_json(path: Path) -> Any:
    """The JSON value of a file, with every key of an object at most once.

    Raises:
        SchemaError: `too_large`, or `not_json`.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        raise SchemaError(f"{path} cannot be read: {error.strerror or error}", "unknown_schema") from error
    if len(raw) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"{path} has {path.stat().st_size} bytes; at most {MAX_SCHEMA_BYTES} are read.", "too_large")
    try:
        return json.loads(raw, object_pairs_hook=unique_keys)
    except RecursionError as error:
        raise SchemaError(f"{path} nests too deeply to be read.", "too_deep") from error
    except ValueError as error:
        raise SchemaError(f"{path} is not JSON: {error}", "not_json") from error


def exchanged(value: Any) -> Any:
    """A copy of a value as another program would read it from JSON text.

    Raises:
        SchemaError: `too_large`, `too_deep`, or `not_json`: other types, NaN, half surrogate pairs, keys that are no
            strings.
    """
    _bound(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"holds what JSON cannot exchange: {error}", "not_json") from error


def size(value: Any) -> int:
    """Bytes of a JSON value as compact UTF-8 text."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _bound(value: Any) -> None:
    """Level by level, so that neither a loop nor a part that many others share can keep it busy."""
    level, depth, left = [value], 0, MAX_SCHEMA_BYTES
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise SchemaError(f"nests deeper than {MAX_DEPTH} levels.", "too_deep")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    raise SchemaError("holds what JSON cannot exchange: a key that is no string", "not_json")
                left -= sum(map(len, item))
                below += item.values()
            elif isinstance(item, list | tuple):
                below += item
            left -= len(item) if isinstance(item, str) else 1
            if len(below) > left:
                raise SchemaError(f"holds more than {MAX_SCHEMA_BYTES} bytes.", "too_large")
        level = below


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: an object whose keys occur once.

    Raises:
        ValueError: one occurs more than once.
    """
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated!r} occurs more than once in one object")
    return value
