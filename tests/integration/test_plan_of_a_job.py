"""A cost plan against the run that followed it: documents, tokens, attempts, from a sample and from an earlier run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pipeline.cost.given import Given
from pipeline.cost.plan import cost_plan
from pipeline.flow import run
from pipeline.observe.tally import Tally
from tests.integration.conftest import MakeJob

pytestmark = pytest.mark.usefixtures("ray_cluster")

EARLIER, ALL, SAMPLE = 120, 240, 40
FAULTS = [{"kind": "truncate", "share": 0.1}, {"kind": "prose", "share": 0.2, "attempts": 1}]
"""They make later attempts, which cost tokens."""


def within(value: float, estimate: dict[str, Any]) -> bool:
    return bool(estimate["low"] <= value <= estimate["high"])


def test_the_run_that_follows_is_within_the_plan(documents: list[dict[str, Any]], make_job: MakeJob) -> None:
    parts: dict[str, Any] = {"engine": {"faults": FAULTS}, "placement": {"unit_documents": 12}}
    first = run(make_job(documents[:EARLIER], "planned", **parts), lambda event, value: None)
    rows = documents[:ALL]
    job = make_job(rows, "planned", **parts)
    plan = cost_plan(job, Given(sample=SAMPLE, run=job.output, deadline_hours=1))
    followed = run(job, lambda event, value: None)
    total = Tally.from_json(followed.totals)
    assert plan["run"]["run_id"] == first.run_id != followed.run_id

    assert plan["documents"]["total"] == followed.documents == ALL
    assert {one["name"]: one["documents"] for one in plan["schemas"]} == Counter(row["schema"] for row in rows)

    prompts = total.prompt_tokens - total.retry_prompt_tokens
    told = plan["tokens"]
    assert told["first_prompts"]["basis"] == "sampled"
    assert within(prompts, told["first_prompts"])
    assert told["first_prompts"]["high"] - told["first_prompts"]["low"] < 0.1 * prompts  # it says something
    whole = cost_plan(job, Given(sample=ALL))
    assert whole["tokens"]["first_prompts"]["value"] == prompts
    assert whole["tokens"]["first_prompts"]["basis"] == "exact"

    answers = sum(path.answers for path in total.rates())
    assert answers > 1.05 * ALL
    assert told["attempts"]["basis"] == told["output"]["basis"] == "measured"
    assert within(answers, told["requests"])
    assert within(total.output_tokens, told["outputs"])
    assert within(total.prompt_tokens, told["prompts"])
    assert told["outputs"]["high"] < 2 * total.output_tokens
    clock = first.totals["clock"]
    assert 0 < clock["asking_seconds"] < clock["seconds"], "the start is no work"
    assert plan["run"]["start_seconds"] == pytest.approx(clock["seconds"] - clock["asking_seconds"])
    rate = plan["tokens_per_second"]
    assert rate["basis"] == "measured"
    work = told["outputs"]["value"] / rate["value"]
    assert plan["as_placed"]["hours"]["value"] * 3600 == pytest.approx(plan["run"]["start_seconds"] + work)
    assert plan["look_at"] == []
