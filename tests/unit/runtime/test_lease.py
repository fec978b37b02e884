"""One driver at a run: who gets it, who does not, and how a dead one is told from a slow one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import OutputError, RunBusyError
from pipeline.runtime.lease import TTL_SECONDS, Beating, Lease, held
from pipeline.runtime.store import LocalStore, Store, json_object, open_store


class Clock:
    """Time that passes only in `sleep`. `meanwhile` runs in each; `jump` is what a pause of this process adds."""

    def __init__(self, meanwhile: Callable[[], Any] = lambda: None, jump: float = 0) -> None:
        self.now, self.slept = 1e6, 0.0
        self.meanwhile, self.jump = meanwhile, jump

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.jump
        self.slept += seconds
        self.meanwhile()

    def acquire(self, store: Store) -> Lease:
        return Lease.acquire(store, sleep=self.sleep, monotonic=lambda: self.now)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "run=1"))


def pretend(store: Store, epoch: int, **changes: Any) -> None:
    """Make a lease look as if somebody else held it."""
    key = f"_lease/{epoch:06d}.json"
    store.put(key, json.dumps({**(json_object(store.get(key)) or {}), **changes}).encode())


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_run_that_nobody_holds_or_that_was_released_is_had_at_once(store: Store) -> None:
    clock = Clock()
    first = clock.acquire(store)
    first.release()
    second = clock.acquire(store)
    assert (first.epoch, second.epoch, clock.slept) == (1, 2, 0)
    assert second.beat()


def test_a_living_holder_keeps_the_run_and_is_named(store: Store) -> None:
    holder = Clock().acquire(store)
    clock = Clock(holder.beat)
    with pytest.raises(RunBusyError) as caught:
        clock.acquire(store)
    assert clock.slept < 10
    started = (json_object(store.get("_lease/000001.json")) or {})["started"]
    for words in (store.where, f"process {os.getpid()} on ", started, "run the same command"):
        assert words in str(caught.value)
    assert holder.beat()


def test_a_silent_holder_loses_the_run_after_the_ttl_and_notices_when_it_wakes(store: Store) -> None:
    asleep = Clock().acquire(store)
    clock = Clock()
    assert clock.acquire(store).epoch == 2
    assert TTL_SECONDS <= clock.slept <= TTL_SECONDS + 5
    assert not asleep.beat()
    for name in ("_lease/000002.json", "_lease/000001.json"):  # as others may have swept until it wakes
        store.put("_lease/000003.json", store.get(name) or b"{}")
        store.delete(name)
        assert not asleep.beat()
    store.put("_lease/000002.json", store.get("_lease/000003.json") or b"")
    store.delete("_lease/000003.json")
    asleep.release()  # says nothing about who holds it now
    with pytest.raises(RunBusyError):
        Clock(lambda: store.put("_lease/000002.beat", os.urandom(4))).acquire(store)


def test_a_holder_that_never_beat_is_watched_too(store: Store) -> None:
    Clock().acquire(store)
    store.delete("_lease/000001.beat")
    clock = Clock()
    assert clock.acquire(store).epoch == 2
    assert clock.slept >= TTL_SECONDS


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_jump_of_the_watchers_clock_is_no_silence_of_the_holder(store: Store, jump: float) -> None:
    """The watcher, or the machine of both, was stopped for an hour: it has seen nothing in that time."""
    holder = Clock().acquire(store)
    clock = Clock(jump=jump)

    def meanwhile() -> None:
        clock.jump = 0
        if clock.slept >= 6:
            holder.beat()

    clock.meanwhile = meanwhile
    with pytest.raises(RunBusyError):
        clock.acquire(store)


def test_wall_clocks_are_not_asked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Clock().acquire(store)
    pretend(store, 1, started="2999-01-01T00:00:00+00:00", host="elsewhere", machine="elsewhere")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with pytest.raises(RunBusyError, match="on elsewhere, since 2999"):
        Clock(holder.beat).acquire(store)


@pytest.mark.parametrize("reused", [False, True])
def test_a_holder_of_this_machine_whose_process_is_gone_is_not_waited_for(store: Store, reused: bool) -> None:
    """Also if its number is another process's by now."""
    Clock().acquire(store)
    pretend(store, 1, **({"pid_started": "1"} if reused else {"pid": dead_process()}))
    clock = Clock()
    assert (clock.acquire(store).epoch, clock.slept) == (2, 0)


@pytest.mark.parametrize("changes", [{"machine": "another"}, {"machine": ""}, {"pid_started": ""}])
def test_a_process_number_of_elsewhere_says_nothing(store: Store, changes: dict[str, str]) -> None:
    Clock().acquire(store)
    pretend(store, 1, pid=dead_process(), **changes)
    clock = Clock()
    clock.acquire(store)
    assert clock.slept >= TTL_SECONDS


def test_who_watches_sees_a_release_and_a_quicker_watcher(store: Store) -> None:
    holder = Clock().acquire(store)
    clock = Clock(holder.release)
    assert clock.acquire(store).epoch == 2
    assert clock.slept < 10
    clock = Clock(lambda: store.create("_lease/000003.json", b"{}"))
    with pytest.raises(RunBusyError):
        clock.acquire(store)
    assert clock.slept < 10


def test_of_two_who_come_at_once_one_gets_the_run(store: Store) -> None:
    """Both begin with nothing there, then both have watched a dead holder to the end."""
    for epoch in (1, 2):
        together = threading.Barrier(2)

        class Together(LocalStore):
            def create(self, key: str, data: bytes) -> bool:
                if b"attempt" in data:
                    together.wait(5)  # noqa: B023
                return super().create(key, data)

        got: list[Lease | RunBusyError] = []

        def come() -> None:
            try:
                got.append(Clock().acquire(Together(store.where, store.where)))  # noqa: B023
            except RunBusyError as error:
                got.append(error)  # noqa: B023

        threads = [threading.Thread(target=come) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(type(one).__name__ for one in got) == ["Lease", "RunBusyError"]
        assert [one.epoch for one in got if isinstance(one, Lease)] == [epoch]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"pid": "x"}', b"\xff"])
def test_a_lease_that_cannot_be_read_is_watched(store: Store, content: bytes) -> None:
    store.put("_lease/000007.json", content)
    clock = Clock()
    assert clock.acquire(store).epoch == 8
    assert clock.slept >= TTL_SECONDS
    store.put("_lease/000008.json", content)
    with pytest.raises(RunBusyError, match="_lease/"):
        Clock(lambda: store.put("_lease/000008.beat", os.urandom(4))).acquire(store)


def test_storage_that_replaces_where_it_should_create_is_refused(tmp_path: Path) -> None:
    class Careless(LocalStore):
        def create(self, key: str, data: bytes) -> bool:
            self.put(key, data)
            return True

    with pytest.raises(OutputError, match="does not create objects exclusively"):
        Clock().acquire(Careless(str(tmp_path), "there"))


def test_storage_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="_lease"):
        Clock().acquire(open_store(str(tmp_path / "out")))


def test_beating_goes_on_through_failures_and_tells_when_the_run_is_lost(tmp_path: Path) -> None:
    class Failing(LocalStore):
        failures = 3

        def put(self, key: str, data: bytes) -> None:
            if key.endswith(".beat") and data != b"1" and self.failures:
                self.failures -= 1
                raise OSError("no answer")
            super().put(key, data)

    store = Failing(str(tmp_path), "there")
    lease = Clock().acquire(store)
    with Beating(lease, every=0.01) as beating:
        until = time.monotonic() + 5
        while store.get("_lease/000001.beat") == b"1" and time.monotonic() < until:
            time.sleep(0.01)
        assert store.get("_lease/000001.beat") != b"1"
        assert not beating.lost.is_set()
        store.put("_lease/000002.json", b"{}")
        assert beating.lost.wait(5)
    count = store.get("_lease/000001.beat")
    time.sleep(0.05)
    assert store.get("_lease/000001.beat") == count


def test_a_run_is_held_for_a_block_and_free_after_it_however_it_ends(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), held(store) as lease:
        lease.check()
        raise ZeroDivisionError
    clock = Clock()
    assert (clock.acquire(store).epoch, clock.slept) == (2, 0)


def test_a_driver_that_lost_the_run_is_told_who_has_it(store: Store) -> None:
    with held(store) as lease:
        pretend(store, 2, **{**(json_object(store.get("_lease/000001.json")) or {}), "host": "elsewhere"})
        lease.lost.set()
        with pytest.raises(RunBusyError, match="on elsewhere"):
            lease.check()
