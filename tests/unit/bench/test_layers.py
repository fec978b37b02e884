"""The rates of `bench.layers` and the clock of `bench.layer_cost`, on answers that are known."""

from __future__ import annotations

import asyncio
from typing import Any

from support import Answers, completion, plan_of

from bench import layer_cost, layers
from bench.gold import Gold
from bench.layer_rates import Watched, rates
from bench.layer_sets import Set
from pipeline.flow import extract
from pipeline.records import Document

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "total": {"type": ["number", "null"]}},
    "required": ["name", "total"],
    "x-validations": [{"rule": "self.total == null || self.total < 100.0", "message": "below 100"}],
}
PLAN = plan_of(SCHEMA, "small@1")
RIGHT = {"name": "Ann", "total": 5}


def watched(*answers: Any) -> Watched:
    one = Watched(Gold(Document("d", "Ann paid 5", "x#1", "small@1"), PLAN, RIGHT, {}))
    config = layers.settings(64, constrained=True)
    config = config.model_copy(update={"retry": config.retry.model_copy(update={"backoff_seconds": 0.0})})
    one.outcome = asyncio.run(extract(one.gold.document, PLAN, Answers(*answers), config, trace=one.note))
    return one


def test_each_rate_counts_what_its_name_says() -> None:
    costs = {"prompt_tokens": 100, "output_tokens": 10}
    found = rates(
        [
            watched(completion(RIGHT, **costs)),
            watched(completion('```json\n{"name": "Ann", "total": 6}\n```', **costs)),
            watched(completion("no idea", **costs), completion(RIGHT, cached_tokens=90, **costs)),
            watched(completion('{"name": "Ann", "tot', "length", **costs)),
            watched(completion({"name": "Ann", "total": 500}, **costs)),
        ],
        1.0,
    )
    assert found["documents"] == sum(found["statuses"].values()) == 5
    assert found["statuses"]["rejected"] == 1
    assert found["first_pass_format"] == {"count": 2, "of": 5, "rate": 0.4}
    assert found["format_after_repair"] == {"count": 3, "of": 5, "rate": 0.6}
    assert found["resolved_by_retry"] == {"count": 1, "of": 3, "rate": 0.3333}
    assert found["salvaged"] == {"count": 1, "of": 5, "rate": 0.2}
    assert found["schema_valid"] == {"count": 4, "of": 5, "rate": 0.8}
    assert found["semantic"] == {"count": 3, "of": 4, "rate": 0.75}
    assert found["gold_leaves"] == {"count": 6, "of": 8, "rate": 0.75}
    assert found["cached_on_retries"] == {"count": 90, "of": 300, "rate": 0.3}
    assert found["output_tokens_per_valid"] == round(80 / found["statuses"]["valid"], 1)


def test_a_set_runs_on_both_paths_and_the_table_shows_it() -> None:
    engine = Answers(completion(RIGHT, constrained=True, prompt_tokens=8))
    gold = Gold(Document("d", "Ann paid 5", "x#1", "small@1"), PLAN, RIGHT, {})
    one = Set("small", PLAN, (gold, gold), 64)
    found = {path: asyncio.run(layers.run(engine, one, path, 4)) for path in layers.PATHS}
    assert [sampling.constrained for sampling in engine.samplings] == [True, True, False, False]
    shown = layers.table({"small": found})
    assert "100.0% of 2" in shown
    assert shown.splitlines()[2].startswith("first_pass_format")


def test_every_step_is_timed_and_has_something_to_do() -> None:
    found = layer_cost.measure(texts=4, rounds=1)
    assert found["documents"] == 4
    assert found["statuses"]["rejected"] == 0, found["codes"]
    assert not {"schema_violation", "not_normalised", "rule_not_judged", "pipeline_failed"} & found["codes"].keys()
    assert found["leaves_median"] >= 4
    assert all(found["steps"][step]["median_micros"] > 0 for step in layer_cost.STEPS)
    assert found["all_steps"]["median_micros"] <= found["all_steps"]["p99_micros"]
    assert "median" in layer_cost.report(found)
