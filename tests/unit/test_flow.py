"""`extract`: what one document goes through, layer by layer, with an engine that answers from a list."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from support import GOOD, Answers, codes, completion, config, document, extracted, plan_of, schema_and_record

from pipeline.engines.patience import uncounted
from pipeline.errors import EngineError
from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.records import Completion, Document, Prompt, Sampling
from pipeline.schema.plan import NO_PLAN, DecodingPlan

BAD = {"vendor": 5, "total": "x"}


class Slow(Answers):
    """Answers once, then takes far longer than any deadline here."""

    async def generate(self, *asked: Any) -> Completion:
        answer = await super().generate(*asked)
        if len(self.prompts) > 1:
            await asyncio.sleep(60)
        return answer


def test_layer_1_is_the_first_answer_as_it_came() -> None:
    outcome = extracted(Answers(completion(GOOD, constrained=True, prompt_tokens=3, cached_tokens=2, seconds=0.5)))
    assert (outcome.status, outcome.layer, outcome.record) == ("valid", 1, GOOD)
    assert (outcome.problems, outcome.repairs, outcome.document_text) == ((), (), "")
    (attempt,) = outcome.attempts
    assert (attempt.number, attempt.constrained, attempt.prompt_tokens, attempt.cached_tokens) == (1, True, 3, 2)


def test_layer_2_is_a_repaired_answer() -> None:
    outcome = extracted(Answers("```\n" + completion(GOOD).text + "\n```"))
    assert (outcome.status, outcome.layer, len(outcome.attempts)) == ("valid", 2, 1)


def test_layer_2_is_a_later_answer() -> None:
    outcome = extracted(Answers(BAD, GOOD))
    assert (outcome.status, outcome.layer, outcome.record) == ("valid", 2, GOOD)
    found = [(p.code, p.pointer, p.attempt) for p in outcome.problems if p.severity != "observe"]
    assert found == [("schema_violation", "/vendor", 1), ("schema_violation", "/total", 1)]


def test_layer_3_is_what_is_certain_of_a_cut_answer() -> None:
    outcome = extracted(Answers(completion('{"vendor": "Ann", "total": 5, "lines": ["t', "length")))
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == {"vendor": "Ann", "total": 5}
    assert extracted(Answers(completion('{"vendor": "Ann", "tot', "length")), degraded=False).status == "rejected"


def test_no_layer_made_a_record_of_a_hopeless_answer() -> None:
    outcome = extracted(Answers("I cannot do that."), doc=document("the text"))
    assert (outcome.status, outcome.layer, outcome.record) == ("rejected", 0, None)
    assert outcome.document_text == "the text"


def test_every_problem_of_every_attempt_is_kept_with_its_number() -> None:
    answers = [completion("", "abort"), "{{", BAD, {"vendor": "Ann"}]
    outcome = extracted(Answers(*answers), max_attempts=3, backoff_seconds=0)
    assert outcome.status == "degraded"
    found = [(p.attempt, p.code) for p in outcome.problems]
    assert set(found) >= {(1, "engine_abort"), (2, "not_json"), (3, "schema_violation"), (4, "schema_violation")}
    assert [item.number for item in outcome.attempts] == [1, 2, 3, 4]


def test_an_abort_and_then_an_answer_is_valid_and_not_the_documents_fault() -> None:
    engine = Answers(completion('{"vendor": "Exa', "abort"), GOOD)
    outcome = extracted(engine, max_attempts=1, backoff_seconds=0)
    assert (outcome.status, outcome.layer, outcome.record) == ("valid", 1, GOOD)
    assert codes(outcome) == ["engine_abort"]
    assert engine.prompts[0] == engine.prompts[1]


def test_an_engine_that_stalls_costs_its_document_the_deadline_and_no_more() -> None:
    started = time.monotonic()
    outcome = extracted(Slow(completion('{"vendor": "Ann", "total": 1, "li', "length")), deadline_seconds=0.2)
    assert time.monotonic() - started < 10
    assert {"truncated", "deadline_exceeded"} <= set(codes(outcome))
    assert (outcome.status, outcome.record) == ("degraded", {"vendor": "Ann", "total": 1})
    assert [item.error for item in outcome.attempts] == ["", "deadline"]


def test_waiting_for_a_sick_engine_ends_with_the_documents_time() -> None:
    started = time.monotonic()
    outcome = extracted(Answers(completion("", "abort")), deadline_seconds=0.2, backoff_seconds=50)
    assert time.monotonic() - started < 40
    assert outcome.status == "rejected"


def test_an_engine_that_is_gone_is_no_matter_of_the_document() -> None:
    with pytest.raises(EngineError, match="gone"):
        extracted(Answers(EngineError("the engine is gone")))


def test_a_document_without_a_schema_is_rejected_unasked() -> None:
    engine = Answers(GOOD)
    outcome = extracted(engine, NO_PLAN, document(problems=["document_without_schema"]))
    assert (outcome.status, engine.prompts) == ("rejected", [])


def test_later_attempts_have_their_own_seed_and_what_their_rung_says() -> None:
    engine = Answers(BAD, {"vendor": 5}, GOOD)
    ladder = [{"temperature": 0.7}, {"engine": "big"}]
    outcome = extracted(engine, max_attempts=3, max_tokens=99, ladder=ladder)
    assert [item.temperature for item in engine.samplings] == [0.0, 0.7, 0.0]
    assert [item.engine for item in engine.samplings] == ["", "", "big"]
    assert len({item.seed for item in engine.samplings}) == 3
    assert {item.max_tokens for item in engine.samplings} == {99}
    assert [item.temperature for item in outcome.attempts] == [0.0, 0.7, 0.0]


def test_documents_side_by_side_do_not_mix() -> None:
    class Echo(Answers):
        async def generate(self, prompt: Any, *asked: Any) -> Completion:
            await asyncio.sleep(0.001 * (hash(prompt.user) % 7))
            return completion({"vendor": prompt.user.split("\n")[1], "total": 1})

    async def all_at_once() -> list[Any]:
        work = [extract(document(f"doc {n}"), plan_of(), Echo(""), config()) for n in range(40)]
        return [outcome.record["vendor"] for outcome in await asyncio.gather(*work)]

    assert asyncio.run(all_at_once()) == [f"doc {n}" for n in range(40)]


@given(schema_and_record())
def test_a_whole_record_of_any_schema_is_valid_at_once(pair: Any) -> None:
    outcome = extracted(Answers(completion(pair[1], constrained=True)), plan_of(pair[0], f"any@{hash(str(pair[0]))}"))
    assert (outcome.status, outcome.layer, outcome.record) == ("valid", 1, pair[1])


class Broken:
    """An engine with a fault of its own."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        raise self.error

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize("error", [ValueError("odd"), RecursionError(), MemoryError("x"), KeyError(3)])
def test_what_a_step_raises_costs_one_document_and_is_named(error: Exception) -> None:
    document = Document("d", "text", "s", "receipt@1")
    outcome = asyncio.run(extract(document, plan_of(), Broken(error), ExtractConfig()))
    assert outcome.status == "rejected"
    assert outcome.problems[-1].code == "pipeline_failed"
    assert type(error).__name__ in outcome.problems[-1].message
    assert outcome.document_text == "text"


class Absent(Answers):
    """Gone for a while at each request, which is nobody's fault, then slow to answer."""

    def __init__(self, *answers: Any, absent: float, slow: float) -> None:
        super().__init__(*answers)
        self.absent, self.slow = absent, slow

    async def generate(self, *asked: Any) -> Completion:
        with uncounted():
            await asyncio.sleep(self.absent)
        await asyncio.sleep(self.slow)
        return await super().generate(*asked)


def test_waiting_for_an_engine_that_is_not_there_does_not_count_against_the_document() -> None:
    waits = Absent(BAD, GOOD, absent=0.5, slow=0.0)
    outcome = extracted(waits, deadline_seconds=0.4, max_attempts=2)
    assert (outcome.status, outcome.record, len(outcome.attempts)) == ("valid", GOOD, 2)
    late = extracted(Absent(BAD, GOOD, absent=0.1, slow=5.0), deadline_seconds=0.4, max_attempts=2)
    assert "deadline_exceeded" in codes(late)


def test_time_that_an_engine_itself_gives_up_is_no_deadline() -> None:
    class Impatient(Answers):
        async def generate(self, *asked: Any) -> Completion:
            with uncounted():
                raise TimeoutError("the engine's own")

    outcome = extracted(Impatient(GOOD), deadline_seconds=5, max_engine_failures=0)
    assert "deadline_exceeded" not in codes(outcome) and outcome.status == "rejected"
