"""Models side by side as tables, and as one JSON document (docs/models.md lists its keys)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from pipeline.evaluate.advice import CRITERIA, WORDS
from pipeline.evaluate.models import AMOUNTS, SHARES, ModelRow, Selection
from pipeline.evaluate.sheet import Section, Sheet, mean_cell, rate_cell
from pipeline.report.sections import key
from pipeline.report.shown import Cell, Table, amount, number, table, text

_ROWS = {
    "gold": "F1 against gold, mean of documents",
    "valid": "valid",
    "legal": "first answer satisfies the schema",
    "required": "required values that are filled",
    "empty": "fields of records that hold nothing",
    "unsupported": "values that the document does not support",
    "clipped": "clipped mass of a value token",
    "repeat": "records that change when run again",
    "batch": "records that change in other batches",
    "output_tokens": "output tokens of a document",
    "seconds": "seconds of the engine, a document",
}


def as_document(found: Selection) -> dict[str, Any]:
    """Everything that is known, as JSON values."""
    return {**dataclasses.asdict(found), "recommended": found.advice.recommended}


def models_sheet(found: Selection, job: str, command: str) -> Sheet:
    """All that is shown."""
    lead = (
        f"Over the {found.documents} documents of all runs. Each share and amount has its 95 % interval. The advice "
        f"rests on paired differences with intervals of {found.level:.2%} each, which is 95 % for all of them."
    )
    sections = [
        Section("models", "Side by side", lead, [_models(found)]),
        Section("advice", "Advice", "", [_out(found)]),
    ]
    sections[1] = dataclasses.replace(sections[1], lead=_rule())
    lines = [found.advice.words, *(one.words for one in found.advice.out)]
    return Sheet("Gristmill models", job, lines, found.notes, sections, command)


def _rule() -> str:
    order = ", ".join(WORDS[name] for name in (*CRITERIA, "cost"))
    return (
        f"In this order: {order}. By each, a model is out that is shown to be worse than the best of those left. "
        "Nothing is weighed against anything else."
    )


def _models(found: Selection) -> Table:
    rows = [[text(_ROWS[name], name), *_cells(found, name)] for name in (*SHARES, *AMOUNTS)]
    rows = [row for row in rows if any(cell.value is not None for cell in row[1:])]
    rows.append([text("output tokens a second"), *(_tokens(one) for one in found.models)])
    words = "cost per valid record" if any(one.speed.money for one in found.models) else "seconds per valid record"
    rows.append([text(words), *(mean_cell(key("per_valid", one.name), one.speed.per_valid) for one in found.models)])
    return table("Models", ("", *(one.name for one in found.models)), rows)


def _cells(found: Selection, name: str) -> Iterator[Cell]:
    for one in found.models:
        where = key("model", one.name, name)
        yield rate_cell(where, one.shares[name]) if name in SHARES else mean_cell(where, one.amounts[name])


def _tokens(one: ModelRow) -> Cell:
    value = one.speed.tokens_per_second
    return number(key("tokens_per_second", one.name), value, amount(value))


def _out(found: Selection) -> Table:
    rows = [[text(one.model), text(WORDS[one.criterion]), text(one.words)] for one in found.advice.out]
    return table("Models that are out", ("model", "by", "why"), rows, (0, 1, 2))
