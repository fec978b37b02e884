"""The pilot: the same random rows everywhere, and a gate that opens whatever becomes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.supervise.pilot import PILOT_PATIENCE, Gate, choose


@dataclass(frozen=True)
class Slice:
    """What a pilot sees of a unit."""

    id: str
    rows: int
    schema: str


def units(sizes: dict[str, list[int]]) -> list[Any]:
    return [Slice(f"{schema}{n}", rows, schema) for schema, group in sizes.items() for n, rows in enumerate(group)]


def test_each_schema_gets_its_number_of_rows_from_all_over_its_units() -> None:
    given = units({"a": [30] * 40, "b": [1000], "": [500], "small": [30, 9], "just": [7, 33]})
    chosen = choose(given, 10, seed=0)
    rows = Counter[str]()
    for unit, picked in chosen:
        rows[unit.schema] += len(picked)
        assert list(picked) == sorted(set(picked))
        assert all(0 <= row < unit.rows for row in picked)
    assert rows == {"a": 10, "b": 10, "just": 10}
    assert len({unit.id for unit, _ in chosen}) == len(chosen), "a unit is read once"
    spread = [int(unit.id[1:]) for unit, _ in chosen if unit.schema == "a"]
    assert min(spread) < 10 and max(spread) >= 30


def test_every_row_can_be_picked() -> None:
    given = units({"a": [3, 1, 4]})
    picked = {(unit.id, row) for seed in range(200) for unit, rows in choose(given, 2, seed) for row in rows}
    assert len(picked) == 8


def test_a_seed_means_the_same_rows_everywhere_and_for_each_schema_alone() -> None:
    alone = choose(units({"a": [100] * 3}), 4, seed=7)
    assert alone == [pilot for pilot in choose(units({"b": [64], "a": [100] * 3}), 4, seed=7) if pilot[0].schema == "a"]
    assert [(unit.id, rows) for unit, rows in alone] == [("a0", (49,)), ("a1", (1, 64, 81))]
    assert alone != choose(units({"a": [100] * 3}), 4, seed=8)


def test_no_pilot_where_none_is_wanted() -> None:
    assert choose(units({"a": [100]}), 0, seed=0) == []


def test_the_gate_opens_when_all_are_reported() -> None:
    gate = Gate({"a": 3, "b": 1}, now=0)
    assert gate.waits("a", 1)
    assert not gate.waits("none", 1)
    assert gate.report("a", 2, 1) == 0
    assert gate.waits("a", 2)
    assert gate.report("a", 2, 2) == 3, "one that died and went again is reported twice"
    assert not gate.waits("a", 3)
    assert gate.waits("b", 3)
    assert gate.report("a", 1, 3) == 0


def test_the_gate_opens_when_nothing_is_heard_of_any_pilot() -> None:
    gate = Gate({"a": 3, "b": 1}, now=0)
    gate.report("b", 1, 100)
    assert gate.waits("a", 99 + PILOT_PATIENCE)
    assert not gate.waits("a", 100 + PILOT_PATIENCE)
    gate.stir(1000)
    assert gate.waits("a", 1001)
