"""The same command twice, and two commands at once: nothing is passed over, and no two runs start from one base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from since_nights import Nights, table_of

from pipeline.errors import RunChangedError
from pipeline.runtime.since import last_run
from pipeline.runtime.store import open_store

MON = [("a", "1"), ("b", "bad"), ("c", "doubtful"), ("d", "4")]


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def last(nights: Nights) -> Any:
    return last_run(open_store(str(nights.folder / "out")), "nightly")


def test_what_was_asked_for_is_done_and_what_else_came_up_is_not(nights: Nights) -> None:
    """The same command with `--again` again: it has nothing to do only if nothing else happened."""
    nights.night(MON)
    first = last(nights)
    again = nights.night(MON, again=["rejected"])
    assert again is not None and (again["asked"], again["unchanged"]) == (1, 3)
    assert nights.night(MON, again=["rejected"]) is None
    for entry in list(first.store.list()):
        first.store.delete(entry.key)
    found = nights.night(MON, again=["rejected"])
    assert found is not None and found["lost"] == 3
    assert nights.table() == table_of(MON)
    new = [*MON, ("e", "5")]
    assert nights.night(new, again=["rejected"]) is not None
    assert nights.table() == table_of(new)


def test_a_run_that_is_overtaken_after_its_index_was_written_is_not_committed(nights: Nights) -> None:
    nights.night(MON)
    slow = nights.begin([*MON, ("e", "5")])
    assert slow is not None
    since, run = slow
    told = since.finish(run)
    assert nights.night([*MON, ("f", "6")]) is not None
    with pytest.raises(RunChangedError, match="Run the same command again"):
        nights.publish(since, run, told)
    assert nights.table() == table_of([*MON, ("f", "6")])


def test_two_drivers_of_one_run_do_not_overwrite_each_others_index(nights: Nights) -> None:
    nights.night(MON)
    tue = [*MON[:3], ("e", "5")]
    one, other = nights.begin(tue), nights.begin(tue)
    assert one is not None and other is not None and one[1].identity == other[1].identity
    early, late = one[0].finish(one[1]), other[0].finish(other[1])
    nights.publish(*one, early)
    assert {part["path"] for part in early["index"]}.isdisjoint(part["path"] for part in late["index"])
    assert nights.table() == table_of(tue)
    assert nights.night(tue) is None
