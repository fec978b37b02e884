"""Begun: the record that a person starts from: the run's, or what there is in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.records import JsonValue
from pipeline.schema.alongside import accepts_of, parts
from pipeline.schema.validator import PatternTimeout
from pipeline.schema.walk import unescape
from pipeline.steps.parse import Unparsable, loads


def begun(row: Mapping[str, Any], body: Mapping[str, Any] | None) -> JsonValue:
    """The record of a row; of a rejected one its last answer if that is a JSON object, else an object with a null for
    each property of its schema. `body` is None where the schema is not there any more."""
    if row["status"] != "rejected":
        return row["record"] if body is None else without_absent(row["record"], body)
    for attempt in reversed(row["attempts"]):
        try:
            value = loads(attempt["raw_text"])
        except Unparsable:
            continue
        if isinstance(value, dict):
            return value
    names = (body or {}).get("properties", {})
    return dict.fromkeys(names)


def without_absent(record: JsonValue, body: Mapping[str, Any]) -> JsonValue:
    """A copy of a record as it was before it was stored: columns have a null for an optional member that was not
    there. A null that the schema takes stays, as does one in place of a member that it requires."""
    accepts = accepts_of(body)
    try:
        gone = [
            part.pointer
            for part in parts(body, record, accepts)
            if part.pointer
            and part.value is None
            and not part.required
            and not all(accepts(node, None) for node in part.nodes)
        ]
    except PatternTimeout:
        return record
    return _without(record, [[unescape(token) for token in pointer.split("/")[1:]] for pointer in gone])


def _without(value: JsonValue, gone: list[list[str]]) -> JsonValue:
    """A copy without the members at these places; no item of a list goes."""
    below: dict[str, list[list[str]]] = {}
    for first, *rest in gone:
        below.setdefault(first, []).append(rest)
    if isinstance(value, dict):
        kept = {name: child for name, child in value.items() if [] not in below.get(name, [])}
        return {name: _without(child, below.get(name, [])) for name, child in kept.items()}
    if isinstance(value, list):
        return [_without(child, below.get(str(index), [])) for index, child in enumerate(value)]
    return value
