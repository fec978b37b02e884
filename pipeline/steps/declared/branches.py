"""Which branches of a schema a value belongs to, also where it lacks values that the branch requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

from pipeline.records import JsonValue
from pipeline.schema.alongside import Accepts
from pipeline.schema.validator import validator_of

_LACKS = frozenset({"required", "dependentRequired", "minItems", "minProperties", "contains"})


def accepts_partly(root: Mapping[str, Any]) -> Accepts:
    """Whether a value satisfies a subschema but for what it lacks: absent members and items, nulls for values.

    For records that were salvaged, or in which the model abstained.
    """
    validator: Any = validator_of(root)
    return lambda schema, value: _only_lacks(validator.evolve(schema=schema), value)


def _only_lacks(validator: Any, value: JsonValue) -> bool:
    return all(map(_is_lack, validator.iter_errors(value)))


def _is_lack(error: ValidationError) -> bool:
    if error.validator in _LACKS:
        return True
    if error.instance is None:  # the value itself being null tells its branch; so does a constant, which is never null
        return bool(error.absolute_path) and error.validator != "const"
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0] if inner.relative_schema_path else "", []).append(inner)
    return any(all(map(_is_lack, inside)) for inside in branches.values())
