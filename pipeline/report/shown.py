"""How figures are shown: rounded for people, and exact beside it, so that each can be read back by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = int | float | str | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, or one figure in a sentence.

    A figure has a `name`, and its exact `value`, `of` a whole if it is a part; the same name on a page is the same
    figure. `note` stands smaller beside it, `share` (0 to 1) draws a bar, `tone` colours it (good, warn, bad, soft, a
    status), `href` makes it a link, `code` is for what is quoted from the run.
    """

    text: str
    name: str = ""
    value: Value = None
    note: str = ""
    share: float | None = None
    tone: str = ""
    href: str = ""
    code: bool = False
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; the first cell of a row is its heading. `numeric` are the columns that hold figures."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: frozenset[int] = field(default_factory=frozenset)


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], texts: Sequence[int] = (0,)) -> Table:
    """A table in which all columns but `texts` hold figures."""
    return Table(caption, columns, rows, frozenset(range(len(columns))) - frozenset(texts))


def count(name: str, value: int, note: str = "", tone: str = "") -> Cell:
    """A whole number."""
    return Cell(whole(value), name, value, note, tone=tone)


def part(name: str, value: int, of: int, tone: str = "") -> Cell:
    """A count as a share of its own whole: the share is shown, the count beside it, and the count is the value."""
    if not of:
        return Cell("–", name, value, "of none", tone="soft", of=0)
    return Cell(percent(value, of), name, value, f"{whole(value)} of {whole(of)}", value / of, tone, of=of)


def text(words: str, note: str = "", href: str = "", *, code: bool = False) -> Cell:
    """Words, or what is quoted from the run."""
    return Cell(words, note=note, href=href, code=code)


def number(name: str, value: float | None, shown: str, note: str = "", share: float | None = None) -> Cell:
    """A number that is no count, as it is to be shown; None: nobody knows."""
    return Cell("unknown" if value is None else shown, name, value, note, share)


def whole(value: int) -> str:
    """A count with its thousands apart."""
    return f"{value:,}"


def percent(value: float, of: float) -> str:
    """A share in percent that says 0 % and 100 % only of none and of all."""
    if not of:
        return "–"
    share = 100 * value / of
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0, 100) else f"{share:.1f} %"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return "unknown"
    if value < 60:
        return f"{value:.2f} s"
    if value < 3600:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.2f} h"


def amount(value: float | None) -> str:
    """A number with as many decimals as say something."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def most(counts: Mapping[str, int], wanted: int) -> list[tuple[str, int]]:
    """The highest counts; names decide between equals, so that no order of rows does."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:wanted]


def cut(words: str, most: int = 80) -> str:
    """Words on one line and bounded."""
    line = " ".join(words.split())
    return line if len(line) <= most else line[: most - 1] + "…"
