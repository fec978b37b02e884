"""The sampler's faults: what each looks like, whom it hits, how often."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from pipeline.engines.faults import FaultPicker
from pipeline.errors import EngineError
from pipeline.job import Fault


def everyone(kind: Any, **values: Any) -> Fault:
    return Fault(kind=kind, share=1.0, **values)


@pytest.fixture(scope="module")
def struck(engine_with: Any, plan_of: Any, ask: Any, xgrammar_engine: Any) -> Any:
    """The answer with the fault, and the answer without it."""

    async def both(kind: Any, **sampling: Any) -> Any:
        engine, plan = engine_with(everyone(kind)), plan_of()
        await engine.start([plan])  # faults spare the start
        return await ask(engine, plan, **sampling), await ask(xgrammar_engine, plan, **sampling)

    return both


@pytest.mark.asyncio
@pytest.mark.parametrize(("kind", "finish"), [("truncate", "length"), ("abort", "abort")])
async def test_a_cut_answer(struck: Any, kind: str, finish: str) -> None:
    answer, whole = await struck(kind, token_ids=True, logprobs=0)
    assert answer.finish_reason == finish
    assert 0 < len(answer.text) < len(whole.text)
    assert whole.text.startswith(answer.text)
    assert answer.output_tokens == len(answer.token_ids) == len(answer.logprobs) < whole.output_tokens
    assert answer.constrained
    assert answer.error == ""


@pytest.mark.asyncio
async def test_an_empty_answer(struck: Any) -> None:
    answer, _ = await struck("empty")
    assert (answer.text, answer.finish_reason, answer.output_tokens) == ("", "stop", 0)


@pytest.mark.asyncio
async def test_a_loop_fills_the_budget(struck: Any) -> None:
    answer, _ = await struck("loop", max_tokens=120, logprobs=0)
    assert (answer.finish_reason, answer.output_tokens) == ("repetition", 120)
    assert answer.text.count(", and so on") > 10


@pytest.mark.asyncio
async def test_prose_around_the_answer(struck: Any) -> None:
    answer, whole = await struck("prose")
    assert answer.finish_reason == "stop"
    assert f"```json\n{whole.text}\n```" in answer.text
    assert not answer.text.startswith("```")
    assert not answer.constrained


@pytest.mark.asyncio
async def test_a_stall_answers_late_and_normally(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(everyone("stall", seconds=0.3)), plan_of()
    began = time.perf_counter()
    answer = await ask(engine, plan)
    assert time.perf_counter() - began >= 0.3
    assert answer.seconds >= 0.3
    assert answer.finish_reason == "stop"
    json.loads(answer.text)


@pytest.mark.asyncio
async def test_a_dead_engine_stays_dead(engine_with: Any, plan_of: Any, ask: Any) -> None:
    plan = plan_of()
    engine = engine_with(Fault(kind="die", share=0.2), token_seconds=0.002)
    await engine.start([plan])
    picker = FaultPicker((Fault(kind="die", share=0.2),), seed=0)
    users = [f"document {number}" for number in range(50)]
    poison = next(user for user in users if picker.pick(user))
    healthy = next(user for user in users if not picker.pick(user))
    assert (await ask(engine, plan, healthy)).error == ""
    in_flight = asyncio.ensure_future(ask(engine, plan, healthy))
    await asyncio.sleep(0.01)
    with pytest.raises(EngineError, match="died"):
        await ask(engine, plan, poison)
    for late in (in_flight, ask(engine, plan, healthy)):
        with pytest.raises(EngineError, match="died"):
            await late


@pytest.mark.asyncio
async def test_attempts_spare_a_document_afterwards(engine_with: Any, plan_of: Any, ask: Any) -> None:
    engine, plan = engine_with(everyone("empty", attempts=2)), plan_of()
    for user in ("one", "two"):
        texts = [(await ask(engine, plan, user)).text for _ in range(4)]
        assert texts[:2] == ["", ""]
        assert texts[2] == texts[3] != ""


def test_shares_add_up_and_hit_the_same_documents_in_every_run() -> None:
    faults = (Fault(kind="empty", share=0.1), Fault(kind="truncate", share=0.2))
    users = [f"document {number}" for number in range(4000)]

    def kinds(seed: int, order: list[str]) -> dict[str, str]:
        picker = FaultPicker(faults, seed)
        picked = {user: picker.pick(user) for user in order}
        return {user: fault.kind if fault else "" for user, fault in picked.items()}

    hit = kinds(1, users)
    shares = {kind: list(hit.values()).count(kind) / len(users) for kind in ("empty", "truncate", "")}
    assert shares == {
        "empty": pytest.approx(0.1, abs=0.02),
        "truncate": pytest.approx(0.2, abs=0.03),
        "": pytest.approx(0.7, abs=0.03),
    }
    assert kinds(1, users[::-1]) == hit
    assert kinds(2, users) != hit


def test_no_share_hits_nobody() -> None:
    picker = FaultPicker((Fault(kind="die", share=0.0),), seed=0)
    assert not any(picker.pick(f"document {number}") for number in range(1000))
