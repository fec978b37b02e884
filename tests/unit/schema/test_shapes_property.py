"""The two properties of a transport schema, on random schemas over all keywords, with both real matchers.

(a) Every value that the body accepts can be decoded in canonical form. (b) Every violation that can be decoded breaks
a site that was announced. (c) No random answer comes to a dead end.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from shape_schemas import Maker
from transport_trip import Fault, Trip

from pipeline.errors import SchemaError
from pipeline.schema.registry import document_schema

EXAMPLES = 120


def faults_of(rng: random.Random) -> list[Fault]:
    """What is wrong with one random schema: values of its shapes, their mutations, other values, random answers."""
    maker = Maker(rng)
    try:
        body = document_schema(maker.document(), "random@1").body
    except SchemaError:
        return []
    trip = Trip(body)
    refused = list(trip.refusals())
    if refused:
        return refused
    values = list(trip.drawn(rng, 5))
    values += [maker.mutated(value) for value in values] + [maker.value(), maker.value()]
    found = [fault for value in values for fault in trip.faults(value)]
    return found + list(trip.walked(rng.randrange(10**6), 80))


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32))
def test_nothing_is_lost_and_nothing_leaks_unannounced(seed: int) -> None:
    # A seed and not `st.randoms`: one schema takes thousands of draws, too many for Hypothesis to shrink.
    assert faults_of(random.Random(seed)) == []
