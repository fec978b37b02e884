"""Several engines as one: who answers, who is started and closed, and what a recording of them plays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support import GOOD, Answers, completion, document, plan_of

from pipeline.engines.recorded import RecordingEngine
from pipeline.engines.several import SeveralEngines, build_all
from pipeline.errors import EngineError, SchemaError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, JobConfig
from pipeline.records import Completion, Prompt, Sampling

PROMPT, BAD = Prompt("s", "u"), {"vendor": 5, "total": 1}
LADDER = ExtractConfig.model_validate({"retry": {"max_attempts": 3, "ladder": [{}, {"engine": "big"}]}})


class Named(Answers):
    """Says who answered, and keeps what was done to it."""

    def __init__(self, name: str, log: list[str], *answers: Any, error: Exception | None = None) -> None:
        super().__init__(*[completion(answer, engine=name) for answer in answers or [GOOD]])
        self._name, self._log, self._error = name, log, error

    async def start(self, plans: Any) -> None:
        self._log.append(f"start {self._name}")
        if self._error:
            raise self._error

    async def close(self) -> None:
        self._log.append(f"close {self._name}")


def asked(engine: Any, name: str) -> Completion:
    answer: Completion = asyncio.run(engine.generate(PROMPT, plan_of(), Sampling(9, engine=name)))
    return answer


def test_the_engine_that_is_named_answers() -> None:
    several = SeveralEngines({"": Named("main", []), "big": Named("big", [])})
    assert [asked(several, name).engine for name in ("", "big", "")] == ["main", "big", "main"]
    with pytest.raises(EngineError, match="'huge'"):
        asked(several, "huge")


def test_the_ladder_reaches_the_other_engine_and_the_outcome_says_so() -> None:
    several = SeveralEngines({"": Named("main", [], BAD, {"vendor": "a"}), "big": Named("big", [])})
    outcome = asyncio.run(extract(document(), plan_of(), several, LADDER))
    assert [item.engine for item in outcome.attempts] == ["main", "main", "big"]
    assert (outcome.status, outcome.record_attempt) == ("valid", 3)


def test_all_start_in_order_and_all_are_closed_even_if_closing_one_fails() -> None:
    class Stuck(Named):
        async def close(self) -> None:
            await super().close()
            raise OSError("stuck")

    log: list[str] = []
    several = SeveralEngines({"": Stuck("main", log), "big": Named("big", log)})
    asyncio.run(several.start([]))
    with pytest.raises(OSError, match="stuck"):
        asyncio.run(several.close())
    assert log == ["start main", "start big", "close main", "close big"]


@pytest.mark.parametrize("kind", [EngineError, SchemaError])
def test_one_that_does_not_start_is_named_and_none_is_left_running(kind: Any) -> None:
    log: list[str] = []
    several = SeveralEngines({"": Named("main", log), "big": Named("big", log, error=kind("no memory"))})
    with pytest.raises(kind) as caught:
        asyncio.run(several.start([]))
    assert str(caught.value) == "engines.big: no memory"
    assert log[-2:] == ["close main", "close big"]


def test_one_engine_under_two_names_is_started_once() -> None:
    log: list[str] = []
    one = Named("main", log)
    several = SeveralEngines({"": one, "again": one})
    asyncio.run(several.start([]))
    asyncio.run(several.close())
    assert log == ["start main", "close main"]


def played(tape: Path, **changes: Any) -> JobConfig:
    recorded = {"engine": "recorded", "recording": str(tape), "backend": "xgrammar"}
    base = {"name": "t", "input": {"path": "x", "schema": "receipt@1"}, "output": "o", "engine": recorded}
    retry = {"max_attempts": 3, "ladder": [{}, {"engine": "big"}]}
    return JobConfig.model_validate({**base, "engines": {"big": recorded}, "retry": retry, **changes})


def test_a_recording_of_several_engines_plays_in_its_own_order(tmp_path: Path) -> None:
    short = completion('{"vendor": "Ann', "length")  # given room, the prompt stays: only the order tells them apart
    log: list[str] = []
    inner = SeveralEngines({"": Named("main", log), "big": Named("big", log)})
    inner._engines[""] = Answers(short, short)
    recorder = RecordingEngine(inner, tmp_path)

    async def run(engine: Any, config: ExtractConfig) -> Any:
        await engine.start([plan_of()])
        outcome = await extract(document(), plan_of(), engine, config)
        await engine.close()
        return outcome

    first = asyncio.run(run(recorder, LADDER))
    job = played(tmp_path)
    again = asyncio.run(run(build_all(job, "xgrammar"), job))
    assert (first.status, again.status) == ("valid", "valid")
    assert [a.raw_text for a in first.attempts] == [a.raw_text for a in again.attempts]
    assert again.attempts[2].engine == "recorded:big"


def test_only_the_engines_that_a_rung_names_are_built(tmp_path: Path) -> None:
    alone = build_all(played(tmp_path, retry={}), "xgrammar")
    assert not isinstance(alone, SeveralEngines)
    assert isinstance(build_all(played(tmp_path), "xgrammar"), SeveralEngines)


def test_one_that_cannot_be_built_is_named(tmp_path: Path) -> None:
    missing = {"engine": "sampler", "model": str(tmp_path / "none"), "backend": "xgrammar"}
    with pytest.raises(EngineError, match=r"^engines\.big: "):
        build_all(played(tmp_path, engines={"big": missing}), "xgrammar")
