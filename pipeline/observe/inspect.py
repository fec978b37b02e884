"""Inspect: the documents of a committed run with their raw output and problems side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pipeline.observe.visible import cell, visible_id
from pipeline.schema.storage import as_json

SHOWN_CHARACTERS = 1500
SHOWN_LINES = 40
SHOWN_CLIPPED = 8
CLIPPED_MASS = 0.05
"""What is less than that is not shown, and may be rounding."""
SHOWN_WORDS = 60
"""Characters of a supporting text or of a raw value: enough to recognise it."""

NO_DOCUMENT = "(no document: "
"""How a text begins that stands where a document's should: nothing in it supports a value."""


def panel_of(row: Mapping[str, Any], document_text: str) -> RenderableType:
    """One outcome: what was read, what the model answered, what was made of it and why."""
    title = f"{visible_id(row['document_id'])}  {row['schema']}  {row['status']}  layer {row['layer']}"
    if row.get("confidence") is not None:
        title += f"  confidence {row['confidence']:.2f}"
    last = row["attempts"][-1]["raw_text"] if row["attempts"] else "(no engine was asked)"
    sides = Columns(
        [_box("document", document_text), _box("raw output of the last attempt", last)], equal=True, expand=True
    )
    record = row.get("record")
    shown = "(none)" if record is None else json.dumps(as_json(record), ensure_ascii=False, indent=1)
    findings = chain(_problems(row), _repairs(row), _fields(row, document_text), _clipped(row), _attempts(row))
    return Panel(Group(sides, _box("record", shown), *findings), title=cell(title), title_align="left")


def _problems(row: Mapping[str, Any]) -> Iterator[Text]:
    problems = row["problems"]
    for problem in problems[:SHOWN_LINES]:
        where = f" at {_cut(problem['pointer'])}" if problem["pointer"] else ""
        attempt = f" (attempt {problem['attempt']})" if problem["attempt"] else ""
        severity = f" [{problem['severity']}]" if problem.get("severity") else ""
        words = f"{problem['layer']}: {problem['code']}{where}: {problem['message']}{severity}{attempt}"
        yield cell(f"problem  {words}")
    yield from _others(len(problems), "problems")


def _repairs(row: Mapping[str, Any]) -> Iterator[Text]:
    for repair in row["repairs"][:SHOWN_LINES]:
        attempt = f" (attempt {repair['attempt']})" if repair.get("attempt") else ""
        yield cell(f"repair   {repair['kind']} {_cut(repair['pointer'])} {repair['detail']}{attempt}")
    yield from _others(len(row["repairs"]), "repairs")


def _fields(row: Mapping[str, Any], document_text: str) -> Iterator[Text]:
    """Of each value: what supports it, what it was before it was normalised, how sure one can be."""
    lines = [line for field in row.get("fields") or () if (line := _field(field, document_text))]
    for line in lines[:SHOWN_LINES]:
        yield cell(line)
    yield from _others(len(lines), "fields")


def _field(field: Mapping[str, Any], document_text: str) -> str:
    known = []
    if field["match"]:
        known.append(f"support {field['match']}{_support(field, document_text)}")
    if field["raw"] is not None:
        known.append(f"the model wrote {_cut(field['raw'])}")
    if field["touched"]:
        known.append("touched by a repair")
    if field["confidence"] is not None:
        known.append(f"confidence {field['confidence']:.2f}")
    return f"field    {_cut(field['pointer']) or '(the record)'}: {', '.join(known)}" if known else ""


def _support(field: Mapping[str, Any], document_text: str) -> str:
    score = f" {field['score']:.2f}" if field["match"] == "fuzzy" and field["score"] is not None else ""
    start, end = field["start"], field["end"]
    if start is None or end is None:
        return score
    inside = 0 <= start <= end <= len(document_text) and not document_text.startswith(NO_DOCUMENT)
    words = f' "{_cut(document_text[start:end])}"' if inside else ""
    return f"{score}{words} at {start}-{end}"


def _clipped(row: Mapping[str, Any]) -> Iterator[Text]:
    """What the constraint took from the first answer, the most first. Runs of older versions do not have it."""
    if (audit := row.get("audit")) and audit != "done":
        yield cell(f"clipped  not audited: {audit}")
    places = [place for place in row.get("clipped") or () if place["mass"] >= CLIPPED_MASS]
    places.sort(key=lambda place: -place["mass"])
    for place in places[:SHOWN_CLIPPED]:
        where = f"{_cut(place['pointer']) or '(the record)'} {place['part']}"
        yield cell(f"clipped  {where}: {place['mass']:.2f} of {place['tokens']} tokens, {place['highest']:.2f} at most")


def _attempts(row: Mapping[str, Any]) -> Iterator[Text]:
    for a in row["attempts"]:
        constraint = "constraint in force" if a["constrained"] else "not constrained"
        tokens = f"{a['prompt_tokens']} prompt ({a['cached_tokens']} cached) + {a['output_tokens']} output tokens"
        most = f" of {a['max_tokens']}" if a.get("max_tokens") else ""
        temperature = f", temperature {a['temperature']:g}" if a.get("temperature") else ""
        engine = f" on {a['engine']}" if a["number"] > 1 and a["engine"] != row["attempts"][0]["engine"] else ""
        yield cell(
            f"attempt  {a['number']}{engine}: {a['finish_reason']} {a['error']}, {constraint}, {tokens}{most}"
            f"{temperature}, {a['seconds']:.2f} s"
        )


def _others(count: int, what: str) -> Iterator[Text]:
    if count > SHOWN_LINES:
        yield cell(f"… and {count - SHOWN_LINES} more {what}")


def _cut(text: str) -> str:
    """A text on one line and bounded."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_WORDS else line[: SHOWN_WORDS - 1] + "…"


def _box(title: str, text: str) -> Panel:
    cut = f"\n… {len(text) - SHOWN_CHARACTERS} more characters" if len(text) > SHOWN_CHARACTERS else ""
    return Panel(cell(text[:SHOWN_CHARACTERS] + cut), title=cell(title), title_align="left")
