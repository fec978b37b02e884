"""The parts of `bench.grouping` that its numbers rest on."""

from __future__ import annotations

from typing import Any

from bench.grouping import compared
from bench.grouping_parts import PrefixCache, documents, plans


def asked(cache: PrefixCache, *schemas: str, rest: int = 10) -> list[int]:
    """Requests one after the other: what each finds in the cache."""
    found = []
    for number, schema in enumerate(schemas):
        found.append(cache.begin(schema, 100, rest))
        cache.end(schema, f"{schema}/{number}", rest)
    return found


def test_a_prefix_is_found_from_the_second_request_on() -> None:
    assert asked(PrefixCache(None), "a", "a", "b", "a") == [0, 100, 0, 100]


def test_a_small_cache_forgets_schemas_that_take_turns_but_not_one_that_stays() -> None:
    # Two prefixes of 100 and a little do not fit beside each other.
    assert asked(PrefixCache(150), "a", "b", "a", "b") == [0, 0, 0, 0]
    assert asked(PrefixCache(150), "a", "a", "b", "b") == [0, 100, 0, 100]
    assert asked(PrefixCache(250), "a", "b", "a", "b") == [0, 0, 100, 100]


def test_what_old_documents_left_gives_way_before_prefixes_in_use() -> None:
    assert asked(PrefixCache(150), *"aaaaaaaaaa", rest=20) == [0, *[100] * 9]


def test_what_runs_is_not_forgotten() -> None:
    cache = PrefixCache(150)
    assert cache.begin("a", 100, 10) == 0
    assert cache.begin("b", 100, 10) == 0
    assert cache.begin("a", 100, 10) == 100


def test_both_orders_ask_the_same_under_grammars_of_their_own() -> None:
    one, other = (documents(plans(4, mark), 12) for mark in ("g", "s"))
    assert [plan.name.split("-")[1] for _, plan in one] == [f"{number:02d}" for number in range(4) for _ in range(3)]
    assert [prompt.user.replace("-g@", "-s@").splitlines()[1] for prompt, _ in one] == [
        prompt.user.splitlines()[1] for prompt, _ in other
    ]
    assert not {plan.transport for _, plan in one} & {plan.transport for _, plan in other}
    assert len({prompt.user for prompt, _ in one}) == 12


def test_rounds_are_put_together() -> None:
    def run(order: str, rate: float) -> dict[str, Any]:
        shares = {"None": 0.5, "32768": 0.4, "16384": 0.3}
        named = {"schemas": 8, "level": "low", "order": order, "docs_per_second": rate, "compiles": 8}
        return {**named, "cached_share": 0.5, "cached_share_modelled": shares}

    [row] = compared([run("grouped", 10.0), run("shuffled", 4.0), run("grouped", 20.0), run("shuffled", 6.0)])
    assert row["docs_per_second"] == {"grouped": 15.0, "shuffled": 5.0}
    assert row["cached_share_16384"] == {"grouped": 0.3, "shuffled": 0.3}
