"""Any nights, with crashes, repeated ids and requests, leave the table that a whole run on the last input leaves."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from since_nights import CrashError, Fate, Nights, Rows, table_of

from pipeline.errors import OutputError, RunChangedError
from pipeline.runtime.since import choose

CONTENTS = st.sampled_from(["1", "2", "bad", "bad2", "doubtful"])
INPUT = st.lists(st.tuples(st.sampled_from("abcdef"), CONTENTS), min_size=1, max_size=8)
AGAIN = st.sampled_from([(), (), (), ("rejected",), ("degraded", "rejected"), ("all",), ("engine",)])
NIGHT = st.tuples(INPUT, AGAIN, st.integers(0, 1), st.sampled_from(["", "", "crash", "crash late"]))


@settings(max_examples=25, deadline=None)
@given(st.lists(NIGHT, min_size=1, max_size=5))
def test_any_nights_leave_the_table_of_a_whole_run(tmp_path_factory: Any, history: list[Any]) -> None:
    nights = Nights(tmp_path_factory.mktemp("nights"))
    seen: dict[tuple[str, str], str] = {}  # what was extracted before, by (id, content)
    for rows_of_night, again, seed, crash in history:
        engine = {"engine": {"engine": "sampler", "seed": seed}}
        before = nights.table() if seen else {}
        made, committed = _night(nights, rows_of_night, again, engine, crash)
        if crash and not committed:
            assert not seen or nights.table() == before
            made, _ = _night(nights, rows_of_night, again, engine, "")
        whole = table_of(rows_of_night)
        assert nights.table() == whole
        for one in made:
            known = (one, whole[one][1]) in seen
            assert not known or again, "an unchanged document was extracted again"
        needed = {one for one, (_, content) in whole.items() if before.get(one, ("", None))[1] != content}
        unseen = {one for one in needed if (one, whole[one][1]) not in seen}
        assert unseen <= set(made)
        if made or committed:
            seen = {(one, content): status for one, (status, content) in {**_as_table(seen), **whole}.items()}
        assert nights.night(rows_of_night, again=again, **engine) is None


def _as_table(seen: dict[tuple[str, str], str]) -> dict[str, tuple[str, str]]:
    """The newest content that was seen of each id."""
    return {one: (status, content) for (one, content), status in seen.items()}


def _night(nights: Nights, rows_of_night: Rows, again: Any, engine: Any, crash: str) -> tuple[list[str], bool]:
    """What was extracted, and whether the night was committed."""
    begun = nights.begin(rows_of_night, again, **engine)
    made = list(nights.made)
    if begun is None:
        return made, False
    if crash == "crash late":
        begun[0].finish(begun[1])
    if crash:
        return made, False
    nights.commit(*begun)
    return made, True


@pytest.mark.parametrize("error", [CrashError, OSError])
def test_wherever_the_end_of_a_night_dies_the_next_try_commits_it_once(tmp_path_factory: Any, error: Any) -> None:
    monday, tuesday = [("a", "1"), ("b", "bad"), ("c", "3")], [("a", "1"), ("b", "new"), ("d", "4"), ("d", "5")]
    last, met = 0, True
    while met:
        last += 1
        for after in (False, True):
            nights = Nights(tmp_path_factory.mktemp("nights"))
            nights.night(monday)
            nights.fate = fate = Fate(last, after, error)
            with contextlib.suppress(CrashError, OutputError):  # an effect that was reported as none may be found out
                nights.night(tuesday)
            nights.fate = Fate()
            found = nights.night(tuesday)
            assert found is None or found["sequence"] == 2
            assert nights.table() == table_of(tuesday)
            assert nights.night(tuesday) is None
            met = fate.effects >= last
    assert last == 5  # one more than there are: the number, two files, the manifest


def test_a_run_that_is_overtaken_while_it_writes_its_index_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights, real = Nights(tmp_path), choose.made
    nights.night([("a", "1")])

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(choose, "made", real)
        Nights(tmp_path).night([("a", "1"), ("b", "2")])
        yield from real(*arguments)

    monkeypatch.setattr(choose, "made", overtaken)
    with pytest.raises(RunChangedError, match="Run the same command again"):
        nights.night([("a", "1"), ("c", "3")])
    assert nights.table() == table_of([("a", "1"), ("b", "2")])


def test_what_is_gone_returns_as_good_as_its_row_is(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    monday = [("a", "1"), ("b", "bad"), ("c", "3")]
    first = nights.begin(monday)
    assert first is not None
    nights.commit(*first)
    assert nights.night(monday[:1], again=["rejected"]) is not None
    back = nights.night(monday[:2])
    assert back is not None and back["returned"] == 1 and nights.made == []
    assert nights.night(monday[:1]) is not None
    nights.night(monday[:2], again=["rejected"])
    assert nights.made == ["b"], "returned, and asked for"
    for entry in list(first[1].store.list()):
        first[1].store.delete(entry.key)
    nights.night(monday)
    assert sorted(nights.made) == ["a", "c"], "c was gone, and so is its row"
    assert nights.table() == table_of(monday)
