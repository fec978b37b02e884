"""What metrics say of a tally, that their labels stay few, and that the page tells of each."""

from __future__ import annotations

import dataclasses
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from support import GOOD, Answers, completion, extracted, plan_of

from pipeline.errors import JobFileError
from pipeline.observe.buckets import DOCUMENT_ANSWERS, QUEUE_MS, histogram, put
from pipeline.observe.metrics.catalogue import METRICS, OF_JOB
from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.labels import INLINE, MOST, NONE, OTHER, TOGETHER, UNKNOWN, SchemaLabels
from pipeline.observe.metrics.numbers import Info, Numbers, RunState, by_label, numbers_of
from pipeline.observe.metrics.page import PAGE, page
from pipeline.observe.metrics.server import MetricsServer
from pipeline.observe.metrics.text import text_of
from pipeline.observe.tally import Tally
from pipeline.records import Clipped, Outcome, Problem

LIMITED = plan_of(
    {"type": "object", "properties": {"code": {"type": "string", "maxLength": 300}}, "required": ["code"]}
)
PLAN = plan_of()
STATE = RunState(1, 2.5, 9, 3, 1, 0, Info("1.0", "2.60.0", "sampler", "local"), 0.5, 2, 0)


def some_tally() -> Tally:
    """One of everything."""
    constrained: dict[str, Any] = {"constrained": True, "engine": "small", "queue_seconds": 0.02, "seconds": 0.3}
    total = Tally()
    wrong, right = ({"vendor": 5, "total": 1}, GOOD)
    total.add(extracted(Answers(completion(wrong, **constrained), completion(right, **constrained))), plan_of())
    total.add(extracted(Answers('{"vendor": "Ann", "total": 1,}', "no")), plan_of())
    total.add(extracted(Answers("no", "no, again")), plan_of())
    total.add(extracted(Answers(completion('{"vendor": "Ann", "total": 1, "li', "length"))), plan_of())
    total.add(extracted(Answers(completion({"code": "a" * 301}, **constrained)), LIMITED, max_attempts=1), LIMITED)
    clipped = (Clipped("/vendor", "value", 3, 0.5, 0.4), Clipped("/vendor", "structure", 4, 0.25, 0.2))
    total.add(dataclasses.replace(extracted(Answers(GOOD)), audit="done", clipped=clipped), plan_of())
    return total


def all_numbers() -> Numbers:
    speeds = {"receipt@1": {"compile": 0.2, "50": 2e-5, "99": 3e-4}}
    return dataclasses.replace(
        numbers_of("job", labels("receipt@1"), {"receipt@1": some_tally()}, speeds, STATE), http={200: 4}
    )


def labels(*names: str) -> SchemaLabels:
    return SchemaLabels(dict.fromkeys(names, 1), names)


def read(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Values by sample name and label values, those of `job` and `schema` left out."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            own = tuple(value for name, value in sorted(sample.labels.items()) if name not in ("job", "schema"))
            found.setdefault(sample.name, {})[own] = sample.value
    return found


def test_every_metric_of_the_catalogue_is_made_with_the_labels_that_it_promises() -> None:
    families = families_of(all_numbers())
    assert list(families) == list(METRICS)
    for name, series in families.items():
        assert {len(one.labels) for one in series} == {len(METRICS[name].labels)}
        assert len({one.labels for one in series}) == len(series)
    for metric in METRICS.values():
        assert re.fullmatch(r"gristmill_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") is (metric.type == "counter")
        assert ("schema" in metric.labels) is (metric.group not in OF_JOB)


def test_the_layers_have_counts_of_their_own() -> None:
    found = read(text_of(families_of(all_numbers())))
    assert found["gristmill_documents_total"] == {("valid",): 2, ("degraded",): 2, ("rejected",): 2}
    assert found["gristmill_answers_total"]["1", "small", "constrained"] == 2
    assert found["gristmill_answers_format_first_total"]["1", "small", "constrained"] == 2
    assert found["gristmill_answers_schema_total"]["1", "small", "constrained"] == 0
    assert found["gristmill_answers_truncated_total"]["1", "", "free"] == 1
    assert found["gristmill_resolved_documents_total"] == {("2", "valid"): 1}
    assert found["gristmill_left_violations_total"] == {("/code maxLength",): 1}
    assert found["gristmill_clipped_mass_total"] == {("structure",): 0.25, ("value",): 0.5}
    assert found["gristmill_clipped_tokens_total"] == {("structure",): 4, ("value",): 3}
    assert found["gristmill_audits_total"] == {("done",): 1}
    assert found["gristmill_document_answers_count"] == {(): 6}
    assert found["gristmill_queue_seconds_sum"] == {(): pytest.approx(0.06)}
    assert found["gristmill_queue_seconds_bucket"]["0.05",] == 10
    assert found["gristmill_run_engine_deaths_total"] == {(): 2}
    assert found["gristmill_endpoint_answers_total"] == {("200",): 4}


def test_what_an_alert_waits_for_is_there_before_it_happens() -> None:
    found = read(text_of(families_of(numbers_of("job", labels("a@1"), {}, {}))))
    assert found["gristmill_documents_total"] == {("valid",): 0, ("degraded",): 0, ("rejected",): 0}
    assert found["gristmill_problems_total"]["constraint_failed",] == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_wrong_with_the_text() -> None:
    text = text_of(families_of(all_numbers())).encode()
    found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (found.returncode, found.stderr) == (0, b"")


def test_a_thousand_schemas_have_few_labels_and_no_count_is_lost() -> None:
    names = [f"kind-{number}@1" for number in range(1000)]
    counts = {name: 2000 - number for number, name in enumerate(names)}
    chosen = SchemaLabels(counts, names)
    one = some_tally()
    tallies = dict.fromkeys([*names, "made up in a row", ""], one)
    numbers = numbers_of("job", chosen, by_label(chosen, tallies), {name: {"compile": 1.0} for name in names})
    assert set(numbers.schemas) == {*names[:MOST], OTHER, UNKNOWN, NONE}
    families = families_of(numbers)
    alone = families_of(numbers_of("job", labels("a@1"), {"a@1": one}, {"a@1": {"compile": 1.0}}))
    most = (MOST + 3) * sum(map(len, alone.values()))
    assert sum(map(len, families.values())) <= most
    assert sum(one.value for one in families["gristmill_documents_total"]) == 1002 * 6  # type: ignore[misc]
    assert {one.labels[2] for one in families["gristmill_left_violations_total"] if one.labels[1] in TOGETHER} == {
        "other"
    }


def test_a_schema_keeps_its_label_whatever_comes() -> None:
    names = [f"kind-{number}@1" for number in range(60)]
    chosen = SchemaLabels(dict.fromkeys(names, 5), names, most=3)
    total: dict[str, Tally] = {}
    before: dict[tuple[str, ...], float] = {}
    for turn in range(120):
        schema = names[59 - turn % 60]
        total.setdefault(schema, Tally()).add(extracted_once())
        now = {
            one.labels: one.value
            for one in families_of(numbers_of("job", chosen, by_label(chosen, total), {}))["gristmill_documents_total"]
        }
        assert all(now[key] >= value for key, value in before.items())  # type: ignore[operator]
        before = now  # type: ignore[assignment]
    assert len(before) == 3 * 4


_ONCE: list[Outcome] = []


def extracted_once() -> Outcome:
    if not _ONCE:
        _ONCE.append(extracted(Answers(GOOD)))
    return _ONCE[0]


def test_a_thousand_documents_with_errors_of_their_own_add_no_series() -> None:
    """Ids, messages, raw texts, made up pointers, and what they name as schema: none is in a label (F089)."""
    outcome = extracted(Answers(completion({"vendor": 5, "total": 1}, constrained=True)), max_attempts=1)

    def spoilt(number: int) -> Outcome:
        words = f"free text {number}"
        problem = Problem("schema_violation", f"/key {number}/{number}", f"{words}: must be", 1)
        attempts = tuple(dataclasses.replace(one, raw_text=words) for one in outcome.attempts)
        return dataclasses.replace(
            outcome, document_id=words, source=words, schema=words, problems=(problem,), attempts=attempts
        )

    def series(tallies: dict[str, Tally]) -> set[tuple[str, ...]]:
        chosen = labels("receipt@1")
        families = families_of(numbers_of("job", chosen, by_label(chosen, tallies), {}))
        return {(name, *one.labels) for name, ones in families.items() for one in ones}

    first = series({"free text 0": add_to(Tally(), spoilt(0))})
    tallies = {f"free text {number}": add_to(Tally(), spoilt(number)) for number in range(1000)}
    assert series(tallies) == first
    assert not any("free text" in value or "key" in value for labelled in first for value in labelled)


def add_to(tally: Tally, outcome: Outcome) -> Tally:
    tally.add(outcome, PLAN)
    return tally


def test_labels_of_many_schemas_are_no_schemas_name() -> None:
    assert not any("@" in label for label in TOGETHER)
    chosen = SchemaLabels({"a@1": 3, "": 2, "broken@1": 9}, {"a@1"})
    assert [chosen.of(name) for name in ("a@1", "", "broken@1", "else")] == ["a@1", NONE, UNKNOWN, UNKNOWN]
    assert INLINE in TOGETHER


@given(st.lists(st.integers(0, 400_000), max_size=40), st.integers(0, 40))
def test_a_histogram_holds_what_was_put_in_however_it_was_shared_out(values: list[int], cut: int) -> None:
    parts = [Tally().queue_ms, Tally().queue_ms]
    for place, value in enumerate(values):
        put(parts[place < cut], QUEUE_MS, value)
    found = histogram(parts[0] + parts[1], QUEUE_MS)
    assert dict(found.buckets)["+Inf"] == found.count == len(values)
    assert found.sum == sum(values)
    for bound, count in zip(QUEUE_MS, found.buckets, strict=False):
        assert count[1] == sum(value <= bound for value in values)


def test_the_bounds_of_a_histogram_are_told_in_seconds() -> None:
    assert [bound for bound, _ in histogram({}, (50, 1000), 1000).buckets] == ["0.05", "1", "+Inf"]
    assert histogram({}, DOCUMENT_ANSWERS).count == 0


def test_the_page_in_the_repository_is_what_the_program_writes_and_tells_of_every_metric() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run `{sys.executable} -m pipeline.observe.metrics.page`"
    rows = re.findall(r"^\| `(gristmill_\w+)` \|", page(), re.MULTILINE)
    assert sorted(rows) == sorted(METRICS)
    named = set(re.findall(r"gristmill_\w+", page()))
    assert named <= METRICS.keys()


def test_numbers_are_served_over_http_as_they_come() -> None:
    server = MetricsServer("0")

    def served() -> str:
        with urllib.request.urlopen(server.url, timeout=10) as answer:
            assert answer.headers["content-type"].startswith("text/plain")
            return str(answer.read().decode())

    try:
        assert served() == ""
        server.show(all_numbers())
        assert served() == text_of(families_of(all_numbers()))
    finally:
        server.close()


@pytest.mark.parametrize("address", ["", "http", "a:b", "70000", "1.2.3.4", "-1", "١٢", "256.0.0.1:0"])
def test_an_address_that_cannot_be_is_refused(address: str) -> None:
    with pytest.raises(JobFileError, match="--metrics-port"):
        MetricsServer(address)


def test_a_port_that_is_taken_is_told_before_the_run_begins() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(JobFileError, match="Is another run there"):
        MetricsServer(str(other.getsockname()[1]))
