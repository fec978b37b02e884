"""A comparison as a page: one HTML file that opens offline, in the style of a run's report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.errors import OutputError
from pipeline.evaluate.comparison import FieldDiff, Measure, RunComparison
from pipeline.evaluate.comparison_text import is_told, moved, shown, summary
from pipeline.evaluate.gate import Gated, Rule
from pipeline.records import STATUSES
from pipeline.report.page import template
from pipeline.report.sections import key
from pipeline.report.shown import Cell, Table, count, cut, number, part, table, text

SHOWN_FIELDS = 60
_TONES = {"promote": "good", "hold": "warn", "roll_back": "bad", "kept": "good", "open": "warn", "broken": "bad"}


def write_page(found: RunComparison, gated: Gated, path: Path) -> None:
    """Write the page to a file.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        path.write_bytes(page_of(found, gated).encode("utf-8"))
    except OSError as error:
        raise OutputError(f"cannot write the page to {os.fspath(path)}: {error.strerror or error}.") from error


def page_of(found: RunComparison, gated: Gated) -> str:
    """The page as HTML, without anything that lies elsewhere."""
    return template("compare.html").render(**_context(found, gated))


def _context(found: RunComparison, gated: Gated) -> dict[str, Any]:
    told = [one for one in found.measures if one.group != "field"]
    return {
        "version": __version__,
        "found": found,
        "pairs": count("pairs", found.pairing.documents),
        "verdict": Cell(gated.decision.replace("_", " "), "verdict", gated.decision, tone=_TONES[gated.decision]),
        "summary": summary(found),
        "rules": _rules(gated.rules),
        "changes": _changes(found),
        "statuses": _statuses(found),
        "measures": _measures("Paired, over all documents of both", [one for one in told if is_told(one)]),
        "others": _measures("Codes and schemas without a change", [one for one in told if not is_told(one)]),
        "fields": _fields(found),
        "examples": _examples(found),
    }


def _rules(rules: tuple[Rule, ...]) -> Table:
    rows = [
        [
            text(rule.name, code=True),
            Cell(rule.state, key("rule", rule.name), rule.state, tone=_TONES[rule.state]),
            text(rule.words.removeprefix(f"{rule.name}: ")),
        ]
        for rule in rules
    ]
    return table("Rules of the gate", ("rule", "state", "why"), rows, (0, 1, 2))


def _changes(found: RunComparison) -> Table:
    rows = [
        [text(one.kind), text(cut(one.name, 120), code=True), _quoted(one.a), _quoted(one.b)] for one in found.changes
    ]
    return table("What the runs were not made by alike", ("kind", "what", "A", "B"), rows, (0, 1, 2, 3))


def _quoted(value: Any) -> Cell:
    return text("nothing" if value is None else cut(str(value)), code=value is not None)


def _statuses(found: RunComparison) -> Table:
    rows = []
    for one in STATUSES:
        row = [Cell(f"{one} in A", tone=one)]
        for two in STATUSES:
            value = found.transitions.get((one, two), 0)
            tone = "" if one == two or not value else "good" if two == "valid" else "bad" if one == "valid" else "warn"
            row.append(part(key("transition", one, two), value, found.pairing.documents, tone or "soft"))
        rows.append(row)
    return table("Documents by status in A and in B", ("", *(f"{two} in B" for two in STATUSES)), rows)


def _measures(caption: str, some: list[Measure]) -> Table:
    columns = ("what", "A", "B", "more in B", "less in B", "documents", "corrected p", "test")
    return table(caption, columns, [list(_measure_row(one)) for one in some], (0, 7))


def _measure_row(one: Measure) -> Iterator[Cell]:
    where = key("measure", one.name, one.schema)
    yield text(one.name, one.schema, code=True)
    yield number(key(where, "a"), one.a, shown(one, one.a))
    tone = "bad" if one.is_worse else "good" if one.verdict == "changed" and one.worse else ""
    yield Cell(shown(one, one.b), key(where, "b"), one.b, tone=tone)
    yield count(key(where, "up"), one.up)
    yield count(key(where, "down"), one.down)
    yield count(key(where, "documents"), one.documents)
    yield number(key(where, "p"), one.adjusted, "too few differ" if one.verdict == "few" else f"{one.adjusted:.2g}")
    yield text(one.statistic)


def _fields(found: RunComparison) -> Table:
    columns = ("field", "same", "changed", "only in B", "only in A", "documents", "moved beyond chance")
    some = [one for one in found.fields if one.differ]
    more = f", {SHOWN_FIELDS} of {len(some)} are shown" if len(some) > SHOWN_FIELDS else ""
    caption = f"Fields that differ, over documents with a record in both{more}"
    return table(caption, columns, [list(_field_row(found, one)) for one in some[:SHOWN_FIELDS]], (0, 6))


def _field_row(found: RunComparison, one: FieldDiff) -> Iterator[Cell]:
    where = key("field", one.schema, one.pointer)
    yield text(one.pointer or "(the record)", one.schema, code=True)
    for name in ("same", "changed", "appeared", "vanished"):
        yield part(key(where, name), getattr(one, name), one.documents)
    yield count(key(where, "documents"), one.documents)
    yield text("; ".join(moved(found, one)))


def _examples(found: RunComparison) -> Table:
    rows = [
        [text(one.what, one.schema), text(one.document_id[:120], code=True), text(one.a), text(one.b)]
        for one in found.examples
    ]
    return table("Documents that differ", ("what", "document", "A", "B"), rows, (0, 1, 2, 3))
