"""Fingerprints of subschemas: equal texts for subschemas that differ in prose at most. Linear in the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.schema.drift.values import key_of
from pipeline.schema.fingerprint import digest
from pipeline.schema.walk import LISTS, MAPS, SINGLES, is_assertion


class Prints:
    """Fingerprints, each made once. The subschemas must outlive this: they are known by identity."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def of(self, schema: Any) -> str:
        """The fingerprint of a subschema without annotations and extensions; references are taken as written."""
        if not isinstance(schema, Mapping):
            return str(schema)
        if id(schema) not in self._known:
            self._known[id(schema)] = digest({key: self._part(key, schema[key]) for key in schema if is_assertion(key)})
        return self._known[id(schema)]

    def _part(self, keyword: str, value: Any) -> Any:
        if keyword in MAPS and isinstance(value, Mapping):
            return {key: self.of(child) for key, child in value.items()}
        if keyword in LISTS and isinstance(value, list):
            return [self.of(child) for child in value]
        return self.of(value) if keyword in SINGLES else key_of(value)
