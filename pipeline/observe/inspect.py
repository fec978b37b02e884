"""Inspect: the documents of a committed run with their raw output and problems side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pipeline.observe.visible import cell, visible_id
from pipeline.schema.storage import as_json

SHOWN_CHARACTERS = 1500


def panel_of(row: Mapping[str, Any], document_text: str) -> RenderableType:
    """One outcome: what was read, what the model answered, what was made of it and why."""
    title = f"{visible_id(row['document_id'])}  {row['schema']}  {row['status']}  layer {row['layer']}"
    last = row["attempts"][-1]["raw_text"] if row["attempts"] else "(no engine was asked)"
    sides = Columns(
        [_box("document", document_text), _box("raw output of the last attempt", last)], equal=True, expand=True
    )
    record = row.get("record")
    shown = "(none)" if record is None else json.dumps(as_json(record), ensure_ascii=False, indent=1)
    return Panel(Group(sides, _box("record", shown), *_findings(row)), title=cell(title), title_align="left")


def _findings(row: Mapping[str, Any]) -> Iterator[Text]:
    for problem in row["problems"]:
        where = f" at {problem['pointer']}" if problem["pointer"] else ""
        attempt = f" (attempt {problem['attempt']})" if problem["attempt"] else ""
        yield cell(f"problem  {problem['layer']}: {problem['code']}{where}: {problem['message']}{attempt}")
    for repair in row["repairs"]:
        attempt = f" (attempt {repair['attempt']})" if repair.get("attempt") else ""
        yield cell(f"repair   {repair['kind']} {repair['pointer']} {repair['detail']}{attempt}")
    for a in row["attempts"]:
        constraint = "constraint in force" if a["constrained"] else "not constrained"
        tokens = f"{a['prompt_tokens']} prompt ({a['cached_tokens']} cached) + {a['output_tokens']} output tokens"
        yield cell(
            f"attempt  {a['number']}: {a['finish_reason']} {a['error']}, {constraint}, {tokens}, {a['seconds']:.2f} s"
        )


def _box(title: str, text: str) -> Panel:
    cut = f"\n… {len(text) - SHOWN_CHARACTERS} more characters" if len(text) > SHOWN_CHARACTERS else ""
    return Panel(cell(text[:SHOWN_CHARACTERS] + cut), title=cell(title), title_align="left")
