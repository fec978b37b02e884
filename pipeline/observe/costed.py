"""What `gristmill plan` shows a person: the plan's JSON becomes tables. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from pipeline.observe.checked_numbers import safe
from pipeline.observe.visible import cell

MAX_SCHEMAS = 60
"""Schemas that the table shows, those with most documents first."""

_TOTALS = (
    ("asked", "documents decoded for"),
    ("requests", "answers, all attempts"),
    ("first_prompts", "prompt tokens of first attempts"),
    ("prompts", "prompt tokens of all attempts"),
    ("cached", "  of these cached"),
    ("outputs", "output tokens"),
)

Document = Mapping[str, Any]


def rendered(document: Document) -> Iterator[RenderableType]:
    """The parts of a plan in the order in which a person should read them."""
    documents, groups = document["documents"], document["groups"]
    backends = ", ".join(f"{count} {safe(name)}" for name, count in groups["backends"].items())
    grammars = f"{groups['grammars']} grammars" + (f": {backends}" if backends else "")
    yield cell(
        f"{safe(document['job'])}: {documents['total']:,} documents in {documents['units']:,} units, "
        f"{len(document['schemas'])} schemas, {grammars}",
        "bold",
    )
    for one in document["look_at"]:
        yield cell(f"{one['code']}: {safe(one['words'], 600)}", "yellow")
    yield _schemas(document)
    yield _totals(document)
    if document["engine_hours"]:
        yield _times(document)
    for note in document["notes"]:
        yield cell(f"- {safe(note, 600)}")


def _schemas(document: Document) -> Table:
    heads = ("schema", "documents", "back end", "sampled", "prompt tokens", "longest", "answers", "output tokens")
    table = Table(*heads, title="by schema: tokens of one prompt and of one answer, answers a document")
    table.title_justify = "left"
    rows = sorted(document["schemas"], key=lambda one: -one["documents"])
    for one in rows[:MAX_SCHEMAS]:
        table.add_row(*map(cell, _schema(one)))
    if len(rows) > MAX_SCHEMAS:
        table.add_row(cell(f"… and {len(rows) - MAX_SCHEMAS} more (--json)"))
    return table


def _schema(one: Document) -> list[str]:
    name, count = safe(one["name"]), f"{one['documents']:,}"
    if one["sampled"] is None:
        return [name, count, "refused"]
    sampled, tokens = one["sampled"], one["tokens"]
    asked = tokens["asked"]["value"]
    prompt = {key: tokens["first_prompts"][key] / asked if asked else 0.0 for key in ("value", "low", "high")}
    return [
        name,
        count,
        safe(one["backend"]),
        str(sampled["documents"]),
        between(prompt),
        str(sampled["longest_prompt"]),
        between(tokens["attempts"]),
        between(tokens["output"]),
    ]


def _totals(document: Document) -> Table:
    table = Table("all documents", "estimate", "from", "to", "basis", title_justify="left")
    for key, words in _TOTALS:
        table.add_row(*map(cell, (words, *_row(document["tokens"][key]))))
    if document["tokens_per_second"]:
        words = "output tokens per second of one engine"
        table.add_row(*map(cell, (words, *_row(document["tokens_per_second"]))))
    return table


def _times(document: Document) -> Table:
    table = Table("engines", "GPUs", "time", "cost", "why", title="time and cost", title_justify="left")
    gpus, deadline = document["engine"]["gpus"], document["deadline"]
    rows = [("as the job places them", document["as_placed"])]
    if deadline:
        words = f"for {deadline['hours']:g} hours"
        rows.append((words, deadline["at_value"]))
        if deadline["at_high"] != deadline["at_value"]:
            rows.append((f"{words}, at the upper end", deadline["at_high"]))
    for why, one in rows:
        cost = between(one["cost"]) if one["cost"] else ""
        engines = one["engines"]
        table.add_row(*map(cell, (str(engines), f"{engines * gpus:g}", _span(one["hours"]), cost, why)))
    return table


def _span(hours: Document) -> str:
    """A time in hours, or in minutes if it is less than one."""
    each, unit = (60, "min") if hours["high"] < 1 else (1, "h")
    return f"{between({name: each * hours[name] for name in ('value', 'low', 'high')})} {unit}"


def _row(estimate: Document) -> tuple[str, str, str, str]:
    return (*(amount(estimate[key]) for key in ("value", "low", "high")), estimate["basis"])


def between(estimate: Document) -> str:
    """A value with its interval, if it has one."""
    value, low, high = (amount(estimate[key]) for key in ("value", "low", "high"))
    return value if low == high else f"{value} ({low} to {high})"


def amount(value: float) -> str:
    """A number as people read it: whole if it is large, else three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
