"""Jobs in processes that can be killed: whatever a job does, its result says so and the next job is untouched."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sandbox_jobs import LONG, bare, gone, job, until, written

from pipeline.compile.sandbox import Job, Limits, Sandbox
from pipeline.errors import EngineError


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with bare(workers=2) as opened:
        yield opened


ENDS: list[tuple[str, Any, str, str]] = [
    ("echo", {"a": [1, None, "ü\ud800"]}, "ok", ""),
    ("raise", None, "error", "ZeroDivisionError: division by zero"),
    ("not_json", None, "error", "not JSON serializable"),
    ("nan", None, "error", "not JSON compliant"),
    ("recurse", None, "error", "RecursionError"),
    ("deep", 100_000, "error", "RecursionError"),
    ("huge", 70 << 20, "error", "larger than 64 MiB"),
    ("no_such_job", None, "error", "no job self_test_no_such_job"),
    ("sleep", 60, "timeout", "killed after 1.0 s"),
    ("allocate", {"mib": 2000}, "memory", "256 MiB"),
    ("library_allocate", None, "memory", "bad_alloc"),
    ("kill", signal.SIGKILL, "memory", "not by the sandbox"),
    ("kill", signal.SIGTERM, "crash", "SIGTERM"),
    ("abort", None, "crash", "SIGABRT"),
    ("segfault", None, "crash", "SIGSEGV; it printed: last words"),
    ("stack_overflow", None, "crash", "SIGSEGV"),
    ("exit", 0, "crash", "status 0 and without an answer"),
    ("exit", 3, "crash", "status 3"),
    ("sys_exit", 3, "crash", "SystemExit: 3"),
]


@pytest.mark.parametrize(("name", "payload", "kind", "words"), ENDS, ids=[f"{end[0]}-{end[1]}"[:20] for end in ENDS])
def test_every_end_is_told_and_the_next_job_runs(
    sandbox: Sandbox, name: str, payload: Any, kind: str, words: str
) -> None:
    result = sandbox.call(job(name, payload, *([LONG] if name == "huge" else [])))
    assert (result.kind, words in result.words) == (kind, True), result
    assert result.value == (payload if kind == "ok" else None)
    assert len(result.words) <= 2100
    assert sandbox.call(job("echo", 1)).value == 1


def test_a_limit_on_processor_time(sandbox: Sandbox) -> None:
    result = sandbox.call(job("burn", None, Limits(30, 256, cpu_seconds=1)))
    assert result.kind == "timeout"
    assert "1 s of processor time" in result.words
    assert result.seconds < 20


def test_what_is_printed_is_kept_at_its_end_and_cannot_spoil_the_answer(sandbox: Sandbox) -> None:
    result = sandbox.call(job("print", 300_000))
    assert (result.kind, result.value) == ("ok", 300_000)
    assert len(result.words) <= 2000
    assert result.words.endswith("the end") or result.words.endswith("x")


def test_memory_and_time_are_measured(sandbox: Sandbox) -> None:
    small, large = sandbox.call(job("echo")), sandbox.call(job("allocate", {"mib": 150}))
    assert small.peak_mib < 30
    assert 140 < large.peak_mib < 200
    assert 0.9 < sandbox.call(job("sleep", 60)).seconds < 30


def test_results_come_in_order_while_workers_run_side_by_side(sandbox: Sandbox) -> None:
    naps = [0.8, 0.1, 0.2, 0.1, 0.2, 0.1]
    slept = [result.value for result in sandbox.map(job("sleep", nap) for nap in naps)]
    assert [nap for nap, _, _ in slept] == naps
    (_, _, first_ends), *others = slept
    assert any(begins < first_ends for _, begins, _ in others)


def test_a_slow_first_job_does_not_let_the_others_run_ahead_for_ever(sandbox: Sandbox) -> None:
    taken = []

    def endless() -> Iterator[Job]:
        yield job("sleep", 1.5, LONG)
        while True:
            taken.append(1)
            yield job("echo", len(taken))

    results = sandbox.map(endless())
    assert next(results).value[0] == 1.5
    assert [next(results).value for _ in range(4)] == [1, 2, 3, 4]
    assert len(taken) <= 40
    results.close()


def test_a_map_that_is_dropped_stops_its_jobs(sandbox: Sandbox, tmp_path: Path) -> None:
    results = sandbox.map([job("echo"), job("children", str(tmp_path / "pids"), LONG)])
    next(results)
    pids = written(tmp_path / "pids", 2)
    results.close()
    assert until(lambda: gone(*pids))
    assert sandbox.call(job("echo", 7)).value == 7


def test_a_job_inside_the_loop_over_others_gets_its_own_result(sandbox: Sandbox) -> None:
    for number, result in enumerate(sandbox.map(job("echo", n) for n in range(4))):
        assert result.value == number
        assert sandbox.call(job("echo", -number)).value == -number


def test_threads_may_share_it(sandbox: Sandbox) -> None:
    found: dict[int, list[Any]] = {}

    def work(me: int) -> None:
        found[me] = [result.value for result in sandbox.map(job("echo", [me, n]) for n in range(20))]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert found == {me: [[me, n] for n in range(20)] for me in range(3)}


def test_a_time_out_takes_the_jobs_own_children_too(sandbox: Sandbox, tmp_path: Path) -> None:
    result = sandbox.call(job("children", str(tmp_path / "pids")))
    assert result.kind == "timeout"
    assert until(lambda: gone(*written(tmp_path / "pids", 2)))


def test_a_job_that_blocks_signals_is_killed_all_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    assert sandbox.call(job("hang", str(tmp_path / "pid"))).kind == "timeout"
    assert until(lambda: gone(*written(tmp_path / "pid")))


def test_jobs_have_one_thread_and_no_descriptors_of_others(sandbox: Sandbox) -> None:
    counts = {tuple(result.value) for result in sandbox.map(job("thread") for _ in range(6))}
    assert len({threads for threads, _ in counts} - {1}) == 0
    assert max(open_files for _, open_files in counts) <= 7


def test_large_payloads_and_answers_cross_without_blocking_each_other(sandbox: Sandbox) -> None:
    text = "x" * (3 << 20)
    assert [result.value == text for result in sandbox.map(job("echo", text, LONG) for _ in range(6))] == [True] * 6


def test_a_zygote_that_dies_is_replaced_once(tmp_path: Path) -> None:
    with bare(workers=2) as own:
        jobs = [job("kill_zygote", str(tmp_path / "mark"), LONG), job("sleep", 0.1, LONG), job("echo", 3, LONG)]
        again, slept, echoed = [result.value for result in own.map(jobs)]
        assert (again, slept[0], echoed) == ("second time", 0.1, 3)
        with pytest.raises(EngineError, match="lost, also after a restart"):
            own.call(job("kill_zygote"))
        assert own.call(job("echo", 4)).value == 4


def test_a_zygote_that_is_killed_between_jobs_is_replaced() -> None:
    with bare() as own:
        for _ in range(2):
            os.kill(own.start().pid, signal.SIGKILL)
            assert own.call(job("echo", 1)).value == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sandbox("/nowhere/model"), "model not found"),
        (lambda: Sandbox(None, 1, ("no_such_module",)), "no_such_module"),
        (lambda: Sandbox(None, 1, ("json",)), "JOBS"),
    ],
)
def test_a_sandbox_that_cannot_start_says_why(make: Callable[[], Sandbox], words: str) -> None:
    with make() as broken, pytest.raises(EngineError, match=words):
        broken.call(job("echo"))


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": 1e9}, {"memory_mib": 100}, {"cpu_seconds": 0}])
def test_limits_that_cannot_work_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="256 MiB or more"):
        Limits(**limits)
