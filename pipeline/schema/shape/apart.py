"""Apart: keep objects apart that differ only in the order of their keys.

xgrammar 0.2.8 compiles schemas that are equal as JSON values once, whatever the order of their members: the second of
two objects with the same keys in another order gets the order of the first, and its legal answers are out of reach. A
keyword that xgrammar does not know makes them unequal.
"""

from __future__ import annotations

import json
from typing import Any

from pipeline.schema.fingerprint import canonical
from pipeline.schema.walk import rebuild

MARKER = "keyOrder"


def apart(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a marker on every object whose keys stand in another order than those of an equal one."""
    orders: dict[str, dict[str, int]] = {}

    def mark(_pointer: str, node: Any) -> Any:
        if not isinstance(node, dict) or len(node.get("properties", ())) < 2:
            return node
        known = orders.setdefault(canonical(node), {})
        number = known.setdefault(json.dumps(node), len(known))
        return {**node, MARKER: number} if number else node

    marked: dict[str, Any] = rebuild(schema, mark)
    return marked
