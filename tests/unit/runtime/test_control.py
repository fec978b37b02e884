"""The control: what it tells processes and driver, and what callers hear when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from ray.exceptions import ActorDiedError

from pipeline.errors import EngineError
from pipeline.jobplacement import StopConfig
from pipeline.observe.tally import Tally
from pipeline.runtime.supervise.control import MISSED_SECONDS, POISON_IN_A_ROW, Control
from pipeline.runtime.supervise.control_calls import RayControl
from pipeline.runtime.supervise.pilot import PILOT_PATIENCE


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def tally(documents: int, *, asked: int | None = None, rejected: int = 0) -> dict[str, Any]:
    asked = documents if asked is None else asked
    found = Tally(documents=documents, asked=asked, first_pass_format=asked, first_pass_semantic=asked)
    found.statuses.update({"rejected": rejected, "valid": documents - rejected})
    return found.to_json()


def test_a_process_that_died_with_its_node_is_charged_with_nothing() -> None:
    dead: set[str] = set()
    control = Control(StopConfig(), alive=lambda node: node not in dead)
    control.born("p", "n1")
    control.begin("p", ["a"])
    dead.add("n1")
    control.born("p", "n2")
    assert control.begin("p", ["a"]) == {"a": ("go", 1)}
    assert control.look().all_deaths == 0
    control.born("p", "n3")
    assert control.begin("p", ["a"]) == {"a": ("suspect", 1)}
    assert control.look().all_deaths == 1


def test_what_ended_is_closed_before_what_begins_is_opened() -> None:
    control = Control(StopConfig())
    control.born("p", "n")
    control.begin("p", ["a"])
    control.begin("p", ["b"], ended=["a"])
    assert control.open_in("p") == {"b"}
    control.born("p", "n")
    control.begin("p", ["b"], together=True)
    assert control.begin("p", ["b"], ended=["b"]) == {"b": ("go", 1)}, "it is no suspect any more"


def test_deaths_in_a_row_are_those_of_one_process_without_a_document_that_came_through() -> None:
    clock = Clock()
    control = Control(StopConfig(), now=clock)
    for process in "pq":
        control.born(process, "n")
    for _ in range(3):
        control.born("p", "n")
    control.born("q", "n")
    clock.time = 5
    assert (control.look().deaths, control.look().all_deaths, control.look().idle_seconds) == (3, 4, 5)
    control.report("p", {"a": tally(7)})
    assert control.look().deaths == 3, "what was saved before is reported after each death"
    control.begin("p", ["a"])
    control.begin("p", [], ended=["a"])
    assert (control.look().deaths, control.look().unit_deaths, control.look().idle_seconds) == (1, 4, 0)
    control.report("q", {}, done_units=2)
    assert (control.look().deaths, control.look().unit_deaths, control.look().done_units) == (0, 0, 2)


def test_poison_in_a_row_is_no_sick_process_until_there_is_nothing_else() -> None:
    control = Control(StopConfig())
    control.born("p", "n")
    for number in range(POISON_IN_A_ROW + 2):
        assert control.look().deaths <= 1 or number > POISON_IN_A_ROW
        for _ in range(2):
            control.begin("p", [f"x{number}"], together=True)
            control.born("p", "n")
    assert control.look().poison == POISON_IN_A_ROW + 2
    assert control.look().deaths == 4


def test_last_words_are_kept_short_and_few() -> None:
    control = Control(StopConfig())
    for number in range(20):
        for _ in range(2):
            control.report("p", {}, reason=f"{number} " + "x" * 5000)
    reasons = control.look().reasons
    assert [reason[:3] for reason in reasons] == ["15 ", "16 ", "17 ", "18 ", "19 "]
    assert all(len(reason) <= 1000 for reason in reasons)


def test_a_schema_is_stopped_for_all_and_others_go_on() -> None:
    control = Control(StopConfig())
    assert control.report("p", {"a": tally(20, rejected=11), "b": tally(20)}).stopped == ()
    orders = control.report("q", {"a": tally(20, rejected=11)})
    assert orders.stopped == ("a",)
    assert (control.gate("a"), control.gate("b")) == ("stopped", "open")
    control.report("q", {"a": tally(500)})
    look = control.look()
    assert look.stopped["a"].startswith("a: of 40 documents that an engine was asked about, 22 were rejected")
    assert look.total["documents"] == 560


def test_a_pilot_holds_the_mass_back_and_is_judged_when_it_is_through_although_some_could_not_be_asked() -> None:
    control = Control(StopConfig(after=32), {"a": 32, "b": 32})
    assert [control.gate(schema) for schema in ("a", "b", "none")] == ["wait", "wait", "open"]
    control.report("p", {"a": tally(31, asked=28, rejected=31)}, pilot=True)
    assert control.gate("a") == "wait"
    control.report("p", {"a": tally(1), "b": tally(5, asked=5, rejected=5)}, pilot=True)
    assert control.gate("a") == "stopped"
    assert control.gate("b") == "wait"
    control.report("p", {"b": tally(27)}, pilot=True)
    assert control.gate("b") == "open"


def test_the_mass_does_not_wait_for_a_pilot_that_died() -> None:
    clock = Clock()
    control = Control(StopConfig(), {"a": 32}, now=clock)
    clock.time = PILOT_PATIENCE - 1
    control.begin("p", ["a"])
    clock.time += PILOT_PATIENCE - 1
    assert control.gate("a") == "wait", "engines took their time to start"
    control.begin("p", ["b"], ended=["a"])
    clock.time += 1
    assert control.gate("a") == "open"


def test_what_engines_take_to_start_is_not_counted_as_work_in_any_turn() -> None:
    clock = Clock()
    control = Control(StopConfig(), now=clock)
    assert control.look().asking_seconds == 0
    for start, work in ((30.0, 100.0), (50.0, 7.0)):
        control.turn()
        control.born("p", "n")
        control.begin("p", [])  # nothing begins
        clock.time += start
        control.begin("p", ["a"])
        clock.time += work
        control.begin("p", ["b"], ended=["a"])
        control.begin("p", [], ended=["b"])
    assert control.look().asking_seconds == 107


def test_nothing_new_begins_in_a_job_that_is_to_end() -> None:
    control = Control(StopConfig(), {"a": 3})
    control.drain()
    assert control.gate("a") == "stopped"
    assert control.report("p", {}).drain


@pytest.mark.parametrize("node_lives", [True, False])
def test_a_missed_process_that_is_not_born_again_is_settled(node_lives: bool) -> None:
    clock = Clock()
    control = Control(StopConfig(), alive=lambda _node: node_lives, now=clock)
    control.born("e0", "n")
    control.begin("e0", ["a"])
    control.missed("e0", "a")
    control.missed("e0", "a")
    clock.time = MISSED_SECONDS - 1
    assert control.begin("e1", ["a"]) == {"a": ("suspect", 1) if node_lives else ("go", 1)}
    clock.time = MISSED_SECONDS
    control.begin("e1", [])
    assert control.look().all_deaths == node_lives
    control.born("e0", "n")
    assert control.look().all_deaths == node_lives, "a death is one death"


class Handle:
    """As a Ray actor's handle; `answers` says what comes of each call."""

    def __init__(self, answers: Callable[..., Any]) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        handle = self

        class Method:
            def remote(self, *arguments: Any) -> Any:
                return handle._answers(name, *arguments)

        return Method()


def test_calls_go_to_the_actor_as_they_are() -> None:
    control = Control(StopConfig(), {"a": 3})

    async def answers(name: str, *arguments: Any) -> Any:
        return getattr(control, name)(*arguments)

    async def body() -> None:
        calls = RayControl(Handle(answers))
        await calls.born("p", "n")
        assert await calls.begin("p", ("a", "b")) == {"a": ("go", 1), "b": ("go", 1)}
        assert await calls.begin("p", [], ended=["a"], together=True) == {}
        await calls.missed("p", "b")
        assert (await calls.report("p", {"a": tally(3)}, 1, reason="so", pilot=True)).stopped == ()
        assert await calls.gate("a") == "open"
        assert control.look().reasons == ("so",)

    asyncio.run(body())


def test_a_control_that_is_late_or_dead_ends_the_job_and_says_so() -> None:
    async def late(*_: Any) -> None:
        await asyncio.sleep(60)

    async def dead(*_: Any) -> None:
        raise ActorDiedError

    async def wrong(*_: Any) -> None:
        raise KeyError("a fault of ours")

    async def own(*_: Any) -> None:
        raise TimeoutError("not the call's")

    async def body() -> None:
        for answers, words in ((late, "did not answer in 0.01 s"), (dead, "ActorDiedError")):
            with pytest.raises(EngineError, match=words) as told:
                await RayControl(Handle(answers), seconds=0.01).gate("a")
            assert "control actor is gone" in str(told.value) and "run the same command" in str(told.value)
        with pytest.raises(KeyError):
            await RayControl(Handle(wrong)).gate("a")
        with pytest.raises(TimeoutError, match="not the call's"):
            await RayControl(Handle(own)).gate("a")

    asyncio.run(body())
