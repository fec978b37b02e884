"""The file that a person edits: what spreadsheets do to it, and what people do."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import GOOD, RECEIPT

from pipeline.errors import InputError, OutputError
from pipeline.evaluate.review.changes import equal
from pipeline.evaluate.review.corrections import Read, corrections_of
from pipeline.evaluate.review.entry import KEY, Entry, sealed
from pipeline.evaluate.review.sheet import CELL, read_sheet, write_sheet

NASTY = "=cmd|' /C calc'!A0\r\n+1;=2\t@SUM(1)\n-3;  =4 \x1b[2J \u202e “quoted” \"q\" 粥 \u2028 \ud800 ,;\x00"
ACTS = "=+-@＝＋－＠"


def entry(key: str = "d1", record: Any = GOOD, number: int = 1, of: int = 1, document: str = "Ann & Co") -> Entry:
    place = {"export": "e", "row": number, "of": of, "run": "r", "id": key, "source": f"in#{number}"}
    what = {"schema": "receipt@1", "schema_digest": "", "text_digest": "t", "record": record}
    return Entry(sealed({**place, **what}), "degraded", ("truncated at /: cut",), document, record)


@pytest.fixture
def schemas(tmp_path: Path) -> str:
    folder = tmp_path / "schemas" / "receipt" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(RECEIPT))
    return str(tmp_path / "schemas")


@pytest.fixture
def edited(tmp_path: Path, schemas: str) -> Callable[..., Read]:
    """Exports entries to CSV, lets `change` edit its rows (lists of cells) and `save` write them, and imports that."""

    def made(entries: list[Entry], change: Any = None, save: Any = None, suffix: str = ".csv") -> Read:
        path = tmp_path / f"sheet{len(list(tmp_path.iterdir()))}{suffix}"
        assert write_sheet(path, entries) == []
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
        names = rows[0]
        for row in rows[1:]:
            row[names.index("verdict")] = "ok"
            if change:
                change(dict(zip(names, range(len(names)), strict=True)), row)
        path.write_bytes((save or comma)(rows))
        return corrections_of(read_sheet(path), schemas, by="ann")

    return made


def comma(rows: list[list[str]], delimiter: str = ",", end: str = "\r\n") -> bytes:
    """As a spreadsheet saves: quotes only where they are needed."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator=end).writerows(rows)
    return file.getvalue().encode("utf-8-sig")


SAVES = {
    "as it was": comma,
    "semicolons, as in many locales": lambda rows: comma(rows, ";"),
    "tabs, UTF-16, as Unicode text": lambda rows: comma(rows, "\t").decode("utf-8-sig").encode("utf-16"),
    "no mark": lambda rows: comma(rows).removeprefix(b"\xef\xbb\xbf"),
    "line feeds": lambda rows: comma(rows, end="\n"),
    "a line for Excel": lambda rows: b"\xef\xbb\xbfsep=;\r\n" + comma(rows, ";").removeprefix(b"\xef\xbb\xbf"),
    "columns moved, empty ones and empty rows added": lambda rows: comma(
        [[*row[::-1], "", ""] for row in rows] + [[""] * 12]
    ),
    "line breaks in cells changed": lambda rows: comma([[cell.replace("\n", "\r\n") for cell in row] for row in rows]),
}


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES)
def test_records_and_ids_survive_a_spreadsheet(edited: Callable[..., Read], save: Any) -> None:
    hard = {
        "vendor": NASTY.replace("\ud800", ""),
        "total": -5,
        "lines": ["=1+1", "+2", "-3", "@4", "'5", "0012", "1E5"],
    }
    keys = ["0012", "=HYPERLINK(1)", "1E5", "2024-01-02", NASTY.replace("\ud800", ""), "12345678901234567890"]
    entries = [entry(key, hard, number, len(keys), NASTY) for number, key in enumerate(keys, 1)]
    read = edited(entries, save=save)
    assert (read.faults, read.absent, read.open) == ([], 0, 0)
    assert [one.id for one in read.corrections] == keys
    assert all(equal(one.record, hard) and not one.changed for one in read.corrections)


@given(st.lists(st.text(st.sampled_from("=+-@;,\t\n\r\"' aé＝0"), max_size=12), min_size=3, max_size=3))
@example(["", ';"=', ""])
@example(['"=', 'x\n"=', ';";='])
def test_no_cell_begins_a_formula_however_it_is_split(texts: list[str]) -> None:
    import tempfile

    key, document, value = texts
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "o.csv"
        write_sheet(path, [entry(key, {"vendor": value, "total": 1, "lines": [value]}, document=document)])
        text = path.read_bytes().decode("utf-8-sig")
    for delimiter in ",;\t":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            for cell in row:
                assert not cell.lstrip(" ").startswith(tuple(ACTS)), (delimiter, cell)


def test_nothing_in_a_sheet_acts_on_a_screen(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl"):
        path = tmp_path / f"o{suffix}"
        write_sheet(path, [entry(NASTY, {"vendor": NASTY}, document=NASTY)])
        assert not set(path.read_bytes().decode("utf-8-sig")) & set("\x1b\u202e\x00\u2028")


def test_json_lines_come_back_as_they_are(tmp_path: Path, schemas: str) -> None:
    path = tmp_path / "o.jsonl"
    write_sheet(path, [entry(NASTY, GOOD, 1, 2, NASTY), entry("b", GOOD, 2, 2)])
    rows = [json.loads(line) for line in path.read_text().split("\n") if line]
    assert rows[0]["document"] == NASTY
    rows[0] |= {"verdict": "ok", "by": "Zoë", "record": {**GOOD, "total": 7}}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = corrections_of(read_sheet(path), schemas)
    assert (read.faults, read.open) == ([], 1)
    (one,) = read.corrections
    assert (one.id, one.by, one.changed) == (NASTY, "Zoë", ({"pointer": "/total", "was": 19.9, "is": 7},))


def test_a_sheet_never_takes_the_place_of_a_persons_work(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("a day's work")
    with pytest.raises(OutputError, match="may hold corrections"):
        write_sheet(path, [entry()])
    assert path.read_text() == "a day's work"
    with pytest.raises(InputError, match=r"neither of .csv, .jsonl"):
        write_sheet(tmp_path / "o.xlsx", [entry()])


def test_what_no_cell_holds_is_told_and_left_for_json_lines(tmp_path: Path) -> None:
    long, document = entry("long", {"vendor": "x" * (CELL + 1)}), entry("b", document="y" * 99_999)
    assert write_sheet(tmp_path / "o.csv", [long, document]) == [long]
    rows = list(csv.reader(io.StringIO((tmp_path / "o.csv").read_text("utf-8-sig"), newline="")))
    assert "cut: a spreadsheet's cell" in rows[1][rows[0].index("document")]
    assert all(len(cell) < 32_767 for row in rows for cell in row)
    assert write_sheet(tmp_path / "o.jsonl", [long, document]) == []


PLAIN = {**dict.fromkeys(KEY, ""), "row": 1, "of": 1}
DEEP = json.loads("[" * 300 + "]" * 300)

FAULTS: dict[str, tuple[str, str, str]] = {
    "no JSON": ("record", '{"vendor": "x",', "the record is not JSON"),
    "curly quotes": ("record", "{“vendor”: 1}", "It holds “"),
    "a missing member": ("record", '{"vendor": "x"}', "/ required: total missing"),
    "a wrong type": ("record", '{"vendor": 5, "total": 1}', "/vendor type: must be string"),
    "a key twice": ("record", '{"vendor": "x", "vendor": "y", "total": 1}', "the record is not JSON"),
    "a key of nobody": ("record", '{"vendor": "x", "total": 1, "extra": 1}', "a key that the schema does not declare"),
    "a number that is none": ("record", '{"vendor": "x", "total": NaN}', "the record is not JSON"),
    "nothing": ("record", " ", "the record is empty"),
    "a verdict of nobody": ("verdict", "done", "'done' is none of ok, skip"),
    "a key that was changed": ("key", '{"id": "d1"}', "the key was changed"),
    "no key": ("key", "", "it has no key"),
    "a key of other kinds": ("key", json.dumps(sealed({**dict.fromkeys(KEY, ""), "row": [], "of": 1})), "the key was"),
    "a key that is too deep": ("key", json.dumps(sealed({**PLAIN, "record": DEEP})), "the key was changed"),
}


@pytest.mark.parametrize(("name", "cell", "told"), FAULTS.values(), ids=FAULTS)
def test_a_half_finished_row_is_told_by_its_place_and_the_others_are_taken(
    edited: Callable[..., Read], name: str, cell: str, told: str
) -> None:
    def change(at: dict[str, int], row: list[str]) -> None:
        if row[at["id"]] == "b":
            row[at[name]] = cell

    read = edited([entry("a", GOOD, 1, 3), entry("b", GOOD, 2, 3), entry("c", GOOD, 3, 3)], change)
    (fault,) = read.faults
    assert (fault.place, told in fault.words) == ("row 3", True), fault.words
    assert [one.id for one in read.corrections] == ["a", "c"]


def test_open_touched_skipped_and_missing_rows_are_told_apart(edited: Callable[..., Read]) -> None:
    def change(at: dict[str, int], row: list[str]) -> None:
        row[at["verdict"]] = {"a": "", "b": "", "c": " Skip ", "d": "OK "}[row[at["id"]]]
        if row[at["id"]] in "bc":
            row[at["record"]] = '{"vendor": "half'

    entries = [entry(key, GOOD, number, 5) for number, key in enumerate("abcd", 1)]
    read = edited(entries, change)
    assert (read.open, read.skipped, read.absent, len(read.corrections)) == (2, 1, 1, 1)
    assert [touched.id for touched in read.touched] == ["b", "c"]
    assert "the verdict is empty" in read.touched[0].words
    assert "not JSON" in read.touched[0].words
    assert "is skip" in read.touched[1].words


def test_a_row_twice_is_one_correction_unless_they_disagree(edited: Callable[..., Read]) -> None:
    assert len(edited([entry("a"), entry("a")]).corrections) == 1
    turns = iter(["1", "2"])

    def change(at: dict[str, int], row: list[str]) -> None:
        row[at["record"]] = f'{{"vendor": "x", "total": {next(turns)}}}'

    read = edited([entry("a"), entry("a")], change)
    assert read.corrections == []
    assert "row 2 and row 3 have different records" in read.faults[0].words


def test_nobody_vouches_for_a_record_without_a_name(tmp_path: Path, schemas: str) -> None:
    path = tmp_path / "o.jsonl"
    write_sheet(path, [entry()])
    path.write_text(path.read_text().replace('"verdict": ""', '"verdict": "ok"'))
    assert "--by" in corrections_of(read_sheet(path), schemas).faults[0].words
    assert len(corrections_of(read_sheet(path), schemas, "ann").corrections) == 1


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("o.csv", b"id,record\n1,2\n", "no header with record, verdict, key"),
        ("o.csv", b"", "no header"),
        ("o.csv", 'record,verdict,key\n"é","ok"'.encode("latin-1"), "not UTF-8"),
        ("o.csv", b'record,verdict,key\n"unclosed,ok,x\n', "A quote may be missing"),
        ("o.ods", b"PK", "neither of"),
    ],
)
def test_a_file_that_is_no_sheet_says_what_to_do(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told):
        list(read_sheet(tmp_path / name))
    with pytest.raises(InputError, match="cannot read"):
        list(read_sheet(tmp_path / "nowhere.csv"))


@pytest.mark.parametrize("line", ["{", "[]", '{"key": 1}', '{"record": {}, "verdict": "", "key": []}', "[" * 99_999])
def test_a_line_that_is_none_is_a_fault_and_no_end(tmp_path: Path, schemas: str, line: str) -> None:
    path = tmp_path / "o.jsonl"
    write_sheet(path, [entry()])
    path.write_text(f"{line}\n\n{path.read_text()}")
    read = corrections_of(read_sheet(path), schemas)
    assert (read.faults[0].place, read.open) == ("line 1", 1)
