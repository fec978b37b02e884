"""The flow picture: input, the way that documents took, what became of them; and histograms. Geometry only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.records import STATUSES
from pipeline.report.findings import PATHS
from pipeline.report.lengths import BINS, Lengths
from pipeline.report.shown import percent, whole

THIN = 1.6
"""Height of the thinnest ribbon: one document of a million is still seen."""
LINE = 34
"""Room of a node's two lines of text."""
BODY = 230
"""Height of all documents together."""
BAR = 9
HEAD = 26.0
KINDS = dict(zip(PATHS, ("none", "one", "two", "three", "none"), strict=True))
"""Classes of the style sheet."""


@dataclass(frozen=True, slots=True)
class Node:
    """A bar with its text beside it. `name` is its figure's; `anchor` is where its text begins or ends."""

    label: str
    name: str
    documents: int
    note: str
    kind: str
    x: float
    y: float
    height: float
    text_x: float
    text_y: float
    anchor: str


@dataclass(frozen=True, slots=True)
class Ribbon:
    """Documents that went from one node to another."""

    path: str
    kind: str
    name: str
    documents: int
    title: str


@dataclass(frozen=True, slots=True)
class Flow:
    """The whole picture in units of its own; `told` says the same in words."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    ribbons: tuple[Ribbon, ...]
    told: str
    heads: tuple[tuple[float, str, str], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin of a histogram: `count` answers, of which `cut` were cut."""

    x: float
    y: float
    width: float
    height: float
    cut_height: float
    count: int
    cut: int
    label: str
    index: int


def flow_of(counts: Mapping[tuple[str, str], int], width: float) -> Flow:
    """The picture of documents by (path, status)."""
    total = sum(counts.values())
    ends = [status for status in STATUSES if any(counts.get((path, status)) for path in PATHS)]
    by_path = {path: found for path in PATHS if (found := sum(counts.get((path, status), 0) for status in ends))}
    by_end: dict[str, int] = {status: sum(counts.get((path, status), 0) for path in by_path) for status in ends}
    middle, right = width * 0.31, width - BAR
    columns = [_column(x, each, total) for x, each in ((0.0, {"in": total}), (middle, by_path), (right, by_end))]
    height = max(spot.bottom for column in columns for spot in column.values()) + 30
    nodes = [
        _node("documents in", "flow.in", columns[0]["in"], ("start", "in", "")),
        *(
            _node(path, f"flow.path.{path}", spot, ("start", KINDS[path], percent(spot.documents, total)))
            for path, spot in columns[1].items()
        ),
        *(
            _node(status, f"flow.status.{status}", spot, ("end", status, percent(spot.documents, total)))
            for status, spot in columns[2].items()
        ),
    ]
    incoming = {("in", path): documents for path, documents in by_path.items()}
    ribbons = [*_ribbons(incoming, columns[0], columns[1], total), *_ribbons(counts, columns[1], columns[2], total)]
    told = (f"{path}: {_told(counts, path, ends)}" for path in by_path)
    heads = ((0.0, "start", "input"), (middle, "start", "way"), (width, "end", "outcome"))
    return Flow(width, height, tuple(nodes), tuple(ribbons), f"{whole(total)} documents. {'; '.join(told)}.", heads)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a node stands."""

    documents: int
    x: float
    top: float
    bottom: float


def _told(counts: Mapping[tuple[str, str], int], path: str, ends: Sequence[str]) -> str:
    return ", ".join(f"{whole(counts[path, status])} {status}" for status in ends if counts.get((path, status)))


def _column(x: float, counts: Mapping[str, int], total: int) -> dict[str, _Spot]:
    """The nodes of a column, one below the other with room for their texts, below the head of the column."""
    spots, y = {}, HEAD
    for name, documents in counts.items():
        height = _thick(documents, total)
        spots[name] = _Spot(documents, x, y, y + height)
        y += max(height, LINE) + 10
    return spots


def _thick(documents: int, total: int) -> float:
    return max(THIN, documents * BODY / max(1, total))


def _node(label: str, name: str, spot: _Spot, how: tuple[str, str, str]) -> Node:
    anchor, kind, note = how
    text_x = spot.x - 7 if anchor == "end" else spot.x + BAR + 7
    height = spot.bottom - spot.top
    return Node(label, name, spot.documents, note, kind, spot.x, spot.top, height, text_x, spot.top + 12, anchor)


def _ribbons(
    counts: Mapping[tuple[str, str], int], left: Mapping[str, _Spot], right: Mapping[str, _Spot], total: int
) -> Iterator[Ribbon]:
    """From each node to each that it leads to, stacked in order at both ends."""
    leaving, arriving = {name: spot.top for name, spot in left.items()}, {name: s.top for name, s in right.items()}
    for here, spot in left.items():
        for there, end in right.items():
            if documents := counts.get((here, there), 0):
                thick = _thick(documents, total)
                shape = _shape(spot.x + BAR, leaving[here], end.x, arriving[there], thick)
                name = "" if here == "in" else f"flow.{here}.{there}"
                title = f"{whole(documents)} {there}" if here == "in" else f"{whole(documents)} {here}, {there}"
                yield Ribbon(shape, KINDS.get(there, there), name, documents, title)
                leaving[here] += documents * BODY / total
                arriving[there] += documents * BODY / total


def _shape(x: float, y: float, to_x: float, to_y: float, thick: float) -> str:
    bend = (x + to_x) / 2
    return (
        f"M{x:.1f} {y:.1f}C{bend:.1f} {y:.1f} {bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"v{thick:.1f}C{bend:.1f} {to_y + thick:.1f} {bend:.1f} {y + thick:.1f} {x:.1f} {y + thick:.1f}z"
    )


def histogram(lengths: Lengths, width: float = 320, height: float = 84) -> Sequence[Bar]:
    """The bars of a schema's answers by the share of their budget that they took."""
    most = max(lengths.bins.values(), default=1)
    step = width / BINS
    bars = []
    for index in range(BINS):
        count, cut = lengths.bins[index], lengths.cut[index]
        tall = max(2.0, height * count / most) if count else 0.0
        short = max(2.0, height * cut / most) if cut else 0.0
        label = f"{index * 100 // BINS} to {(index + 1) * 100 // BINS} % of the budget: {whole(count)} answers"
        label += f", {whole(cut)} cut" if cut else ""
        bars.append(Bar(index * step + 1, height - tall, step - 2, tall, short, count, cut, label, index))
    return bars
