"""A committed run's `metrics.prom`, a control's counts by label; a run goes on whatever becomes of its metrics."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.errors import GristmillError
from pipeline.jobplacement import StopConfig
from pipeline.observe.metrics.labels import SchemaLabels
from pipeline.observe.metrics.numbers import Numbers
from pipeline.observe.tally import Tally
from pipeline.runtime.live import Live
from pipeline.runtime.setup import Setup
from pipeline.runtime.supervise.control import Control


def kept(run: Any) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """The series of a run's file by name."""
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(run.store.get("metrics.prom").decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def of(status: str) -> frozenset[tuple[str, str]]:
    return frozenset({("job", "t"), ("schema", "receipt@1"), ("status", status)})


def test_the_file_tells_what_the_manifest_counts(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    manifest = run.commit(work.found, {"receipt@1": "digest"}, speeds={"receipt@1": {"compile": 0.5, "99": 0.001}})
    assert manifest.totals["metrics"] == {"file": "metrics.prom"}
    found = kept(run)
    assert {key: found["gristmill_documents_total"][of(key)] for key in manifest.counts} == manifest.counts
    required = {dict(labels)["state"]: value for labels, value in found["gristmill_required_values_total"].items()}
    assert required == manifest.totals["required"]
    assert found["gristmill_compile_seconds"][of("") - {("status", "")}] == 0.5
    job = frozenset({("job", "t")})
    assert found["gristmill_run_up"][job] == 0
    assert found["gristmill_run_units_done"][job] == found["gristmill_run_units"][job] == 3
    (info,) = found["gristmill_run_info"]
    assert {("engine", "sampler"), ("placement", "local"), ("ray", manifest.versions["ray"])} <= info


def failing(*operations: str, key: str) -> Callable[..., None]:
    def fail(operation: str, *arguments: Any) -> None:
        if operation in operations and arguments[0] == key:
            raise OSError(5, "storage is away")

    return fail


def test_a_crash_before_the_manifest_loses_no_file(work: Any, faulty: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    torn = faulty(run, before=failing("create", key="manifest.json"))
    with pytest.raises(GristmillError):
        torn.commit(work.found, {"receipt@1": "digest"})
    run.store.put("metrics.prom", b"half of")
    manifest = work.open().commit(work.found, {"receipt@1": "digest"})
    assert manifest.totals["metrics"] == {"file": "metrics.prom"}
    assert kept(run)["gristmill_run_up"]


def test_a_run_is_committed_although_its_metrics_cannot_be_written(
    work: Any, faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    manifest = faulty(run, before=failing("put", key="metrics.prom")).commit(work.found, {"receipt@1": "digest"})
    assert "storage is away" in manifest.totals["metrics"]["failed"]
    assert "committed without it" in caplog.text
    assert work.open().manifest() is not None


def test_records_of_an_earlier_version_still_count(work: Any) -> None:
    run = work.open()
    for unit in work.found.units:
        work.write(run, unit)
    new = ("required", "left", "queue_ms", "generation_ms", "answer_tokens", "document_answers", "exhausted")
    for unit in work.found.units:
        key = f"_commits/{unit.id}.json"
        record = json.loads(run.store.get(key))
        record["tally"] = {name: value for name, value in record["tally"].items() if name not in new}
        run.store.put(key, json.dumps(record).encode())
    manifest = run.commit(work.found, {"receipt@1": "digest"})
    assert sum(kept(run)["gristmill_documents_total"].values()) == manifest.documents


def test_the_control_counts_by_label_and_by_no_more() -> None:
    names = [f"s{number}@1" for number in range(5)]
    control = Control(StopConfig(), labels=SchemaLabels(dict.fromkeys(names, 1), names, most=2))
    one = Tally(documents=3)
    for name in [*names, "made up 1", "made up 2", ""]:
        control.report("p", {name: one.to_json()})
    counted = {label: tally["documents"] for label, tally in control.by_label().items()}
    assert counted == {"s0@1": 3, "s1@1": 3, "other": 9, "unknown": 6, "none": 3}
    assert control.look().total["documents"] == sum(counted.values())


class Heard:
    """Keeps what a run is told; `fails` raises on numbers."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.numbers: list[Numbers] = []
        self.warned: list[str] = []

    def __call__(self, event: str, value: Any) -> None:
        if event == "warned":
            self.warned.append(value)
        elif self.fails:
            raise RuntimeError("a listener's fault")
        else:
            self.numbers.append(value)


def live(work: Any, heard: Heard, done: int = 1) -> Live:
    async def extract(*_: Any) -> Any: ...

    setup = Setup(work.job, work.plans, work.open().store, "r", None, extract)
    return Live(setup, work.found, done, heard)


def test_what_fails_is_told_once_and_ends_nothing(work: Any) -> None:
    for heard, ask in ((Heard(fails=True), dict), (Heard(), _gone)):
        watched = live(work, heard)
        look = Control(StopConfig()).look()
        watched.show(look, ask, now=True)
        watched.show(look, ask, now=True)
        (words,) = heard.warned
        assert "the run goes on" in words


def _gone() -> dict[str, Any]:
    raise ConnectionError("the control is gone")


def test_units_of_earlier_commands_count_as_done(work: Any) -> None:
    heard = Heard()
    watched = live(work, heard, done=2)
    look = dataclasses.replace(Control(StopConfig()).look(), done_units=1, poison=4)
    watched.show(look, lambda: {"receipt@1": Tally(documents=3).to_json()})
    watched.show(look, dict)  # not yet due
    (numbers,) = heard.numbers
    assert numbers.run is not None
    assert (numbers.run.units_done, numbers.run.units, numbers.run.poison_documents) == (3, 3, 4)
    assert numbers.schemas["receipt@1"].documents == 3
