"""Invariant 5: no prefix of a valid output that was cut is ever valid, and judging it takes no time to speak of."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from earned import LEAF_SCHEMA, no_better_than_earned
from support import Answers, codes, completion, document, plan_of
from support import config as config_of
from untold import untold

from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.steps.parse import parse
from pipeline.steps.repair import repair
from pipeline.steps.route import status_of
from pipeline.steps.validate import validate

OUTPUTS = 520
"""Valid outputs whose prefixes are tried."""
CUT_CODES = {"truncated", "runaway_whitespace", "repetition", "empty_output"}


def _random_record(dice: random.Random) -> dict[str, Any]:
    word = "".join(dice.choice('abc "\\\n{}[],:é汉0') for _ in range(dice.randrange(12)))
    record: dict[str, Any] = {"name": word, "total": dice.choice([None, 0, 12, -1.5, 1e21, 2**60])}
    if dice.random() < 0.7:
        record["tags"] = [word] * dice.randrange(4)
    if dice.random() < 0.5:
        record["rows"] = [{"sku": word, "n": dice.randrange(100)} for _ in range(dice.randrange(3))]
    if dice.random() < 0.3:
        record["ok"] = dice.random() < 0.5
    return record


def _valid_outputs() -> list[str]:
    """520 answers that satisfy LEAF_SCHEMA."""
    dice = random.Random(5)
    indents = [None, None, 2]
    return [
        json.dumps(_random_record(dice), ensure_ascii=dice.random() < 0.5, indent=dice.choice(indents))
        for _ in range(OUTPUTS)
    ]


def test_every_cut_prefix_of_a_valid_output_is_rejected_as_parsed_and_fast() -> None:
    """Every prefix, the whole text included, with `length`; P99 below 5 ms of processor time."""
    plan = plan_of(LEAF_SCHEMA)
    spent: list[float] = []
    for text in _valid_outputs():
        draft = validate(parse(completion(text), 1), plan, 1)
        assert status_of(draft) == "valid", text
        for place in range(len(text) + 1):
            answer = completion(text[:place], "length", constrained=place % 2 == 0)
            started = time.process_time()
            draft = repair(parse(answer, 1), answer, 1)
            spent.append(time.process_time() - started)
            assert status_of(draft) == "rejected", text[:place]
            assert set(codes(draft)) & CUT_CODES
    assert len(spent) > 20_000
    assert sorted(spent)[int(0.99 * len(spent))] < 0.005


async def _extract_cuts(texts: list[str], places: Callable[[str], Iterable[int]]) -> int:
    """Cut texts at places, each through `extract`; how many."""
    plan, config, count = plan_of(LEAF_SCHEMA), config_of(max_attempts=1), 0
    for text in texts:
        for place in places(text):
            engine = Answers(completion(text[:place], "length", constrained=place % 2 == 0))
            outcome = await extract(document(), plan, engine, config)
            assert outcome.status != "valid", text[:place]
            assert set(codes(outcome)) & CUT_CODES
            assert untold(outcome) == [], text[:place]
            count += 1
    return count


def test_no_cut_prefix_of_a_valid_output_is_valid_after_salvage() -> None:
    dice = random.Random(6)
    texts = _valid_outputs()
    places = lambda text: (len(text), dice.randrange(len(text)))  # noqa: E731
    assert asyncio.run(_extract_cuts(texts, places)) == 2 * OUTPUTS


@pytest.mark.slow
def test_no_prefix_at_all_is_valid_after_salvage() -> None:
    assert asyncio.run(_extract_cuts(_valid_outputs(), lambda text: range(len(text) + 1))) > 20_000


@pytest.mark.parametrize("preset", ["extraction", "classification", "tool_call", "sql", "configuration", "synthetic"])
@pytest.mark.parametrize("reason", ["length", "abort", "error", "repetition"])
def test_no_preset_makes_a_cut_answer_valid(preset: str, reason: str) -> None:
    config = ExtractConfig.model_validate({"policy": {"preset": preset}, "retry": {"backoff_seconds": 0}})
    answer = completion('{"name": "a", "total": 1}', reason)
    outcome = asyncio.run(extract(document(), plan_of(LEAF_SCHEMA), Answers(answer), config))
    assert outcome.status != "valid"
    no_better_than_earned(outcome)
