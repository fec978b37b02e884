"""Corrections: what came back, judged as an answer of a model is: each row is a correction, open, or at fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import GristmillError
from pipeline.evaluate.review.changes import changes, equal
from pipeline.evaluate.review.entry import OK, SKIP, VERDICTS, Returned
from pipeline.records import Completion, JsonValue, Problem
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import load_schema
from pipeline.steps.codes import cap_of
from pipeline.steps.parse import parse
from pipeline.steps.validate import validate

MAX_TOLD = 5
"""Problems of one row that are told."""
_QUOTES = "“”„‟«»‘’"
_PERSON = "nobody is named: fill `by` in, or give --by"


@dataclass(frozen=True, slots=True)
class Correction:
    """A record that a person vouches for. `changed` is what the person changed of the exported one."""

    place: str
    id: str
    schema: str
    record: JsonValue
    by: str
    note: str
    changed: tuple[Mapping[str, Any], ...]
    key: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that a person must look at again; `id` is empty where it cannot be known."""

    place: str
    id: str
    words: str


@dataclass(slots=True)
class Read:
    """All that a file says. `open` counts rows without a verdict and `skipped` those with `skip`; `touched` are
    such rows whose record was changed all the same; `absent` counts rows of the exports that are not in the file."""

    corrections: list[Correction] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    touched: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    open: int = 0
    skipped: int = 0
    absent: int = 0


def corrections_of(rows: Iterable[Returned], schemas: str, by: str = "") -> Read:
    """The corrections of a file, of which two that disagree about one document are faults. `schemas` is where schemas
    lie; `by` is the person where a row names none."""
    judge, read = _Judge(schemas), Read()
    seen: dict[str, Counter[int]] = {}
    sizes: dict[str, int] = {}
    made: dict[tuple[str, str], list[Correction]] = {}
    for row in rows:
        if row.key:
            seen.setdefault(row.key["export"], Counter())[row.key["row"]] += 1
            sizes[row.key["export"]] = row.key["of"]
        correction = _taken(row, judge, by, read)
        if correction is not None:
            made.setdefault((correction.id, correction.schema), []).append(correction)
    for same in made.values():
        first, *others = same
        if other := next((one for one in others if not equal(one.record, first.record)), None):
            words = f"{first.place} and {other.place} have different records of it. Keep one"
            read.faults.append(Fault(f"{first.place}, {other.place}", first.id, words))
        else:
            read.corrections.append(first)
    read.absent = sum(max(0, of - len(seen[export])) for export, of in sizes.items())
    read.notes = judge.notes
    return read


def _taken(row: Returned, judge: _Judge, by: str, read: Read) -> Correction | None:
    """The correction that a row is, or None; what it is instead is noted in `read`."""
    name = str(row.key.get("id", ""))
    if row.fault:
        read.faults.append(Fault(row.place, name, row.fault))
    elif row.verdict == SKIP:
        read.skipped += 1
        if judge.touched(row):
            words = f"the record was changed, but the verdict is {SKIP}: it is not taken"
            read.touched.append(Fault(row.place, name, words))
    elif row.verdict not in (OK, ""):
        words = f"the verdict {row.verdict[:40]!r} is none of {', '.join(VERDICTS)}, or empty for not looked at"
        read.faults.append(Fault(row.place, name, words))
    else:
        record, words = judge.record(row)
        changed = () if words else tuple(changes(row.key["record"], record))
        if row.verdict == OK and (words or not (row.by or by)):
            read.faults.append(Fault(row.place, name, words or _PERSON))
        elif row.verdict == OK:
            return Correction(row.place, name, row.key["schema"], record, row.by or by, row.note, changed, row.key)
        else:
            read.open += 1
            if judge.touched(row):
                told = f"the record was changed, but the verdict is empty: write {OK} when it is right"
                read.touched.append(Fault(row.place, name, f"{told}. As it stands: {words}" if words else told))
    return None


class _Judge:
    """Holds records against the schemas that lie in a directory, each loaded once."""

    def __init__(self, schemas: str) -> None:
        self._root = schemas
        self._plans: dict[str, DecodingPlan | str] = {}
        self.notes: list[str] = []

    def record(self, row: Returned) -> tuple[JsonValue, str]:
        """The record of a row, and what is wrong with it, empty if nothing is."""
        if not row.record.strip():
            return None, "the record is empty. Write the record, or `skip` as verdict"
        plan = self._plan(row.key)
        if isinstance(plan, str):
            return None, plan
        draft = parse(Completion(row.record, "stop", constrained=False), 0)
        draft = validate(draft, plan, 0) if draft.parsed else draft
        wrong = [problem for problem in draft.problems if cap_of(problem) != "valid"]
        return draft.value, _told(wrong, row.record, parsed=draft.parsed)

    def touched(self, row: Returned) -> bool:
        """Whether the record of a row is another one than was exported."""
        draft = parse(Completion(row.record, "stop", constrained=False), 0)
        return not draft.parsed or not equal(draft.value, row.key["record"])

    def _plan(self, key: Mapping[str, Any]) -> DecodingPlan | str:
        name = key["schema"]
        if name not in self._plans:
            try:
                schema = load_schema(self._root, name)
                self._plans[name] = build_plan(schema, "", backend="xgrammar", compact_json=True)
                if key["schema_digest"] not in ("", schema.digest):
                    self.notes.append(f"{name} is not the schema that the run was made with: today's one judges")
            except GristmillError as error:
                self._plans[name] = str(error)
        return self._plans[name]


def _told(wrong: list[Problem], text: str, *, parsed: bool) -> str:
    if not wrong:
        return ""
    if not parsed:
        curly = next((mark for mark in _QUOTES if mark in text), "")
        hint = f'. It holds {curly}: a spreadsheet may have made it of "' if curly else ""
        return f"the record is not JSON: {wrong[0].message}{hint}"
    lines = [f"{one.pointer or '/'} {one.message}" for one in wrong[:MAX_TOLD]]
    more = f", and {len(wrong) - MAX_TOLD} more" if len(wrong) > MAX_TOLD else ""
    return f"the schema refuses the record: {'; '.join(lines)}{more}"
