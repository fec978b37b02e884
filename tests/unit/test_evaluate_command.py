"""`gristmill evaluate` over runs that were committed without Ray."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import recomputed_scores as other
from evaluated_runs import NAME, RIGHT, gold_of, made_run, shown, told, write_gold
from replay_runs import commit
from support import GOOD, Answers, completion

from pipeline.errors import InputError, JobFileError, OutputError
from pipeline.evaluate.mistakes import KINDS


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody changes."""
    return made_run(tmp_path_factory.mktemp("evaluated"))


def test_every_rate_is_what_a_scorer_that_shares_no_code_finds(run: Path) -> None:
    document = told(str(run), "--gold", gold_of(run))
    rows, gold = other.read_run(run), other.read_gold(Path(gold_of(run)))
    rates = document["overall"]["rates"]
    ours = other.micro(rows, gold, other.pairs_of)
    assert {part: rates[f"{part}_exact"]["value"] for part in ours} == pytest.approx(ours)
    assert rates["whole_exact"]["value"] == pytest.approx(other.whole(rows, gold))
    fields = document["schemas"][NAME]["fields"]
    for name, expected in other.fields(rows, gold).items():
        found = fields["/lines/*" if name == "lines" else f"/{name}"]["rates"]
        for part, value in expected.items():
            shown_value = found[f"{part}_exact"]["value"]
            assert shown_value == pytest.approx(value) if not math.isnan(value) else shown_value is None
    public = document["published"]
    for metric, words in (("sroie", other.sroie), ("kleister_uncased", other.kleister)):
        assert public[metric]["f1"]["value"] == pytest.approx(other.micro(rows, gold, words)["f1"])


def test_every_rate_has_its_whole_and_an_interval_around_it(run: Path) -> None:
    document = told(str(run), "--gold", gold_of(run))
    scores = [document["overall"], *document["schemas"][NAME]["fields"].values()]
    for rates in (one["rates"] for one in scores):
        for name, rate in rates.items():
            if rate["value"] is not None:
                assert rate["value"] == pytest.approx(rate["count"] / rate["of"]), name
                assert rate["low"] <= rate["value"] <= rate["high"] and rate["low"] < rate["high"], name
    counts = document["overall"]["counts"]
    assert counts["missing"] and counts["wrong"] and counts["invented"] and counts["abstained"] and counts["unanswered"]


def test_rejected_and_lost_documents_are_mistakes_and_are_told(tmp_path: Path, run: Path) -> None:
    more = write_gold(tmp_path / "more.jsonl", {**RIGHT, "lost1": GOOD, "lost2": GOOD})
    whole, lacking = told(str(run), "--gold", gold_of(run)), told(str(run), "--gold", more)
    assert whole["overall"]["rates"]["rejected"]["count"] == 2
    assert lacking["overall"]["rates"]["unextracted"] | {"low": 0, "high": 0} == {
        **{"value": 2 / 26, "low": 0, "high": 0, "count": 2, "of": 26, "interval": "wilson"}
    }
    assert lacking["overall"]["counts"]["missing"] == whole["overall"]["counts"]["missing"] + 2 * 5
    assert {group["kind"] for group in lacking["mistakes"]} >= {"no_record", "no_row", "missing", "wrong", "format"}
    without = told(str(run), "--gold", more, "--only-extracted")
    assert without["documents"]["left_out"] == 2
    assert without["overall"] == whole["overall"]
    assert "2 rows of gold left out" in shown(str(run), "--gold", more, "--only-extracted")


def test_gold_that_cannot_be_used_is_told_and_counted_and_not_used(tmp_path: Path, run: Path) -> None:
    path = tmp_path / "bad.jsonl"
    rows = [
        {"id": "d1", "record": RIGHT["d1"]},
        {"id": "d1", "record": RIGHT["d1"]},
        {"id": "d2", "record": RIGHT["d2"]},
        {"id": "d2", "record": {**GOOD, "vendor": "another"}},
        {"id": "d3", "record": {"vendor": 3}},
        {"id": "d4"},
        {"id": None, "record": GOOD},
    ]
    texts = [
        '{"id": "d5", "record": {"vendor": "x", "total": NaN}}',
        '{"id": "d6", "record": {"a": 1, "a": 2}}',
        "no json",
    ]
    rows += [{"id": "d7", "record": '{"a": 1, "a": 2}'}, {"id": "d8", "record": '{"vendor": "x", "total": Infinity}'}]
    path.write_text("".join(f"{text}\n" for text in [*map(json.dumps, rows), *texts]))
    document = told(str(run), "--gold", str(path))
    counts = document["gold"]["rows"]
    assert counts == {"rows": 12, "repeated": 1, "conflicting": 2, "invalid": 1, "unreadable": 7, "used": 1}
    assert document["overall"]["documents"] == 1
    assert document["documents"]["without_gold"] == 23 - 1  # d3's is refused when its document comes
    text = shown(str(run), "--gold", str(path))
    for words in (
        "is not of type 'string'",
        "another record",
        "no text or integer under 'id'",
        "nothing under 'record'",
    ):
        assert words in text or words in json.dumps(document["gold"]["faults"])


def test_gold_from_parquet_with_other_names_and_a_struct_for_a_record(tmp_path: Path, run: Path) -> None:
    path = tmp_path / "gold.parquet"
    records = [{**RIGHT["d1"], "date": None}, RIGHT["d2"]]  # a struct has null where JSON has no member
    table = pa.table(
        {"key": ["d1", "d2"], "truth": records, "kind": ["a", "b"], "or": [json.dumps({"/total": [1, 2]})] * 2}
    )
    pq.write_table(table, path)
    names = ("--gold-id", "key", "--gold-record", "truth", "--gold-acceptable", "or", "--by", "kind")
    document = told(str(run), "--gold", str(path), *names)
    assert document["gold"]["rows"] == {"rows": 2, "used": 2}
    assert {value: one["documents"] for value, one in document["slices"]["by kind"].items()} == {"a": 1, "b": 1}
    with pytest.raises(InputError, match=r"no column 'id'.*--gold-id"):
        shown(str(run), "--gold", str(path))


def test_alternatives_of_a_field_are_right_as_well(tmp_path: Path, run: Path) -> None:
    row = {"id": "d2", "record": RIGHT["d2"]}
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps(row))
    before = told(str(run), "--gold", str(path))["schemas"][NAME]["fields"]["/total"]["counts"]
    path.write_text(json.dumps({**row, "acceptable": {"total": [99.5]}}))
    after = told(str(run), "--gold", str(path))["schemas"][NAME]["fields"]["/total"]["counts"]
    assert (before["wrong"], before["exact"], after["wrong"], after["exact"]) == (1, 0, 0, 1)


def test_limits_end_with_9_and_can_speak_of_fields_and_of_the_interval(run: Path) -> None:
    gold = ("--gold", gold_of(run))
    f1 = told(str(run), *gold)["overall"]["rates"]["f1"]
    between = (f1["low"] + f1["value"]) / 2
    assert "kept: at least f1" in shown(str(run), *gold, "--at-least", f"f1={between}")
    assert "NOT KEPT" in shown(str(run), *gold, "--at-least", f"f1={between}", "--sure", code=9)
    shown(
        str(run), *gold, "--at-least", "/vendor:recall=0.8", "--at-most", "rejected=0.2", "--at-least", "sroie.f1=0.5"
    )
    shown(str(run), *gold, "--at-least", f"{NAME}/vendor:recall_exact=0.8", code=9)
    shown(str(run), *gold, "--at-most", "rejected=0.01", code=9)
    for wrong in ("f1", "f1=high", "/nowhere:f1=1", "goodness=1", "--"):
        with pytest.raises(JobFileError, match=r"limit|no field|no rate"):
            shown(str(run), *gold, "--at-least", wrong)


def test_a_job_file_means_its_last_run_and_its_schemas(tmp_path: Path, run: Path) -> None:
    place = run.parent.parent
    job = place / "job.yaml"
    job.write_text(
        json.dumps(
            {
                "name": "t",
                "input": {"path": "in.jsonl", "schema": NAME},
                "output": "out",
                "schemas": "schemas",
                "engine": {"engine": "recorded", "recording": "recording"},
            }
        )
    )
    by_job, by_run = (told(what, "--gold", gold_of(run)) for what in (str(job), str(run)))
    assert by_job["overall"] == by_run["overall"]
    job.write_text(job.read_text().replace('"name": "t"', '"name": "unknown"'))
    with pytest.raises(OutputError, match="no committed run of the job 'unknown'"):
        shown(str(job), "--gold", gold_of(run))
    elsewhere = told(str(run), "--gold", gold_of(run), "--schemas", str(tmp_path))
    assert any("gold is not checked" in note for note in elsewhere["notes"])


def test_gold_of_a_schema_in_any_version_or_of_another_schema(tmp_path: Path, run: Path) -> None:
    first = told(str(run), "--gold", gold_of(run))
    any_version = write_gold(tmp_path / "any.jsonl", RIGHT, schema="receipt")
    assert told(str(run), "--gold", any_version)["overall"] == first["overall"]
    later = told(str(run), "--gold", write_gold(tmp_path / "later.jsonl", RIGHT, schema="receipt@2"))
    assert later["overall"]["rates"]["unextracted"]["count"] == 24
    assert any("24 documents were extracted as receipt@1 and have gold of receipt@2" in note for note in later["notes"])


def test_what_cannot_be_evaluated_says_why(tmp_path: Path, run: Path) -> None:
    with pytest.raises(InputError, match=r"no document can be judged.*--gold-id"):
        shown(str(run), "--gold", write_gold(tmp_path / "a.jsonl", {"x": GOOD}), "--only-extracted")
    with pytest.raises(InputError, match="no row of the gold can be used"):
        shown(str(run), "--gold", write_gold(tmp_path / "b.jsonl", RIGHT), "--gold-record", "truth")
    (tmp_path / "c.csv").write_text("id,record\n")
    with pytest.raises(InputError, match="JSONL or Parquet"):
        shown(str(run), "--gold", str(tmp_path / "c.csv"))
    with pytest.raises(OutputError, match="no committed run"):
        shown(str(tmp_path / "nowhere"), "--gold", gold_of(run))


def test_documents_are_read_again_for_examples_and_slices_and_a_gone_input_is_told(tmp_path: Path) -> None:
    record = {"vendor": "Ann & Co", "total": 1.5}
    path = commit(tmp_path, {"d0": Answers(completion(record, constrained=True))}, retry={"max_attempts": 1})
    gold = write_gold(tmp_path / "gold.jsonl", {"d0": {**record, "total": 19.9}})
    document = told(str(path), "--gold", gold)
    (group,) = document["mistakes"]
    assert "19.90" in group["examples"][0]["passage"] and group["kind"] == "wrong"
    assert list(document["slices"]["length"]) == ["up to 500 characters"]
    (tmp_path / "in.jsonl").unlink()
    later = told(str(path), "--gold", gold)
    assert later["overall"]["rates"]["f1"] == document["overall"]["rates"]["f1"]
    assert list(later["slices"]["length"]) == ["unknown"]
    assert any("cannot be read again" in note for note in later["notes"])


def test_text_of_documents_and_gold_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J[red]\u202e"
    path = commit(tmp_path, {"d0": Answers(completion({"vendor": evil, "total": 1}, constrained=True))})
    gold = write_gold(tmp_path / "gold.jsonl", {"d0": {"vendor": f"{evil}x", "total": 2}, evil: GOOD}, kind=evil)
    text = shown(str(path), "--gold", gold, "--by", "kind")
    assert "\x1b" not in text and "\u202e" not in text and "[red]" in text
    output = tmp_path / "evaluation.json"
    assert shown(str(path), "--gold", gold, "--json", "--output", str(output)).isascii()
    assert json.loads(output.read_text())["overall"]["documents"] == 2


def test_the_page_tells_of_every_rate_verdict_kind_and_key(run: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    document = told(str(run), "--gold", gold_of(run))
    overall = document["overall"]
    names = [*document, *overall, *overall["rates"], *overall["counts"], *document["published"], *KINDS]
    assert not [name for name in names if f"`{name}`" not in page]
