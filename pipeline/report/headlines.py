"""What needs a look, worst first: which layer broke, for which schema, at which field, and where to see it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.observe.shift import Comparison
from pipeline.observe.tally import Tally
from pipeline.report.against import Pair
from pipeline.report.findings import Findings
from pipeline.report.lengths import Lengths
from pipeline.report.problems import Group
from pipeline.report.sections import key
from pipeline.report.shown import Cell, most, percent, whole
from pipeline.steps.codes import CODES

MOST = 10
CUT_SHARE = 0.01
UNSUPPORTED_SHARE = 0.5
CLIPPED_MEAN = 0.3
ENOUGH = 20
"""Fewer values than this say nothing about a field."""
PER_KIND = 3
MOST_LAYERS = 5
LOSS = 0.05
"""A layer that costs more than this share of a schema's documents is bad, and one to watch below it."""

_ORDER = ("alarm", "bad", "warn", "info")


@dataclass(frozen=True, slots=True)
class Headline:
    """One line: `words` around its figure, with the layer, schema and place it speaks of, and where to read on.
    `weight` ranks lines of one tone: about how many documents it is about."""

    tone: str
    layer: str
    schema: str
    figure: Cell
    words: str
    place: str = ""
    more: str = ""
    href: str = ""
    weight: float = 0.0


def headlines(
    findings: Findings,
    total: Tally,
    pairs: Sequence[Pair],
    moved: Comparison | None,
    links: Mapping[tuple[str, str, str], str],
) -> list[Headline]:
    """The lines, worst first. `total` counts all documents, of which `findings` may have read some; `links` lead to the
    examples of groups of problems."""
    groups = findings.problems.ranked()
    found = [
        *_alarms(total, groups, links),
        *_layers(findings, groups, links)[:MOST_LAYERS],
        *_cut(findings.lengths),
        *_fields(findings),
        *_clipped(findings),
        *_changes(pairs),
        *_moved(moved),
    ]
    return sorted(found, key=lambda line: (_ORDER.index(line.tone), -line.weight, line.schema, line.place))[:MOST]


def _alarms(total: Tally, groups: Sequence[Group], links: Mapping[tuple[str, str, str], str]) -> Iterator[Headline]:
    """What no document is to blame for, also where none of those that were read has it."""
    for name, documents in most(total.alarms, PER_KIND):
        code, found = CODES[name], [group for group in groups if group.code == name]
        figure = Cell(whole(documents), key("alarm", name), documents)
        words = f"documents with {name}: {code.meaning}. The engine, its configuration or this program is at fault."
        schemas = sorted({group.schema for group in found})
        schema = f"{len(schemas)} schemas" if len(schemas) > 1 else "".join(schemas)
        href = next((links[group.key] for group in found if group.key in links), "")
        yield Headline("alarm", code.layer, schema, figure, words, "", f"Likely cause: {code.cause}.", href, documents)


def _layers(findings: Findings, groups: Sequence[Group], links: Mapping[tuple[str, str, str], str]) -> list[Headline]:
    """Which layer cost how many documents their validity, and the place that cost most; the most first."""
    lost: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for (schema, layer, status), documents in findings.problems.layers.items():
        lost[schema, layer][status] += documents
    found = []
    for (schema, layer), statuses in lost.items():
        documents, of = statuses.total(), findings.tallies[schema].documents
        first = next((group for group in groups if (group.schema, group.layer) == (schema, layer) and group.cost), None)
        figure = Cell(whole(documents), key("lost", schema, layer), documents, f"of {whole(of)}", of=of)
        parts = ", ".join(f"{whole(count)} {status}" for status, count in sorted(statuses.items(), reverse=True))
        words = f"documents are not valid ({parts})."
        more = f"Most often {first.code} ({whole(first.cost)}): {CODES[first.code].meaning}." if first else ""
        tone = "bad" if statuses["rejected"] > LOSS * of or documents > 2 * LOSS * of else "warn"
        place, href = (first.place, links.get(first.key, "")) if first else ("", "")
        found.append(Headline(tone, layer, schema, figure, words, place, more, href, documents))
    return sorted(found, key=lambda line: (_ORDER.index(line.tone), -line.weight, line.schema, line.layer))


def _cut(found: Mapping[str, Lengths]) -> Iterator[Headline]:
    """Budgets that are too small, or answers that do not end."""
    for schema, lengths in found.items():
        cut = sum(lengths.cut.values())
        if cut > CUT_SHARE * lengths.answers:
            figure = Cell(
                whole(cut), key("length", schema, "cut"), cut, f"of {whole(lengths.answers)}", of=lengths.answers
            )
            budget = whole(max(lengths.budgets, default=0))
            words = f"first answers ran into their budget of {budget} tokens."
            more = "Too small a budget, or answers that do not end: look where they stand against the budget."
            yield Headline("warn", "engine", schema, figure, words, "", more, "#lengths", cut)


def _fields(findings: Findings) -> Iterator[Headline]:
    """Fields whose values the documents do not hold, and fields that are never filled."""
    unsupported, unfilled = [], []
    for schema, found in findings.completeness.items():
        for place, counts in found.fields.items():
            sought, none = counts.matches.total(), counts.matches["none"]
            if sought >= ENOUGH and none > UNSUPPORTED_SHARE * sought:
                figure = Cell(
                    whole(none), key("field", schema, place, "unsupported"), none, f"of {whole(sought)}", of=sought
                )
                words = "values are not found in their documents: made up, or written otherwise."
                unsupported.append(Headline("warn", "ground", schema, figure, words, place, "", "#fields", none))
            if counts.asked >= ENOUGH and not counts.states["filled"]:
                figure = Cell(
                    "0", key("field", schema, place, "filled"), 0, f"of {whole(counts.asked)}", of=counts.asked
                )
                words = "records have a value here."
                unfilled.append(Headline("info", "schema", schema, figure, words, place, "", "#fields", counts.asked))
    for kind in (unsupported, unfilled):
        yield from sorted(kind, key=lambda line: (-line.weight, line.schema, line.place))[:PER_KIND]


def _clipped(findings: Findings) -> Iterator[Headline]:
    """Fields whose values the model wants to write otherwise."""
    found = [
        (mass.mean, schema, place)
        for schema, clipped in findings.clipped.items()
        for place, parts in clipped.ranked()[:PER_KIND]
        if (mass := parts["value"]).tokens >= ENOUGH and mass.mean > CLIPPED_MEAN
    ]
    for mean, schema, place in sorted(found, reverse=True)[:PER_KIND]:
        figure = Cell(percent(mean, 1), key("clipped", schema, place, "value", "mean"), mean)
        words = "of the model's probability for a value token went to tokens that the grammar excludes."
        more = "Its format, its enum or its description fights what the model would write."
        yield Headline("info", "engine", schema, figure, words, place, more, "#clipped", mean)


def _changes(pairs: Sequence[Pair]) -> Iterator[Headline]:
    """What is worse than in the run before, beyond chance."""
    for pair in pairs:
        difference = pair.part / pair.whole - pair.part_before / pair.whole_before if pair.changed else 0.0
        if difference * pair.worse > 0:
            figure = Cell(percent(pair.part, pair.whole), key("against", pair.name, "now"), pair.part)
            words = f"{pair.name}; in the run before {percent(pair.part_before, pair.whole_before)}."
            yield Headline("warn", "change", "", figure, words, "", "", "#against", abs(difference) * pair.whole)


def _moved(found: Comparison | None) -> Iterator[Headline]:
    """Fields that are distributed differently than in the run before."""
    for one in [one for one in found.shifted if one.pointer][:PER_KIND] if found else ():
        figure = Cell(
            percent(one.distance, 1), key("moved", one.schema, one.pointer, one.aspect, "distance"), one.distance
        )
        words = f"of the documents at least moved here against the run before: {one.aspect} of the field."
        yield Headline("warn", "change", one.schema, figure, words, one.pointer, "", "#against", one.distance * one.now)
