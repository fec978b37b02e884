"""What the few-shot examples of a schema say about its properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pipeline.schema.lint.policy import MAX_VALUES_CHECKED
from pipeline.schema.lint.view import Scope
from pipeline.schema.walk import escape


def samples(scope: Scope, records: Iterable[Any]) -> dict[str, list[Any]]:
    """Values of example records by the pointer of the schema that describes them, as far as it is plain to see."""
    held: dict[str, list[Any]] = defaultdict(list)
    pending = [("", record) for record in records]
    for _ in range(MAX_VALUES_CHECKED):
        if not pending:
            break
        pointer, value = pending.pop(0)
        site = scope.by_pointer.get(pointer)
        if site is None:
            continue
        pointer = scope.described(site)
        held[pointer].append(value)
        if isinstance(value, dict):
            pending += [(f"{pointer}/properties/{escape(key)}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [(f"{pointer}/items", inner) for inner in value[:MAX_VALUES_CHECKED]]
    return held
