"""Sheet: the file that a person edits. JSON lines, or CSV that spreadsheets of any locale take and give back.

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula, also one that only begins there because it
splits cells at semicolons. In JSON cells such a character becomes its escape, which is the same JSON; in cells that
are only looked at, an apostrophe goes before it. What is read back is JSON and words of ours: nothing that a
spreadsheet takes for a number or a date.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, OutputError
from pipeline.evaluate.review.entry import Entry, Returned, opened
from pipeline.observe.visible import visible, visible_json
from pipeline.schema.reading import unique_keys

COLUMNS = ("id", "schema", "status", "problems", "document", "record", "verdict", "note", "by", "key")
NEEDED = ("record", "verdict", "key")
CELL = 32_000
"""Characters of a cell: spreadsheets cut at 32,767."""
MAX_BYTES = 1 << 28
SUFFIXES = (".csv", ".jsonl")

_ACTS = "=+\\-@＝＋－＠"
_BEFORE = '[ \u00a0"]*'
"""What may stand between the beginning of a cell and what makes it a formula."""
_IN_JSON = re.compile(rf"(?<=[;\t])({_BEFORE})([{_ACTS}])")
_SHOWN = re.compile(rf"(^|[;\t\n])({_BEFORE})(?=[{_ACTS}])")
_CUT = "\n… cut: a spreadsheet's cell holds no more. An export to .jsonl has it whole."
_EDITED = "the key was changed, so nobody knows which document this is. Take the row's key from the export again"


def write_sheet(path: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Write the entries to a new file, `.csv` or `.jsonl`; those that do not fit a spreadsheet's cells are given back.

    Raises:
        OutputError: there is such a file already, which may hold a person's work, or it cannot be written.
        InputError: another suffix.
    """
    check_suffix(path)
    if path.suffix == ".csv":
        content, left = _csv_of(entries)
    else:
        content, left = "".join(_line_of(entry) for entry in entries), []
    try:
        with path.open("x", encoding="utf-8-sig" if path.suffix == ".csv" else "utf-8", newline="") as file:
            file.write(content)
    except FileExistsError as error:
        raise OutputError(f"{path} is there already, and may hold corrections. Give another name.") from error
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}.") from error
    return left


def check_suffix(path: Path) -> None:
    """Refuse a file that is neither kind of sheet.

    Raises:
        InputError: it is not.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} ends in neither of {', '.join(SUFFIXES)}, which says how it is written.")


def _line_of(entry: Entry) -> str:
    row = {
        "id": entry.key["id"],
        "schema": entry.key["schema"],
        "status": entry.status,
        "problems": entry.problems,
        "document": entry.document,
        "record": entry.record,
        "verdict": "",
        "note": "",
        "by": "",
        "key": entry.key,
    }
    return visible_json(json.dumps(row, ensure_ascii=False)) + "\n"


def _csv_of(entries: Iterable[Entry]) -> tuple[str, list[Entry]]:
    file, left = io.StringIO(newline=""), []
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for entry in entries:
        record, key = _json_cell(entry.record, indent=1), _json_cell(entry.key)
        if max(len(record), len(key)) > CELL:
            left.append(entry)
            continue
        texts = (entry.key["id"], entry.key["schema"], entry.status, "\n".join(entry.problems), entry.document)
        writer.writerow([*map(_shown_cell, texts), record, "", "", "", key])
    return file.getvalue(), left


def _json_cell(value: Any, indent: int | None = None) -> str:
    text = visible_json(json.dumps(value, ensure_ascii=False, indent=indent))
    return _IN_JSON.sub(lambda found: f"{found[1]}\\u{ord(found[2]):04x}", text)


def _shown_cell(text: str) -> str:
    safe = _SHOWN.sub(r"\1\2'", visible(text))
    return safe if len(safe) <= CELL else safe[: CELL - len(_CUT)] + _CUT


def read_sheet(path: Path) -> Iterator[Returned]:
    """What a person gave back, row by row; rows that hold nothing are passed over.

    Raises:
        InputError: the file is missing, too large, not UTF-8 (or UTF-16 with its mark), or no such sheet.
    """
    check_suffix(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from error
    if len(raw) > MAX_BYTES:
        raise InputError(f"{path} has more than {MAX_BYTES} bytes. Split it; each part needs the header.")
    text = _decoded(raw, path)
    return _lines(text) if path.suffix == ".jsonl" else _rows(text, path)


def _decoded(raw: bytes, path: Path) -> str:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}). Save it as “CSV UTF-8”.") from error


def _lines(text: str) -> Iterator[Returned]:
    for number, line in enumerate(text.split("\n"), 1):  # not at U+2028, which JSON does not escape
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = json.loads(line, object_pairs_hook=unique_keys)
        except RecursionError:
            yield Returned(place, {}, fault="it nests too deeply to be read")
            continue
        except ValueError as error:
            yield Returned(place, {}, fault=f"it is not JSON ({error}). Mend the line")
            continue
        if not isinstance(row, dict):
            yield Returned(place, {}, fault="it is no JSON object")
        elif missing := [name for name in NEEDED if name not in row]:
            yield Returned(place, {}, fault=f"it has no `{missing[0]}`, which the export wrote")
        else:
            yield _returned(place, row["key"], json.dumps(row["record"]), row)


def _rows(text: str, path: Path) -> Iterator[Returned]:
    begin = text.find("\n") + 1 if text[:4].lower() == "sep=" else 0
    text = text[begin:]
    delimiter = _delimiter(text.partition("\n")[0], path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    number = 0
    try:
        for number, cells in enumerate(reader, 1 + (begin > 0)):
            if not names:
                names = [name.strip() for name in cells]
            elif any(cell.strip() for cell in cells):
                yield _row(f"row {number}", dict(zip(names, cells, strict=False)))
    except csv.Error as error:
        raise InputError(
            f"{path}, after row {number}: {error}. A quote may be missing. Save the file as CSV again; "
            "nothing below can be read."
        ) from error


def _delimiter(header: str, path: Path) -> str:
    """What the spreadsheet parts cells with: in many locales that is a semicolon."""
    for delimiter in ",;\t":
        names = {name.strip() for name in next(csv.reader([header.rstrip("\r")], delimiter=delimiter), [])}
        if names >= set(NEEDED):
            return delimiter
    raise InputError(
        f"{path} has no header with {', '.join(NEEDED)} in its first row. Keep the header of the export, and save the "
        "file as CSV."
    )


def _row(place: str, row: Mapping[str, str]) -> Returned:
    if not row.get("key", "").strip():
        return Returned(place, {}, fault="it has no key: only rows of an export can come back")
    try:
        key = json.loads(row["key"], object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return Returned(place, {}, fault=_EDITED)
    return _returned(place, key, row.get("record", ""), row)


def _returned(place: str, key: Any, record: str, row: Mapping[str, Any]) -> Returned:
    sound = opened(key)
    if sound is None:
        return Returned(place, {}, fault=_EDITED)
    words = {name: row.get(name) or "" for name in ("verdict", "by", "note")}
    odd = next((name for name, value in words.items() if not isinstance(value, str)), None)
    if odd:
        return Returned(place, sound, fault=f"`{odd}` is to be a text")
    words = {name: value.strip() for name, value in words.items()}
    return Returned(place, sound, record, words["verdict"].casefold(), words["by"], words["note"])
