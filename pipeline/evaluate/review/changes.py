"""Changes: where two JSON values differ, and what counts as equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.walk import escape


def changes(before: JsonValue, after: JsonValue, pointer: str = "") -> Iterator[dict[str, Any]]:
    """Each place that differs, outermost first: `pointer`, `was`, `is`; a side that has nothing there has no member.

    1 equals 1.0, but not true. Values are at most as deep as JSON is read here.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = f"{pointer}/{escape(name)}"
            if name in before and name in after:
                yield from changes(before[name], after[name], here)
            else:
                side = {"was": before[name]} if name in before else {"is": after[name]}
                yield {"pointer": here, **side}
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            here = f"{pointer}/{index}"
            if index < min(len(before), len(after)):
                yield from changes(before[index], after[index], here)
            else:
                side = {"was": before[index]} if index < len(before) else {"is": after[index]}
                yield {"pointer": here, **side}
    elif isinstance(before, bool) != isinstance(after, bool) or before != after:
        yield {"pointer": pointer, "was": before, "is": after}


def equal(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same, as `changes` sees it."""
    return next(changes(one, other), None) is None
