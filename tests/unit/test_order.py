"""Other orders of choices: the schema means the same, and what moves is held against what moves by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_runs import commit
from support import Answers, completion

from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.differential_shown import order_section
from pipeline.evaluate.order import ordered, reordered, write_reordered
from pipeline.evaluate.sheet import Sheet, rendered
from pipeline.schema.plan import build_plan
from pipeline.schema.registry import load_schema
from pipeline.schema.walk import descend
from pipeline.steps.prompt import system_prompt

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def enums(schema: Any) -> dict[str, list[Any]]:
    return {pointer: node["enum"] for pointer, node in descend(schema) if isinstance(node, dict) and "enum" in node}


def test_members_stay_and_their_order_changes_the_same_every_time() -> None:
    schema = {
        "properties": {
            "enum": {"enum": ["a", "b"]},  # a member of this name is no list of choices
            "kind": {"enum": [1, True, None, "1", {"enum": ["x", "y"]}]},
            "one": {"enum": ["only"]},
        },
        "examples": [{"enum": ["a", "b"]}],
    }
    found, changed = reordered(schema, 0)
    assert changed == 2 and list(found["properties"]) == ["enum", "kind", "one"]
    before, after = enums(schema), enums(found)
    for pointer, members in before.items():
        assert sorted(map(json.dumps, members)) == sorted(map(json.dumps, after[pointer]))
    assert after["/properties/enum"] == ["b", "a"]
    assert json.dumps(after["/properties/kind"]) != json.dumps(before["/properties/kind"])
    assert found["examples"] == schema["examples"]
    assert reordered(schema, 0)[0] == found
    assert len({json.dumps(reordered(schema, seed)[0]) for seed in range(20)}) > 10


def test_engine_and_prompt_get_the_other_order(tmp_path: Path) -> None:
    names = ["receipt@1", "advisory@1"]
    assert write_reordered(str(SCHEMAS), names, 3, tmp_path) == 3
    for name in names:
        plans = []
        for place in (SCHEMAS, tmp_path):
            schema = load_schema(place, name)
            plans.append(build_plan(schema, system_prompt(schema), backend="xgrammar", compact_json=True))
        one, other = plans
        assert one.schema_digest != other.schema_digest and one.grammar_digest != other.grammar_digest
        assert sorted(one.prefix) == sorted(other.prefix) and one.prefix != other.prefix
        mine, theirs = (list(enums(json.loads(plan.transport)).values()) for plan in plans)
        assert mine != theirs and theirs == list(enums(load_schema(tmp_path, name).body).values())


def run(folder: Path, moved: range) -> Any:
    folder.mkdir()
    records = [{"vendor": "B" if n in moved else "A", "date": "2024-02-29", "total": 1.5} for n in range(40)]
    answers = {f"d{n:03}": Answers(completion(one, constrained=True)) for n, one in enumerate(records)}
    return run_of(str(commit(folder, answers)))[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    place = tmp_path_factory.mktemp("order")
    return [run(place / str(n), moved) for n, moved in enumerate((range(0), range(2), range(30), range(10, 40)))]


def test_what_moves_is_told_by_field_beside_what_moves_by_itself(runs: list[Any]) -> None:
    first, again, *others = runs
    place = Path(first.store.where).parents[1] / "schemas"
    bodies = bodies_of(first, str(place), ["receipt@1"], [])
    found = ordered((first, again), others, bodies, enums=1, most=1000)
    assert (found.documents, found.orders) == (40, 2)
    fields = {one.pointer: one for one in found.fields}
    vendor = fields["/vendor"]
    assert found.fields[0] == vendor  # what moved most comes first
    assert (vendor.again.count, vendor.again.of) == (2, 40) and (vendor.order.count, vendor.order.of) == (60, 80)
    assert vendor.gap.value == pytest.approx(0.75 - 0.05)
    assert vendor.gap.low is not None and vendor.gap.low > 0.4
    assert fields["/total"].order.count == 0 and not fields["/total"].gap.excludes(0.0)
    assert (found.records.again.count, found.records.order.count) == (2, 60)
    sheet = Sheet("x", "y", (), (), [order_section(found)], "z")
    assert len(list(rendered(sheet))) == 2
