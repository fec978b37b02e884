"""Parts of the report that need no run: passages, quantiles, comparisons, which units are read, pictures."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from support import attempt

from pipeline.records import Field, Outcome, Problem
from pipeline.report.against import Pair
from pipeline.report.clipped import ClippedFields
from pipeline.report.completeness import Completeness
from pipeline.report.findings import PATHS, collect, names_of
from pipeline.report.headlines import headlines
from pipeline.report.lengths import Lengths, bin_of, quantile
from pipeline.report.passages import MOST, Passage, in_answer, passage
from pipeline.report.picture import flow_of
from pipeline.report.problems import MAX_GROUPS, MAX_SHOWN_PLACES, Problems
from pipeline.report.rows import blamed
from pipeline.report.shown import amount, percent, seconds
from pipeline.runtime.output.browse import chosen


def text_of(found: Passage, *kinds: str) -> str:
    return "".join(piece for kind, piece in found.pieces if kind in kinds)


def outcome(status: Any = "rejected", *problems: Problem, **values: Any) -> Outcome:
    return Outcome(
        "d1", "in#1", "receipt@1", status, values.pop("layer", 0), values.pop("record", None), problems, **values
    )


def row(document_id: str = "d1", **values: Any) -> dict[str, Any]:
    lists: dict[str, Any] = {name: [] for name in ("problems", "repairs", "fields", "attempts")}
    given = {"document_id": document_id, "source": f"in#{document_id}", "schema": "receipt@1", "status": "valid"}
    return {**lists, **given, "layer": 1, "record_attempt": 1, "unit": "000000", "record": None, **values}


def test_a_passage_is_bounded_and_says_what_it_leaves_out() -> None:
    found = passage("x" * 5000 + "HERE" + "y" * 5000, [(5000, 5004)])
    assert text_of(found, "mark") == "HERE"
    assert len(text_of(found, "text", "mark")) <= MOST
    gaps = [int(piece.replace(",", "")) for kind, piece in found.pieces if kind == "gap"]
    assert sum(gaps) + len(text_of(found, "text", "mark")) == 10_004


def test_marks_outside_the_text_or_over_another_are_left_out() -> None:
    found = passage("abcdef", [(-1, 2), (4, 99), (1, 3), (2, 4)])
    assert [piece for kind, piece in found.pieces if kind == "mark"] == ["bc"]
    assert text_of(found, "text", "mark") == "abcdef"


def test_the_value_at_the_problem_is_marked_in_the_answer() -> None:
    raw = '{"vendor": "Ann", "lines": [{"price": 1}, {"price": -7}]}'
    assert text_of(in_answer(raw, Problem("schema_violation", "/lines/1/price"), "stop"), "mark") == "-7"
    assert text_of(in_answer(raw, Problem("schema_violation", "/lines/1"), "stop"), "mark") == "-7"


def test_an_answer_that_was_cut_shows_its_end() -> None:
    raw = '{"vendor": "' + "Ann " * 1000
    found = in_answer(raw, Problem("truncated"), "length")
    assert found.pieces[-1] == ("end", "stops here: length")
    assert text_of(found, "text").endswith("Ann ")


def test_an_answer_that_is_no_json_shows_where_it_stops_being_it() -> None:
    raw = '{"a": "' + "b" * 3000 + '", oops' + " c" * 3000
    found = in_answer(raw, Problem("not_json"), "stop")
    (place,) = [place for place, (kind, _) in enumerate(found.pieces) if kind == "end"]
    assert found.pieces[place + 1][1].startswith("oops")
    assert len(text_of(found, "text")) <= MOST


def test_quantiles_and_bins() -> None:
    assert [quantile(Counter(range(1, 101)), percent) for percent in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert quantile(Counter({5: 1}), 50) == 5
    assert quantile({}, 50) == 0
    assert [bin_of(tokens, 100) for tokens in (0, 1, 5, 6, 95, 96, 100, 130)] == [0, 0, 0, 1, 18, 19, 19, 19]


def test_an_answer_of_a_run_that_kept_no_budget_is_measured_by_the_jobs() -> None:
    lengths = Lengths()
    lengths.add(outcome("valid", attempts=(attempt(tokens=50),)), 100)
    lengths.add(outcome("valid", attempts=(attempt(tokens=50),)), 0)
    assert (lengths.answers, lengths.bins, lengths.budgets) == (2, {9: 1}, {100: 1})


def test_the_blame_is_of_the_record_and_of_the_first_layer() -> None:
    early, late = Problem("truncated", attempt=1), Problem("schema_violation", "/a", attempt=2)
    assert blamed(outcome("rejected", early, late)) == late  # the last answer counts where no record is kept
    assert blamed(outcome("degraded", early, late, record_attempt=1)) == early
    assert blamed(outcome("valid", early)) is None
    assert blamed(outcome("rejected", late, Problem("not_json", attempt=2))).code == "not_json"  # type: ignore[union-attr]


def test_places_are_bounded_though_keys_are_the_models() -> None:
    problems = Problems()
    common = Problem("schema_violation", "/total")
    for number in range(3 * MAX_GROUPS):
        one = outcome("rejected", common, Problem("schema_violation", f"/k{number}x"))
        problems.add(row(f"d{number}"), one, "receipt@1")
    assert len(problems.groups) <= 2 * MAX_GROUPS + 2
    assert problems.ranked()[0].key == ("receipt@1", "/total", "schema_violation")
    assert problems.ranked()[0].documents == 3 * MAX_GROUPS
    assert problems.dropped > 0


def test_a_document_with_thousands_of_problems_is_no_example_of_them_all() -> None:
    problems = Problems()
    many = [Problem("schema_violation", f"/k{number}", "m" * 5000, 1) for number in range(900)]
    problems.add(row(), outcome("rejected", *many, attempts=(attempt(text='{"a": 1}' * 9000),)), "receipt@1")
    shown = [group.example for group in problems.groups.values() if group.example]
    assert (len(problems.groups), len(shown)) == (900, MAX_SHOWN_PLACES)
    assert all(one.attempt and not one.attempt.raw_text and len(one.problem.message) < 1000 for one in shown)


@pytest.mark.parametrize(
    ("record", "leaf", "place"),
    [
        ({"tags": ["x", "y"]}, "/tags/1", "/tags"),
        ({"rows": [["x"], ["y"]]}, "/rows/1/0", "/rows"),
        ({"by": {"2024": "x"}}, "/by/2024", "/by/*"),
        ({"rows": [{"n": "x"}]}, "/rows/0/n", "/rows/*/n"),
    ],
)
def test_a_leaf_counts_for_a_field_of_the_record(record: Any, leaf: str, place: str) -> None:
    found = Completeness()
    found.add(outcome("valid", record=record, fields=(Field(leaf, "exact"),)))
    assert found.fields[place].matches == {"exact": 1}
    assert all(counts.asked for counts in found.fields.values())


def test_an_object_is_filled_where_it_is_there_and_not_only_null_where_it_is_not() -> None:
    found = Completeness()
    for record in ({"to": {"city": "x"}, "rows": [{"n": 1}, {}]}, {"to": {"city": "y"}}, {"to": None}, {"to": {}}, {}):
        found.add(outcome("valid", record=record))
    assert found.fields["/to"].states == {"filled": 2, "null": 1, "empty": 1}
    assert found.fields["/rows/*"].states == {"filled": 1, "empty": 1}
    assert set(found.fields) == {"/to", "/to/city", "/rows", "/rows/*", "/rows/*/n"}


def test_completeness_tells_filled_from_empty_and_null() -> None:
    found = Completeness()
    leaf = Field("/lines/0/name", match="none")
    for record in ({"a": "", "lines": [{"name": "x"}, {"name": None}]}, {"a": None, "lines": []}):
        found.add(outcome("valid", record=record, fields=(leaf,)))
    assert found.records == 2
    assert found.fields["/a"].states == {"empty": 1, "null": 1}
    assert found.fields["/lines"].states == {"filled": 1, "empty": 1}
    assert found.fields["/lines/*/name"].states == {"filled": 1, "null": 1}
    assert found.fields["/lines/*/name"].matches == {"none": 2}


def test_clipped_mass_is_the_mean_of_tokens_not_of_answers() -> None:
    found = ClippedFields()
    for tokens, mass in ((1, 1.0), (9, 0.0)):
        part = {"pointer": "/a/0", "part": "value", "tokens": tokens, "mass": mass, "highest": mass}
        found.add({"audit": "done", "clipped": [part]})
    found.add({"audit": "busy", "clipped": []})
    assert found.answers == 2
    assert found.fields["/a/*"]["value"].mean == pytest.approx(0.1)


def files(**rows: int) -> list[dict[str, Any]]:
    return [
        {"path": f"s/{schema}/{unit:06d}-x.parquet", "schema": schema, "rows": 100}
        for start, (schema, units) in enumerate(sorted(rows.items()))
        for unit in range(start * 1000, start * 1000 + units)
    ]


def test_a_large_run_is_read_in_evenly_chosen_units_of_each_schema() -> None:
    everything = files(a=90, b=9, c=1)
    assert chosen(everything, 10_000) == tuple(everything)
    some = chosen(everything, 1000)
    assert Counter(file["schema"] for file in some) == {"a": 9, "b": 1, "c": 1}
    places = [int(file["path"].split("/")[2][:6]) for file in some if file["schema"] == "a"]
    assert {after - before for before, after in pairwise(places)} == {10}


def test_many_schemas_do_not_undo_the_bound() -> None:
    many = [{"path": f"s/{n}/{n:06d}-x.parquet", "schema": f"s{n}", "rows": 100} for n in range(1000)]
    assert sum(file["rows"] for file in chosen(many, 2000)) <= 4000
    assert len(set(names_of({f"s{n}": n for n in range(1000)}).values())) == 41


def test_the_picture_holds_every_document_and_shows_the_rarest() -> None:
    counts = {("first pass", "valid"): 999_999, ("no record", "rejected"): 1}
    flow = flow_of(counts, 560)
    assert {node.label: node.documents for node in flow.nodes} == {
        "documents in": 1_000_000,
        "first pass": 999_999,
        "no record": 1,
        "valid": 999_999,
        "rejected": 1,
    }
    assert min(node.height for node in flow.nodes) > 1
    columns: dict[float, list[tuple[float, float]]] = {}
    for node in flow.nodes:
        columns.setdefault(node.x, []).append((node.text_y - 12, node.text_y + 15))
    for texts in columns.values():  # two lines of text each, none over another
        assert all(low <= high for (_, low), (high, _) in pairwise(texts))
    assert flow_of({}, 350).nodes[0].documents == 0


def test_nothing_is_rounded_to_all_or_none() -> None:
    assert [percent(*pair) for pair in ((0, 9), (9, 9), (1, 99_999), (99_998, 99_999), (1, 3), (0, 0))] == [
        *("0 %", "100 %", "< 0.1 %", "> 99.9 %", "33.3 %", "–")
    ]
    assert [seconds(value) for value in (None, 0.5, 90, 7200)] == ["unknown", "0.50 s", "1.5 min", "2.00 h"]
    assert [amount(value) for value in (None, 0.01234, 12.34, 1234.5)] == ["unknown", "0.0123", "12.3", "1,234"]


def test_the_worst_comes_first_and_a_calm_run_says_nothing() -> None:
    alarm = {"code": "engine_error", "pointer": "", "message": "", "attempt": 1, "severity": ""}
    wrong = {"code": "schema_violation", "pointer": "/total", "message": "", "attempt": 1, "severity": ""}
    rows = [row(f"g{n}") for n in range(50)]
    rows += [row(f"b{n}", status="rejected", layer=0, record_attempt=0, problems=[wrong]) for n in range(9)]
    rows += [row("e", status="rejected", layer=0, record_attempt=0, problems=[alarm])]
    read = collect(rows, {"receipt@1": "receipt@1"})
    found = headlines(read, read.total, [Pair("truncated", 50, 100, 1, 100, 1)], None, {})
    assert [(line.tone, line.layer, line.place) for line in found[:2]] == [
        ("alarm", "engine", ""),
        ("bad", "schema", "/total"),
    ]
    assert any("in the run before" in line.words for line in found)
    calm = collect([row("g")], {"receipt@1": "receipt@1"})
    assert not headlines(calm, calm.total, [], None, {})


def test_ways_of_documents() -> None:
    rows = [row("a", layer=0, status="rejected", record_attempt=0), row("b", attempts=[_attempt(5)]), row("c", layer=3)]
    flow = collect(rows, {}).flow
    assert flow == {(PATHS[0], "rejected"): 1, (PATHS[1], "valid"): 1, (PATHS[0], "valid"): 1}


def _attempt(tokens: int) -> dict[str, Any]:
    one = attempt(tokens=tokens)
    return {name: getattr(one, name) for name in one.__slots__}


def test_a_code_of_another_version_is_counted_and_left_out() -> None:
    strange = {"code": "of_tomorrow", "pointer": "/a", "message": "", "attempt": 1, "severity": "", "layer": "parse"}
    found = collect([row("a", problems=[strange])], {"receipt@1": "receipt@1"})
    assert found.unknown_codes == {"of_tomorrow": 1}
    assert not found.problems.groups
