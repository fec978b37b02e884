"""What finished before a kill is found again, and nothing else ever passes for it."""

from __future__ import annotations

import dataclasses
import errno
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import plan_of

from pipeline.errors import OutputError
from pipeline.records import Attempt, Clipped, Document, Field, Outcome, Problem, Repair
from pipeline.runtime.input import read_unit
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.output.outcomes import from_bytes, outcome_of, to_bytes

TEXT = st.text(st.characters(), max_size=6)  # half surrogate pairs, too: raw model text may hold them
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def objects(store: Any) -> list[str]:
    return [entry.key for entry in store.list("_journal/")]


@pytest.fixture
def unit(work: Any) -> Any:
    return work.found.units[0]


@pytest.fixture
def documents(work: Any, unit: Any) -> list[Document]:
    return read_unit(unit, work.job.input)


@pytest.fixture
def outcomes(work: Any, unit: Any) -> dict[int, Outcome]:
    return dict(enumerate(work.outcomes(unit)))


@given(VALUES, TEXT)
def test_outcomes_come_back_as_they_were(record: Any, text: str) -> None:
    attempt = Attempt(1, "e", "p", True, "stop", "", 1, 0, 2, 0.25, 0.5, text, 300, 0.5, 2**70)
    fields = (Field("/k/0", "fuzzy", 3, 5, 0.5, text, True, 0.25), Field(""))
    outcome = Outcome("d", "s#1", "r@1", "valid", 2, record, (Problem("no_json", text, text, 1, "observe"),))
    outcome = dataclasses.replace(
        outcome, repairs=(Repair("k", "", text, 1),), attempts=(attempt,), fields=fields, confidence=0.125
    )
    place = Clipped(text, "value", 3, 0.125, 0.0625)
    outcome = dataclasses.replace(outcome, audit="done", clipped=(place, Clipped("", "blank", 1, 1.0, 1.0)))
    line = to_bytes(outcome)
    assert b"\n" not in line
    assert outcome_of(from_bytes(line)) == outcome


def test_what_an_older_version_saved_is_read(outcomes: Any) -> None:
    row = from_bytes(to_bytes(outcomes[0]))
    for name in ("audit", "clipped"):
        del row[name]
    assert outcome_of(row) == outcomes[0]


def test_what_was_saved_is_read_by_another_process(work: Any, unit: Any, documents: Any, outcomes: Any) -> None:
    store = work.open().store
    journal = Journal(store, unit, work.plans)
    assert journal.read(documents) == {}
    journal.save({0: outcomes[0], 3: outcomes[3]})
    journal.save({1: outcomes[1]})
    journal.save({})
    found = Journal(store, unit, work.plans).read(documents)
    assert found == {row: outcomes[row] for row in (0, 1, 3)}
    assert len(objects(store)) == 2
    assert Journal(store, work.found.units[1], work.plans).read(documents) == {}


def test_an_object_that_is_not_as_it_was_written_is_passed_over(
    work: Any, unit: Any, documents: Any, outcomes: Any
) -> None:
    store = work.open().store
    journal = Journal(store, unit)
    journal.save({0: outcomes[0], 1: outcomes[1]})
    (key,) = objects(store)
    journal.save({2: outcomes[2]})
    data = store.get(key)
    for where in (0, 10, 25, 45, 60, 130, len(data) - 200, len(data) - 1):
        before, one, after = data[:where], data[where : where + 1], data[where + 1 :]
        for spoilt in (before, before + bytes([one[0] ^ 1]) + after, before + after, before + one + one + after):
            store.put(key, spoilt)
            assert Journal(store, unit).read(documents) == {2: outcomes[2]}
    store.put(key, data)
    assert Journal(store, unit).read(documents) == {row: outcomes[row] for row in range(3)}


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"\xff" * 500, b"gristmill-journal-1 000000 " + b"9" * 30 + b" x\n"]
)
def test_an_object_of_something_else_is_passed_over(
    work: Any, unit: Any, documents: Any, outcomes: Any, content: bytes
) -> None:
    store = work.open().store
    Journal(store, unit).save({4: outcomes[4]})
    store.put(f"_journal/{unit.id}/other.jsonl.zst", content)
    assert Journal(store, unit).read(documents) == {4: outcomes[4]}


def test_an_object_of_another_unit_is_passed_over(work: Any, unit: Any, documents: Any, outcomes: Any) -> None:
    store = work.open().store
    Journal(store, unit).save(outcomes)
    (key,) = objects(store)
    other = work.found.units[1]
    store.put(key.replace(unit.id, other.id), store.get(key))
    assert Journal(store, other).read(documents) == {}


@pytest.mark.parametrize("change", [{"id": "other"}, {"schema": "other@1"}, {"text": "other text"}, "plan", "row"])
def test_an_outcome_of_another_document_or_of_other_work_is_passed_over(
    work: Any, unit: Any, documents: Any, outcomes: Any, change: Any
) -> None:
    store, plans = work.open().store, work.plans
    Journal(store, unit).save(outcomes)
    if change == "plan":
        plans = {"receipt@1": plan_of({"type": "object", "properties": {"x": {"type": "string"}}})}
        assert Journal(store, unit, plans).read(documents) == {}
    elif change == "row":
        Journal(store, unit).save({-1: outcomes[0], 5: outcomes[0], 1: outcomes[0]})
        assert Journal(store, unit, plans).read(documents) == outcomes
        assert set(Journal(store, unit, plans).read(documents[:2])) == {0, 1}
    else:
        changed = dataclasses.replace(documents[1], **change)
        found = Journal(store, unit, plans).read([documents[0], changed, *documents[2:]])
        assert set(found) == {0, 2, 3, 4}


def test_the_source_is_how_the_document_is_called_today(work: Any, unit: Any, documents: Any, outcomes: Any) -> None:
    store = work.open().store
    Journal(store, unit).save(outcomes)
    moved = [dataclasses.replace(document, source=f"elsewhere/{document.source}") for document in documents]
    found = Journal(store, unit, work.plans).read(moved)
    assert [found[row].source for row in sorted(found)] == [document.source for document in moved]


def test_a_document_without_a_schema_is_saved_like_any_other(work: Any, unit: Any, documents: Any) -> None:
    from pipeline.schema.plan import NO_PLAN
    from pipeline.steps.route import failed

    store = work.open().store
    stray = dataclasses.replace(documents[0], schema="")
    outcome = failed(stray, NO_PLAN, (), ValueError("x"))
    Journal(store, unit).save({0: outcome})
    assert Journal(store, unit, work.plans).read([stray]) == {0: outcome}


def test_one_outcome_that_json_cannot_hold_costs_only_itself(
    work: Any, unit: Any, documents: Any, outcomes: Any
) -> None:
    store = work.open().store
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    spoilt = {0: dataclasses.replace(outcomes[0], record={1j}), 1: dataclasses.replace(outcomes[1], record=deep)}
    Journal(store, unit).save(spoilt)
    assert objects(store) == []
    Journal(store, unit).save({**spoilt, 2: outcomes[2]})
    assert Journal(store, unit).read(documents) == {2: outcomes[2]}


def broken(operation: str, start: str = "") -> Any:
    def hook(name: str, key: str = "", *_: Any) -> None:
        if name == operation and key.startswith(start):
            raise OSError(errno.EIO, "Input/output error")

    return hook


def test_a_store_that_fails_is_told_and_one_bad_object_is_not_fatal(
    work: Any, unit: Any, documents: Any, outcomes: Any, faulty: Any
) -> None:
    run = work.open()
    with pytest.raises(OutputError, match=r"cannot write finished documents of unit 000000 .*Input/output error"):
        Journal(faulty(run, before=broken("put")).store, unit).save(outcomes)
    Journal(run.store, unit).save({0: outcomes[0]})
    (bad,) = objects(run.store)
    Journal(run.store, unit).save({1: outcomes[1]})
    assert Journal(faulty(run, before=broken("get", bad)).store, unit).read(documents) == {1: outcomes[1]}
    with pytest.raises(OutputError, match="cannot look into"):
        Journal(faulty(run, before=broken("list")).store, unit).read(documents)


def test_clearing_removes_what_was_read_and_saved_and_asks_for_nothing_else(
    work: Any, unit: Any, documents: Any, outcomes: Any, faulty: Any
) -> None:
    run = work.open()
    Journal(run.store, unit).save({0: outcomes[0]})
    calls: list[str] = []
    journal = Journal(faulty(run, after=lambda name, *_: calls.append(name)).store, unit)
    journal.read(documents)
    journal.save({1: outcomes[1]})
    Journal(run.store, unit).save({2: outcomes[2]})  # by a process that does not know that it lost
    calls.clear()
    journal.clear()
    assert calls == ["delete", "delete"]
    assert Journal(run.store, unit).read(documents) == {2: outcomes[2]}
    stuck = Journal(faulty(run, before=broken("delete")).store, unit)
    stuck.read(documents)
    stuck.clear()
    assert len(objects(run.store)) == 1


def test_what_another_session_saved_is_news_and_what_this_one_did_is_not(
    work: Any, unit: Any, documents: Any, outcomes: Any
) -> None:
    """Whoever counts outcomes counts each once, however often their process died."""
    run = work.open()
    Journal(run.store, unit, work.plans, "last").save({0: outcomes[0], 1: outcomes[1]})
    Journal(run.store, unit, work.plans, "this").save({1: outcomes[1], 2: outcomes[2]})
    journal = Journal(run.store, unit, work.plans, "this")
    assert sorted(journal.read(documents)) == [0, 1, 2]
    assert journal.news == {0}
