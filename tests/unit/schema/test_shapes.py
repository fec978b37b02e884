"""Every rewrite, by table and with the real matchers: what has to get through, what must not, what is left."""

from __future__ import annotations

from typing import Any

import pytest
from shape_cases import EXACT, LEFT
from transport_trip import BACKENDS, takes

from pipeline.schema.registry import document_schema
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import Transport, transport_of

BOTH = pytest.mark.parametrize("backend", BACKENDS)


def body_of(schema: Any) -> Any:
    return document_schema(schema, "shapes@1").body


def left_of(transport: Transport) -> set[str]:
    return {f"{left.pointer}:{left.keyword}" for left in transport.left}


@BOTH
@pytest.mark.parametrize("name", EXACT)
def test_what_a_grammar_can_hold_it_holds_exactly(name: str, backend: str) -> None:
    schema, good, bad = EXACT[name]
    body = body_of(schema)
    source, transport = Source(body), transport_of(body, backend)
    assert [value for value in good if not source.validator.is_valid(value)] == []
    assert [value for value in bad if source.validator.is_valid(value)] == []
    assert left_of(transport) == set()
    assert [value for value in good if not takes(transport.text, canonical_text(source, value), backend)] == []
    assert [value for value in bad if takes(transport.text, canonical_text(source, value), backend)] == []


@BOTH
@pytest.mark.parametrize("name", LEFT)
def test_what_it_cannot_is_left_and_named(name: str, backend: str) -> None:
    schema, sites, value = LEFT[name]
    body = body_of(schema)
    source, transport = Source(body), transport_of(body, backend)
    assert left_of(transport) == sites
    assert all(left.why for left in transport.left)
    if value is not None:
        assert not source.validator.is_valid(value)
        assert takes(transport.text, canonical_text(source, value), backend)
