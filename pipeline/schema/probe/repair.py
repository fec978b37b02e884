"""Repair: what shapes leave to the validator and a drawn value can be given by a simple change.

Duplicates are dropped where items must be unique, keys that nobody declares are added where they are required, and an
array gets an item that it must contain where a constant tells which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError

from pipeline.schema.probe.spots import Spot, get, put

MAX_DEPTH = 4
"""Unions inside each other that are looked into."""


def repaired(value: Any, errors: Sequence[ValidationError]) -> Any:
    """The value with all errors that can be repaired; None if there are none."""
    changed, anything = value, False
    for error in errors:
        after = _without(changed, error, 0)
        if after is not None:
            changed, anything = after, True
    return changed if anything else None


def _without(value: Any, error: ValidationError, depth: int) -> Any:
    spot = Spot(tuple(error.absolute_path))
    if error.validator in ("anyOf", "oneOf") and error.context and depth < MAX_DEPTH:
        return _with_a_branch(value, error.context, depth + 1)
    part = _found(value, spot)
    if error.validator == "uniqueItems" and isinstance(part, list):
        kept: list[Any] = []
        for item in part:
            if not any(same(item, other) for other in kept):
                kept.append(item)
        return put(value, spot, kept)
    if error.validator == "required" and isinstance(part, dict):
        needed: Any = error.validator_value
        missing = [name for name in needed if name not in part]
        return put(value, spot, {**part, **dict.fromkeys(missing, 0)}) if missing else None
    if error.validator in ("contains", "minContains") and isinstance(part, list):
        schema: Any = error.schema
        wanted = _constant(schema["contains"])
        return None if wanted is None else put(value, spot, [*part, wanted[0]])
    return None


def _constant(schema: Any) -> list[Any] | None:
    """A value that a schema asks for by name, alone in a list."""
    if not isinstance(schema, dict):
        return None
    return [schema["const"]] if "const" in schema else schema.get("enum") or None


def _with_a_branch(value: Any, context: Iterable[ValidationError], depth: int) -> Any:
    """The value changed so that the first branch of which every error can be repaired has none."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in context:
        if inner.relative_schema_path:  # jsonschema does not say which branch was `false`
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    for errors in branches.values():
        changed = value
        for error in errors:
            changed = None if changed is None else _without(changed, error, depth)
        if changed is not None:
            return changed
    return None


def _found(value: Any, spot: Spot) -> Any:
    try:
        return get(value, spot)
    except (KeyError, IndexError, TypeError):  # an earlier repair took it away
        return None


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike, type and all."""
    return type(one) is type(other) and bool(one == other)
