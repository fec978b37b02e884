"""Random answers by the sampler over real schemas: each that is not cut ends, and breaks only what was announced."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from transport_trip import BACKENDS, Trip, takes

from pipeline.errors import SchemaError
from pipeline.schema.probe.draw import Drawer, covered_by
from pipeline.schema.registry import available, document_schema, load_schema
from pipeline.schema.shape.canonical import canonical_text

SCHEMAS = Path(__file__).parents[3] / "schemas"
BOTH = pytest.mark.parametrize("backend", BACKENDS)


@pytest.mark.parametrize("name", available(SCHEMAS))
def test_walks_over_our_own_schemas_end_and_keep_to_the_plan(name: str) -> None:
    trip = Trip(load_schema(SCHEMAS, name).body)
    assert list(trip.refusals()) == []
    assert [fault for seed in range(8) for fault in trip.walked(seed, 400)] == []


@BOTH
@pytest.mark.parametrize("name", available(SCHEMAS))
def test_every_branch_and_member_of_our_own_schemas_can_be_decoded(name: str, backend: str) -> None:
    """Steered: records that together show every option, key, count and enum member."""
    trip = Trip(load_schema(SCHEMAS, name).body, (backend,))
    drawer = Drawer(trip.shapes, random.Random(1))
    values = [drawn.value for drawn in covered_by(drawer, 400)]
    assert set(drawer.atlas.marks()) <= drawer.seen
    for value in values:
        assert takes(trip.transports[backend].text, canonical_text(trip.source, value), backend)


def test_walks_over_handed_schemas(shared: Path) -> None:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").split("\n")
    rows: list[Any] = [json.loads(line) for line in lines if line]
    small = [row for row in rows if len(json.dumps(row["schema"])) < 3000][:40]
    walked = 0
    for number, row in enumerate(small):
        try:
            trip = Trip(document_schema(row["schema"], "handed@1").body)
        except SchemaError:
            continue
        assert list(trip.refusals()) == []
        assert list(trip.walked(number, 120)) == []
        walked += 1
    assert walked > 20
