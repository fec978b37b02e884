"""Which schemas have a label of their own: few, chosen once for a run, so that no counter ever goes backwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MOST = 50
"""Schemas with a label of their own, those with the most documents."""

OTHER = "other"
"""All further schemas."""
UNKNOWN = "unknown"
"""Documents that name no schema that can be loaded. What they name is a text out of the input, and no label."""
NONE = "none"
"""Documents that name no schema."""
INLINE = "inline"
"""Schemas that came with a request."""

TOGETHER = frozenset({OTHER, UNKNOWN, NONE, INLINE})
"""Labels of many schemas. No schema is called so: names have a version."""


class SchemaLabels:
    """`documents` counts the input's documents by schema (0 where nobody knows), `known` are the schemas that could be
    loaded."""

    def __init__(self, documents: Mapping[str, int], known: Collection[str], most: int = MOST) -> None:
        ranked = sorted((name for name in documents if name in known), key=lambda name: (-documents[name], name))
        self._known = frozenset(ranked)
        self.own = tuple(ranked[:most])
        """The schemas that have a label of their own."""
        self._own = frozenset(self.own)

    @classmethod
    def of_run(cls, documents: Mapping[str, int], digests: Mapping[str, str]) -> SchemaLabels:
        """Those of an input; a schema without a digest could not be loaded."""
        return cls(documents, {name for name, digest in digests.items() if digest})

    def of(self, schema: str) -> str:
        """The label of a schema: its name, or one of `TOGETHER`."""
        if schema in self._own:
            return schema
        if not schema:
            return NONE
        return OTHER if schema in self._known else UNKNOWN
