"""The schema as the engine gets it: the source without what a grammar has no use for.

Annotations and extension keywords are dropped, so that two schemas that differ only in prose share one grammar, and
so that nothing unknown reaches a back end. Nothing here changes which values are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.schema.walk import is_assertion, rebuild


def transport_schema(body: Mapping[str, Any]) -> Any:
    """A copy of a loaded schema, in its own key order, without annotations and `x-` keywords."""
    return rebuild(body, _strip)


def _strip(_pointer: str, schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if is_assertion(key)}
