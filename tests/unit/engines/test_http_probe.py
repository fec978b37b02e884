"""Live trials of keywords: violations are found where they are, and nothing is called enforced."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import Answer, chat, error, obedient, sampled, serving
from support import plan_of

from pipeline.engines.http import HttpEngine
from pipeline.engines.http_probe import ProbeRow, probe_keywords, rendered
from pipeline.errors import EngineError
from pipeline.jobhttp import HttpConfig
from pipeline.schema.plan import DecodingPlan

pytestmark = pytest.mark.asyncio
ORDER = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "kind": {"enum": ["new", "used"]},
    },
    "required": ["code", "count", "kind"],
}


async def probed(brain: Any, plan: DecodingPlan, trials: int = 3) -> list[ProbeRow]:
    async with serving(brain) as server:
        engine = HttpEngine(HttpConfig(engine="http", base_url=server.url, model="m", max_tries=1))
        try:
            return await probe_keywords(engine, plan, trials)
        finally:
            await engine.close()


def copied(user: str) -> str:
    """What a model without a constraint answers that does as the user says."""
    return user.partition(":")[2].strip()


async def test_a_server_that_ignores_the_schema_breaks_every_keyword_that_was_tried() -> None:
    plan = plan_of(ORDER, "order@1")
    rows = await probed(obedient(copied), plan)
    tried = {(row.pointer, row.keyword) for row in rows if row.asked}
    assert {("/properties/code", "pattern"), ("/properties/count", "maximum"), ("", "required")} <= tried
    for row in rows:
        assert not row.asked or row.violations >= 3, row
        assert bool(row.example) == bool(row.violations)
    assert "3 trials, 3 violations" in "\n".join(rendered(rows))


async def test_a_server_that_obeys_shows_no_violation_and_no_word_of_enforcement(guidance_engine: Any) -> None:
    plan = plan_of(ORDER, "order@1", backend="guidance")
    rows = await probed(sampled(guidance_engine, plan), plan)
    assert all(row.violations == 0 for row in rows)
    tried = [row for row in rows if row.asked]
    assert tried and all(row.trials + row.unanswered == 3 for row in tried) and sum(row.trials for row in tried) > 0
    words = "\n".join(rendered(rows))
    assert "3 trials, 0 violations" in words and "enforce" not in words


async def test_a_keyword_that_alone_is_ignored_is_the_one_that_is_named() -> None:
    def without_maximum(user: str) -> str:
        wanted = json.loads(copied(user))
        count = wanted.get("count") if isinstance(wanted, dict) else None
        leaked = count if isinstance(count, int) and count > 9 else 5
        return json.dumps({"code": "AB", "count": leaked, "kind": "new"})

    rows = await probed(obedient(without_maximum), plan_of(ORDER, "order@1"))
    assert {(row.pointer, row.keyword) for row in rows if row.violations} == {("/properties/count", "maximum")}
    assert rendered(rows)[0].startswith("/properties/count maximum: 3 trials, 3 violations")


@pytest.mark.parametrize(
    "answer", [chat("", "length"), error(400, "no"), chat(None, refusal="no"), chat("{", "stop"), chat("[" * 9000)]
)
async def test_what_is_no_whole_answer_is_no_trial(answer: Answer) -> None:
    async def brain(_body: dict[str, Any]) -> Answer:
        return answer

    rows = await probed(brain, plan_of(ORDER, "order@1"), trials=2)
    assert all(row.trials == row.violations == 0 for row in rows)
    assert all(row.unanswered == (2 if row.asked else 0) for row in rows)


async def test_a_server_that_is_gone_ends_the_probe() -> None:
    async def brain(_body: dict[str, Any]) -> Answer:
        return error(401, "who are you")

    with pytest.raises(EngineError, match="who are you"):
        await probed(brain, plan_of(ORDER, "order@1"))


async def test_rows_say_what_was_left_and_what_was_not_tried() -> None:
    left = ProbeRow(
        "/properties/a", "format", left=True, asked=True, trials=2, violations=1, unanswered=1, example="{}"
    )
    assert left.told() == (
        "/properties/a format: 2 trials, 1 violations, 1 without an answer, left to the validator: {}"
    )
    assert "not tried" in ProbeRow("", "not", left=False, asked=False).told()
