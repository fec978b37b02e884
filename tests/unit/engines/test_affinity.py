"""Which replica a request goes to, and what a request is known by."""

from __future__ import annotations

from collections import Counter

from pipeline.engines.affinity import Affinity
from pipeline.engines.replica import request_key
from pipeline.records import Prompt, Sampling


def test_each_schema_has_its_engine_as_long_as_it_has_room() -> None:
    affinity = Affinity(most=64)
    schemas = [f"schema-{n}@1" for n in range(200)]
    idle = dict.fromkeys("abcd", 10)
    chosen = {schema: affinity.choose(schema, "", idle) for schema in schemas}
    assert {affinity.choose(schema, "", idle) for schema in schemas for _ in range(2)} == set("abcd")
    assert min(Counter(chosen.values()).values()) > 25  # of 50 that are a fair share
    # One leaves: only its own schemas move.
    without = {name: load for name, load in idle.items() if name != "d"}
    assert all(affinity.choose(schema, "", without) == name for schema, name in chosen.items() if name != "d")
    # One schema alone: nobody has more than a quarter above the mean.
    loads = dict.fromkeys("abcd", 0)
    for _ in range(80):
        loads[affinity.choose("schema@1", "", loads)] += 1
    assert sorted(loads.values()) == [5, 25, 25, 25]


def test_keys_tell_requests_apart_and_nothing_else() -> None:
    prompt = Prompt("s", "u")
    same = request_key(prompt, "p", Sampling(10, 0.5, 3))
    assert same == request_key(Prompt("s", "u"), "p", Sampling(10, 0.5, 3))
    assert same.startswith("r:")
    others = [
        request_key(Prompt("s", "v"), "p", Sampling(10, 0.5, 3)),
        request_key(Prompt("t", "u"), "p", Sampling(10, 0.5, 3)),
        request_key(prompt, "q", Sampling(10, 0.5, 3)),
        request_key(prompt, "p", Sampling(11, 0.5, 3)),
        request_key(prompt, "p", Sampling(10, 0.6, 3)),
        request_key(prompt, "p", Sampling(10, 0.5, 4)),
        request_key(prompt, "p", Sampling(10, 0.5, 3, engine="large")),
    ]
    assert len({same, *others}) == 8
