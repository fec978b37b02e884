"""The flow picture: input, the way that documents took, what became of them; and histograms. Geometry only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
BAR = 9


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
    paths = [path for path in PATHS if any(counts.get((path, status)) for status in STATUSES)]
    ends = [status for status in STATUSES if any(counts.get((path, status)) for path in paths)]
    scale = BODY / max(1, total)
    by_path = {path: sum(counts.get((path, status), 0) for status in ends) for path in paths}
    by_end = {status: sum(counts.get((path, status), 0) for path in paths) for status in ends}
    middle, right = width * 0.31, width - BAR
    first = _column({"in": total}, scale)
    second, third = _column(by_path, scale), _column(by_end, scale)
    height = max(bottom for column in (first, second, third) for _, bottom in column.values()) + 30
    nodes = [_node("documents in", "flow.in", total, total, "in", 0, first["in"], 0)]
    nodes += [
        _node(path, f"flow.path.{path}", by_path[path], total, _kind(path), middle, second[path], 1) for path in paths
    ]
    nodes += [_node(status, f"flow.status.{status}", by_end[status], total, status, right, third[status], 2) for status in ends]
    ribbons = [*_ribbons_in(by_path, first, second, scale, middle), *_ribbons(counts, second, third, scale, middle, right)]
    told = "; ".join(
        f"{path}: " + ", ".join(f"{whole(counts[path, s])} {s}" for s in ends if counts.get((path, s))) for path in paths
    )
    heads = ((0.0, "start", "input"), (middle, "start", "way"), (width, "end", "outcome"))
    return Flow(width, height, tuple(nodes), tuple(ribbons), f"{whole(total)} documents. {told}.", heads)


def _kind(path: str) -> str:
    return {"not asked": "none", "no record": "none", "first pass": "one", "repaired or retried": "two"}.get(path, "three")


def _column(counts: Mapping[str, int], scale: float) -> dict[str, tuple[float, float]]:
    """Top and bottom of each node, one below the other with room for their texts. Below the heads of the columns."""
    places, y = {}, 26.0
    for name, documents in counts.items():
        height = max(THIN, documents * scale)
        places[name] = (y, y + height)
        y += max(height, LINE) + 10
    return places


def _node(
    label: str, name: str, documents: int, total: int, kind: str, x: float, place: tuple[float, float], column: int
) -> Node:
    top, bottom = place
    text_x, anchor = (x - 7, "end") if column == 2 else (x + BAR + 7, "start")
    note = "" if column == 0 else percent(documents, total)
    return Node(label, name, documents, note, kind, x, top, bottom - top, text_x, top + 12, anchor)


def _ribbons_in(
    by_path: Mapping[str, int],
    first: Mapping[str, tuple[float, float]],
    second: Mapping[str, tuple[float, float]],
    scale: float,
    middle: float,
) -> list[Ribbon]:
    made, y = [], first["in"][0]
    for path, documents in by_path.items():
        height = max(THIN, documents * scale)
        shape = _shape(BAR, y, middle, second[path][0], height)
        made.append(Ribbon(shape, _kind(path), "", documents, f"{whole(documents)} {path}"))
        y += documents * scale
    return made


def _ribbons(
    counts: Mapping[tuple[str, str], int],
    second: Mapping[str, tuple[float, float]],
    third: Mapping[str, tuple[float, float]],
    scale: float,
    middle: float,
    right: float,
) -> list[Ribbon]:
    made = []
    left = {path: top for path, (top, _) in second.items()}
    arriving = {status: top for status, (top, _) in third.items()}
    for path in second:
        for status in third:
            if documents := counts.get((path, status), 0):
                height = max(THIN, documents * scale)
                shape = _shape(middle + BAR, left[path], right, arriving[status], height)
                title = f"{whole(documents)} {path}, {status}"
                made.append(Ribbon(shape, status, f"flow.{path}.{status}", documents, title))
                left[path] += documents * scale
                arriving[status] += documents * scale
    return made


def _shape(x: float, y: float, to_x: float, to_y: float, height: float) -> str:
    bend = (x + to_x) / 2
    return (
        f"M{x:.1f} {y:.1f}C{bend:.1f} {y:.1f} {bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        f"v{height:.1f}C{bend:.1f} {to_y + height:.1f} {bend:.1f} {y + height:.1f} {x:.1f} {y + height:.1f}z"
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
