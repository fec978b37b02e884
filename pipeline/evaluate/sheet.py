"""Sheet: tables of an experiment, shown on a terminal and as one HTML page in the style of a run's report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import __version__
from pipeline.errors import OutputError
from pipeline.evaluate.intervals import Rate
from pipeline.evaluate.side_rates import Gap
from pipeline.observe.visible import cell
from pipeline.report.page import template
from pipeline.report.shown import Cell, Table, amount, number

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "soft": "dim"}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what its tables mean, and the tables; `name` is its anchor."""

    name: str
    heading: str
    lead: str
    tables: Sequence[Table]


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that is shown. `lines` say first what was found, `notes` what a reader must know before believing it;
    `command` makes it again."""

    over: str
    title: str
    lines: Sequence[str]
    notes: Sequence[str]
    sections: Sequence[Section]
    command: str


def rendered(sheet: Sheet) -> Iterator[RenderableType]:
    """The sheet for a terminal."""
    import rich.table

    yield cell(f"{sheet.over}: {sheet.title}", "bold")
    for section in sheet.sections:
        for one in (table for table in section.tables if table.rows):
            made = rich.table.Table(title=cell(one.caption), title_justify="left")
            for place, column in enumerate(one.columns):
                made.add_column(cell(column), justify="right" if place in one.numeric else "left")
            for row in one.rows:
                made.add_row(*(cell(_plain(item), _STYLES.get(item.tone, "")) for item in row))
            yield made
    yield from (cell(f"note: {words}", "yellow") for words in sheet.notes)
    yield from (cell(words) for words in sheet.lines)


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write the page to a file.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        path.write_bytes(template("sheet.html").render(sheet=sheet, version=__version__).encode("utf-8"))
    except OSError as error:
        raise OutputError(f"cannot write the page to {os.fspath(path)}: {error.strerror or error}.") from error


def rate_cell(name: str, rate: Rate) -> Cell:
    """A share with its interval."""
    if rate.value is None:
        return Cell("–", name, None, tone="soft")
    return number(name, rate.value, f"{rate.value:.1%}", f"{rate.low:.0%} to {rate.high:.0%}")


def mean_cell(name: str, mean: Gap) -> Cell:
    """An amount with its interval."""
    if mean.value is None:
        return Cell("–", name, None, tone="soft")
    note = "" if mean.low is None else f"{amount(mean.low)} to {amount(mean.high)}"
    return number(name, mean.value, amount(mean.value), note)


def difference_cell(name: str, gap: Gap, *, worse: int = 0) -> Cell:
    """A difference of shares in percentage points; `worse` is 1 if more is worse, -1 if less is."""
    if gap.value is None:
        return Cell("–", name, None, tone="soft")
    note = "" if gap.low is None or gap.high is None else f"{100 * gap.low:+.0f} to {100 * gap.high:+.0f}"
    return Cell(f"{100 * gap.value:+.1f} points", name, gap.value, note, tone=_tone(gap, 0.0, worse))


def factor_cell(name: str, gap: Gap) -> Cell:
    """How many times as much."""
    if gap.value is None:
        return Cell("–", name, None, tone="soft")
    note = "" if gap.low is None or gap.high is None else f"{gap.low:.2f} to {gap.high:.2f}"
    return Cell(f"× {gap.value:.2f}", name, gap.value, note, tone=_tone(gap, 1.0, 1))


def _tone(gap: Gap, nothing: float, worse: int) -> str:
    if not worse or gap.value is None or not gap.excludes(nothing):
        return ""
    return "bad" if worse * (gap.value - nothing) > 0 else "good"


def _plain(item: Cell) -> str:
    return f"{item.text} ({item.note})" if item.note else item.text
