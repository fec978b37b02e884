"""What a rule reads: the pointers into `self` that its text names."""

from __future__ import annotations

from pipeline.schema.cel.syntax import Index, Literal, Name, Node, Select, parts_of
from pipeline.schema.walk import escape


def reads(tree: Node) -> frozenset[str]:
    """JSON pointers from `self`, each covering what lies below it.

    Where a rule goes on from a value by other means than names (items, functions), the pointer is that of the value.
    """
    path = _path(tree)
    if path is not None:
        return frozenset({path})
    return frozenset().union(*map(reads, parts_of(tree)))


def _path(node: Node) -> str | None:
    if isinstance(node, Name):
        return "" if node.name == "self" else None
    if isinstance(node, Select):
        base = _path(node.base)
        return None if base is None else f"{base}/{escape(node.field)}"
    if isinstance(node, Index) and isinstance(node.key, Literal) and isinstance(node.key.value, str):
        base = _path(node.base)
        return None if base is None else f"{base}/{escape(node.key.value)}"
    return None
