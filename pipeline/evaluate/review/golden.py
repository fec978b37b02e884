"""Golden: corrections go into a file of gold: each once, none over another that says otherwise, or all of it or none.

A line is `{id, record, schema, review}`; lines of other origin need `id` and `record`, and stay as they are, byte for
byte.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, OutputError, SchemaError
from pipeline.evaluate.review.changes import changes, equal
from pipeline.evaluate.review.corrections import Correction
from pipeline.schema.reading import exchanged, unique_keys

MAX_PLACES = 5
"""Places of a conflict that are told."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Gold that says otherwise than a correction: in which line, by whom, and at which pointers."""

    place: str
    id: str
    line: int
    by: str
    pointers: tuple[str, ...]


@dataclass(slots=True)
class Merged:
    """What became of corrections. `known` are those that the gold held already."""

    added: int = 0
    known: int = 0
    replaced: int = 0
    conflicts: list[Conflict] = field(default_factory=list)


def merge(path: Path, corrections: Sequence[Correction], when: str, *, replace: bool = False) -> Merged:
    """Write corrections into a file of gold, which is made if it is not there. With `replace` a correction takes the
    place of gold that says otherwise, which is kept in its `review.before`.

    Raises:
        InputError: the file is no gold: nothing is written.
        OutputError: it cannot be written; it is then as it was.
    """
    if path.suffix != ".jsonl":
        raise InputError(f"{path} does not end in .jsonl: corrections are written as JSON lines.")
    merged = Merged()
    if not corrections:
        return merged
    with _held(Path(os.path.realpath(path))) as (place, raw):
        lines = [line for line in raw.split(b"\n") if line.strip()]
        known = _index(lines, path)
        for one in corrections:
            number = known.get((one.id, one.schema), known.get((one.id, "")))
            line = _line_of(one, when)
            if number is None:
                merged.added += 1
                known[one.id, one.schema] = len(lines)
                lines.append(_encoded(line))
                continue
            old = json.loads(lines[number])
            if equal(_record(old), one.record):
                merged.known += 1
            elif replace:
                merged.replaced += 1
                review = old.get("review")
                line["review"]["before"] = [*_before(review), {"record": _record(old), "review": _bare(review)}]
                lines[number] = _encoded({**old, **line})
                known.pop((one.id, ""), None)  # it has a schema now
                known[one.id, one.schema] = number
            else:
                merged.conflicts.append(_conflict(one, old, number))
        if merged.added or merged.replaced:
            _publish(place, b"\n".join(lines) + b"\n")
    return merged


@contextmanager
def _held(path: Path) -> Iterator[tuple[Path, bytes]]:
    """The content of a file that nobody else writes meanwhile: two who import at once must not lose each other's."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_ino != os.stat(path).st_ino:  # replaced while it was waited for
                    continue
                file.seek(0)
                yield path, file.read()
                return
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}.") from error


def _publish(path: Path, content: bytes) -> None:
    """All of the new content or the old one, whenever this ends."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _index(lines: Sequence[bytes], path: Path) -> dict[tuple[str, str], int]:
    """Where each document's gold stands, by id and schema, "" where a line names none."""
    found: dict[tuple[str, str], int] = {}
    for number, raw in enumerate(lines):
        where = f"{path}, line {number + 1} (empty ones not counted)"
        try:
            line = exchanged(json.loads(raw, object_pairs_hook=unique_keys))
        except (ValueError, RecursionError, SchemaError) as error:
            words = f"{where}: not JSON that is read here ({error}). Mend the file; nothing was written."
            raise InputError(words) from error
        name = line.get("id") if isinstance(line, dict) else None
        if isinstance(name, bool) or not isinstance(name, str | int) or "record" not in line:
            raise InputError(f"{where}: no object with an `id` and a `record`. Mend the file; nothing was written.")
        key = str(name), str(line.get("schema") or "")
        if key in found:
            raise InputError(f"{where}: {key[0]!r} has gold already in line {found[key] + 1}. Remove one of them.")
        found[key] = number
    return found


def _line_of(one: Correction, when: str) -> dict[str, Any]:
    review = {
        "by": one.by,
        "when": when,
        "verdict": "corrected" if one.changed else "confirmed",
        "changed": list(one.changed),
        "note": one.note,
        **{name: one.key[name] for name in ("run", "source", "text_digest", "schema_digest")},
    }
    return {"id": one.id, "schema": one.schema, "record": one.record, "review": review}


def _record(line: dict[str, Any]) -> Any:
    """The record of a line, which may be JSON text."""
    record = line["record"]
    if not isinstance(record, str) or record.lstrip()[:1] not in ("{", "["):
        return record
    try:
        return json.loads(record)
    except (ValueError, RecursionError):
        return record


def _bare(review: Any) -> Any:
    return {name: value for name, value in review.items() if name != "before"} if isinstance(review, dict) else review


def _before(review: Any) -> list[Any]:
    before = review.get("before", []) if isinstance(review, dict) else []
    return before if isinstance(before, list) else [before]


def _conflict(one: Correction, old: dict[str, Any], number: int) -> Conflict:
    pointers = [change["pointer"] or "/" for change in changes(_record(old), one.record)]
    review = old.get("review")
    by = str(review.get("by", "")) if isinstance(review, dict) else ""
    return Conflict(one.place, one.id, number + 1, by, tuple(pointers[:MAX_PLACES]))


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii")
