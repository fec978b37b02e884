"""Policies change what they say they change, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from transport_trip import BACKENDS, takes

from pipeline.schema.registry import document_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.policy import NOT_APPLICABLE, Policy
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import transport_of

BOTH = pytest.mark.parametrize("backend", BACKENDS)


def body_of(schema: Any) -> Any:
    return document_schema(schema, "transport@1").body


RECORD = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "object", "properties": {"c": {"enum": ["x", "y"]}}, "required": ["c"]},
        "l": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "integer"},
        "s": {"type": "string", "maxLength": 9},
    },
    "required": ["a", "b", "l"],
}
FULL: dict[str, Any] = {"a": "t", "b": {"c": "x"}, "l": ["u"], "o": 1, "s": "v"}


def reach(policy: Policy | None, backend: str, *records: Any) -> list[bool]:
    body = body_of(RECORD)
    transport = transport_of(body, backend, policy)
    return [takes(transport.text, canonical_text(Source(body), record), backend) for record in records]


@BOTH
def test_without_a_policy_nothing_is_added(backend: str) -> None:
    wider = [{**FULL, "a": None}, {NOT_APPLICABLE: True}, {**FULL, "b": {"c": None}}]
    assert reach(None, backend, FULL, *wider) == [True, False, False, False]
    assert reach(Policy(), backend, FULL, *wider) == [True, False, False, False]
    assert transport_of(body_of(RECORD), backend).narrowed == ()


@BOTH
def test_nullable_is_for_required_leaves_alone(backend: str) -> None:
    policy = Policy(abstain="nullable")
    allowed = [FULL, {**FULL, "a": None}, {**FULL, "b": {"c": None}}]
    refused = [{**FULL, "b": None}, {**FULL, "l": None}, {**FULL, "o": None}, {**FULL, "l": [None]}, None]
    assert reach(policy, backend, *allowed) == [True] * len(allowed)
    assert reach(policy, backend, *refused) == [False] * len(refused)
    plain, wide = transport_of(body_of(RECORD), backend), transport_of(body_of(RECORD), backend, policy)
    assert (wide.left, wide.narrowed) == (plain.left, ())


@BOTH
def test_a_document_may_be_not_applicable_as_a_whole(backend: str) -> None:
    policy = Policy(abstain="document")
    refused = [{NOT_APPLICABLE: False}, {NOT_APPLICABLE: True, "a": "t"}, {}, {**FULL, "a": None}]
    assert reach(policy, backend, FULL, {NOT_APPLICABLE: True}) == [True, True]
    assert reach(policy, backend, *refused) == [False] * len(refused)


@BOTH
def test_narrowing_bounds_what_has_no_bound_and_says_where(backend: str) -> None:
    policy = Policy(max_items=2, max_length=3)
    allowed = [{**FULL, "l": ["abc", "d"]}, {**FULL, "s": "123456789"}]
    refused = [{**FULL, "l": ["a"] * 3}, {**FULL, "a": "abcd"}, {**FULL, "l": ["abcd"]}]
    assert reach(policy, backend, *allowed) == [True] * len(allowed)
    assert reach(policy, backend, *refused) == [False] * len(refused)
    transport = transport_of(body_of(RECORD), backend, policy)
    assert set(transport.narrowed) == {"/properties/a", "/properties/l", "/properties/l/items"}
    assert transport.left == transport_of(body_of(RECORD), backend).left


@BOTH
def test_narrowing_leaves_what_the_schema_demands(backend: str) -> None:
    body = body_of({"type": "array", "items": {"type": "string", "minLength": 4}, "minItems": 3})
    transport = transport_of(body, backend, Policy(max_items=1, max_length=1))
    assert takes(transport.text, '["abcd","abcd","abcd"]', backend)
    assert not takes(transport.text, '["abcd","abcd","abcd","abcd"]', backend)
