"""An audit is asked for one at a time, within bounds, and never costs the answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.engines.audit import BYTES_PER_SCORE, MAX_BYTES, WAITING, Auditor
from pipeline.engines.blanks import Blanks
from pipeline.records import Completion, Sampling
from pipeline.steps.clipped import clipped

TEXTS = [b"{", b"}", b" ", b" }"]
PROMPT = [7] * 10
ANSWER = Completion(
    "{}", "stop", True, token_ids=(0, 1), logprobs=({0: math.log(0.8)}, {1: 0.0}), token_ends=(1, 2), seconds=3.0
)
ROWS = [{0: math.log(0.4), 2: math.log(0.3)}, {1: math.log(0.25), 2: math.log(0.5), 3: math.log(0.125)}]


async def blanks() -> Blanks:
    return Blanks(TEXTS)


def auditor(score: Any, vocabulary: int = 1000, context: int = 4096, told: Any = blanks) -> Auditor:
    return Auditor(score, told, vocabulary, context)


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
    ("most", "vocabulary", "context", "told"),
    [
        (12, 1000, 4096, "done"),
        (11, 1000, 4096, "too_long"),  # the job's cap
        (100, 1000, 13, "done"),
        (100, 1000, 12, "too_long"),  # the request makes one token of its own
        (100, MAX_BYTES // BYTES_PER_SCORE // 12, 4096, "done"),
        (100, MAX_BYTES // BYTES_PER_SCORE // 11, 4096, "too_long"),  # the memory
    ],
)
async def test_nothing_beyond_a_bound_is_asked_for(most: int, vocabulary: int, context: int, told: str) -> None:
    audited = await auditor(scored, vocabulary, context).audit(PROMPT, ANSWER, most)
    assert audited.audit == told
    assert bool(audited.unmasked) == (told == "done")


@pytest.mark.asyncio
async def test_one_is_looked_at_and_few_wait() -> None:
    at_once, most, gate = 0, 0, asyncio.Event()

    async def slow(_prompt: Any, _answer: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1
        return ROWS

    made = auditor(slow)
    tasks = [asyncio.create_task(made.audit(PROMPT, ANSWER, 100)) for _ in range(WAITING + 6)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gate.set()
    told = [audited.audit for audited in await asyncio.gather(*tasks)]
    assert told == ["done"] * (WAITING + 1) + ["busy"] * 5
    assert most == 1
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
    made = Auditor(never, blanks, 1000, 4096, seconds=0.05)
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


def test_a_request_is_the_same_one_with_and_without_an_audit() -> None:
    assert Sampling(5) == Sampling(5, audit=0)
