"""An audit is asked for one at a time, within bounds, and never costs the answer."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.engines.audit import BYTES_PER_SCORE, MAX_BYTES, WAITING, Auditor, most_read
from pipeline.engines.blanks import Blanks
from pipeline.engines.patience import in_time
from pipeline.records import Completion, Prompt, Sampling
from pipeline.steps.clipped import clipped

TEXTS = [b"{", b"}", b" ", b" }"]
PROMPT = [7] * 10
ANSWER = Completion(
    "{}", "stop", True, token_ids=(0, 1), logprobs=({0: math.log(0.8)}, {1: 0.0}), token_ends=(1, 2), seconds=3.0
)
ROWS = [{0: math.log(0.4), 2: math.log(0.3)}, {1: math.log(0.25), 2: math.log(0.5), 3: math.log(0.125)}]


async def blanks() -> Blanks:
    return Blanks(TEXTS)


def auditor(score: Any, most: int = 4096, told: Any = blanks, **values: Any) -> Auditor:
    return Auditor(score, told, most, **values)


async def scored(prompt: Sequence[int], answer: Sequence[int]) -> Any:
    assert (list(prompt), list(answer)) == (PROMPT, [0, 1])
    return ROWS


@pytest.mark.asyncio
async def test_the_answer_comes_back_with_what_the_engine_said() -> None:
    audited = await auditor(scored).audit(PROMPT, ANSWER, 100)
    assert audited.audit == "done"
    assert audited.unmasked == ((math.log(0.4), pytest.approx(0.3)), (math.log(0.25), pytest.approx(0.625)))
    assert (audited.text, audited.seconds, audited.logprobs) == (ANSWER.text, 3.0, ANSWER.logprobs)
    assert audited.audit_seconds >= 0
    structure, blank = clipped(audited) or ()
    assert (structure.mass, blank.mass) == (pytest.approx(0.5 - 0.3 + 0.75 - 0.625), pytest.approx(0.925))


@pytest.mark.asyncio
async def test_where_blanks_are_legal_they_are_not_told_apart() -> None:
    audited = await auditor(scored, told=None).audit(PROMPT, ANSWER, 100)
    assert [share for _, share in audited.unmasked] == [0.0, 0.0]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "most", "told"), [(12, 4096, "done"), (11, 4096, "too_long"), (100, 12, "done"), (100, 11, "too_long")]
)
async def test_nothing_beyond_the_job_s_bound_or_the_engine_s_is_asked_for(asked: int, most: int, told: str) -> None:
    audited = await auditor(scored, most).audit(PROMPT, ANSWER, asked)
    assert audited.audit == told
    assert bool(audited.unmasked) == (told == "done")


def test_scores_of_a_prompt_take_a_bounded_memory() -> None:
    for vocabulary in (32_000, 49_152, 151_936, 262_144):
        assert most_read(vocabulary) * vocabulary * BYTES_PER_SCORE <= MAX_BYTES
        assert most_read(vocabulary) > 500


@pytest.mark.asyncio
@pytest.mark.parametrize("at_once", [1, 3])
async def test_few_are_looked_at_and_few_wait(at_once: int) -> None:
    looked_at, most, gate = 0, 0, asyncio.Event()

    async def slow(_prompt: Any, _answer: Any) -> Any:
        nonlocal looked_at, most
        looked_at += 1
        most = max(most, looked_at)
        await gate.wait()
        looked_at -= 1
        return ROWS

    made = auditor(slow, at_once=at_once)
    tasks = [asyncio.create_task(made.audit(PROMPT, ANSWER, 100)) for _ in range(at_once + WAITING + 5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gate.set()
    told = [audited.audit for audited in await asyncio.gather(*tasks)]
    assert told == ["done"] * (WAITING + at_once) + ["busy"] * 5
    assert most == at_once
    assert (await made.audit(PROMPT, ANSWER, 100)).audit == "done"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "found",
    [
        RuntimeError("the engine died"),
        ROWS[:1],
        [{0: -1.0}, {9: -1.0}],  # without the token that was written
        [{0: 0.0}, {1: float("nan")}],
        [{0: math.log(0.8) + 0.5}, {1: 0.0}],  # more than under the constraint: of another model, or temperature
    ],
)
async def test_whatever_goes_wrong_leaves_the_answer(found: Any) -> None:
    async def score(_prompt: Any, _answer: Any) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    audited = await auditor(score).audit(PROMPT, ANSWER, 100)
    assert (audited.audit, audited.unmasked, audited.text) == ("failed", (), "{}")


@pytest.mark.asyncio
async def test_an_engine_that_gives_none_and_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(_prompt: Any, _answer: Any) -> None:
        return None

    async def never(_prompt: Any, _answer: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    assert (await auditor(none).audit(PROMPT, ANSWER, 100)).audit == "unavailable"
    made = auditor(never, seconds=0.05)
    first, second = await asyncio.gather(made.audit(PROMPT, ANSWER, 100), made.audit(PROMPT, ANSWER, 100))
    assert (first.audit, second.audit) == ("failed", "failed")


@pytest.mark.asyncio
async def test_the_sampler_knows_what_its_constraint_takes(xgrammar_engine: Any, ask: Any, plan_of: Any) -> None:
    plan = plan_of()
    size = xgrammar_engine._vocabulary.size
    plain, audited = await ask(xgrammar_engine, plan), await ask(xgrammar_engine, plan, audit=5000)
    assert (audited.text, audited.audit) == (plain.text, "done")
    assert (plain.audit, plain.unmasked, plain.logprobs) == ("", (), ())
    places = clipped(audited)
    assert places is not None
    legal = [math.exp(-row[id_]) for id_, row in zip(audited.token_ids, audited.logprobs, strict=True)]
    assert math.fsum(place.mass for place in places) == pytest.approx(math.fsum(1 - each / size for each in legal))
    assert sum(place.tokens for place in places if place.part != "blank") == audited.output_tokens
    assert any(place.part == "blank" and place.mass > 0 for place in places)
    assert (await ask(xgrammar_engine, plan, audit=10)).audit == "too_long"


class Auditing:
    """Answers after `answers` seconds, and has the answer back after `audits` more."""

    def __init__(self, answers: float, audits: float) -> None:
        self._answers, self._audits = answers, audits

    async def generate(self, _prompt: Any, _plan: Any, sampling: Sampling) -> Completion:
        await asyncio.sleep(self._answers)
        if not sampling.audit:
            return ANSWER
        await asyncio.sleep(self._audits)
        return dataclasses.replace(ANSWER, audit="done", audit_seconds=self._audits)


@pytest.mark.asyncio
async def test_an_audit_makes_no_answer_late_and_excuses_none(plan_of: Any) -> None:
    async def ask(engine: Auditing, audit: int) -> tuple[Completion, float]:
        deadline = time.monotonic() + 0.5
        return await in_time(engine, Prompt("", ""), plan_of(), Sampling(5, audit=audit), deadline)  # type: ignore[arg-type]

    (quick, quick_waited), (late, _), (plain, _), (plain_late, _) = await asyncio.gather(
        ask(Auditing(0.05, 1.0), 99),
        ask(Auditing(0.9, 0.2), 99),
        ask(Auditing(0.05, 1.0), 0),
        ask(Auditing(0.9, 0.2), 0),
    )
    assert (quick.text, quick.audit, quick_waited) == ("{}", "done", 1.0)
    assert plain.text == "{}"
    assert (late.text, late.error) == (plain_late.text, plain_late.error) == ("", "deadline")


def test_a_request_is_the_same_one_with_and_without_an_audit() -> None:
    assert Sampling(5) == Sampling(5, audit=0)
