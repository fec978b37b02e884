"""A comparison as a person reads it on a terminal, and as one JSON document (docs/compare.md lists its keys)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from pipeline.evaluate.comparison import Change, Example, FieldDiff, Measure, RunComparison, Side
from pipeline.evaluate.gate import Gated
from pipeline.observe.visible import cell, visible_id
from pipeline.records import STATUSES
from pipeline.report.shown import cut

SHOWN_FIELDS = 25
SHOWN_EXAMPLES = 12
SHOWN_CHANGES = 20
SHOWN_VALUE = 60
COLOURS = {"promote": "green", "hold": "yellow", "roll_back": "red"}
_AMOUNTS = ("attempts", "prompt_tokens", "output_tokens", "tokens")


def as_document(found: RunComparison, gated: Gated) -> dict[str, Any]:
    """Everything that is known, as JSON values."""
    document = dataclasses.asdict(found)
    document["transitions"] = {f"{one} {two}": count for (one, two), count in sorted(found.transitions.items())}
    for measure in document["measures"]:
        del measure["histogram"]
    return {"verdict": gated.decision, "gate": dataclasses.asdict(gated), **document}


def rendered(found: RunComparison, gated: Gated, *, everything: bool = False) -> Iterator[RenderableType]:
    """What was compared, what differs, and the verdict."""
    yield _side("A", found.a)
    yield _side("B", found.b)
    yield cell(_paired(found))
    yield from (cell(f"changed: {told(one)}") for one in found.changes[:SHOWN_CHANGES])
    if (more := len(found.changes) - SHOWN_CHANGES) > 0:
        yield cell(f"changed: {more} more; --json has all")
    yield from (cell(f"warning: {words}", "yellow") for words in found.warnings)
    yield _statuses(found)
    yield _measures([one for one in found.measures if one.group != "field" and (everything or is_told(one))])
    fields = [one for one in found.fields if everything or one.differ]
    if fields:
        yield _fields(found, fields if everything else fields[:SHOWN_FIELDS])
    if found.examples:
        yield _examples(found.examples, everything=everything)
    yield cell(summary(found))
    yield cell(f"verdict: {gated.decision}", COLOURS[gated.decision])
    yield from (cell(f"  {rule.state:6} {rule.words}", _colour(rule.state)) for rule in gated.rules)


def told(one: Change) -> str:
    """A change in a line."""
    if one.kind == "schema" and None not in (one.a, one.b):
        return f"{one.kind}: {one.name}, digest {one.a} → {one.b}"
    return f"{one.kind}: {one.name}: {_value(one.a)} → {_value(one.b)}"


def is_told(one: Measure) -> bool:
    """Whether a measure is worth a line where not all are asked for: those of all schemas but codes without a change,
    and whatever changed."""
    return one.verdict == "changed" or (one.group != "problem" and not one.schema)


def shown(one: Measure, value: float) -> str:
    """A mean as its measure has it."""
    return f"{value:,.1f}" if one.name in _AMOUNTS else f"{value:.1%}"


def moved(found: RunComparison, one: FieldDiff) -> list[str]:
    """What of a field moved beyond chance."""
    here = (one.schema, one.pointer)
    lines = [
        f"{cut(measure.name, 40)} {measure.up} up, {measure.down} down"
        for measure in found.measures
        if measure.verdict == "changed" and (measure.schema, measure.pointer) == here and measure.group == "field"
    ]
    shifts = [one for one in found.shifts.findings if (one.schema, one.pointer) == here]
    return lines + [f"{one.aspect} {one.distance:.0%}" for one in shifts if one.verdict in ("shifted", "slight")]


def summary(found: RunComparison) -> str:
    """How many tests there were, and what may still be."""
    words = (
        f"{found.tests} tests; where nothing differs, anything is called changed in at most {found.alpha / 2:.2%} of "
    )
    few = sum(one.verdict == "few" for one in found.measures)
    words += f"comparisons. In {few} more too few documents differ to be tested."
    a, b = found.seconds
    return f"{words} Engines took {a:,.1f} s in A and {b:,.1f} s in B (not tested: load of the machine is in it)."


def _side(name: str, side: Side) -> RenderableType:
    return cell(f"{name}: {side.where} ({side.job}, run {side.run_id}, {side.documents} documents, {side.committed})")


def _paired(found: RunComparison) -> str:
    one = found.pairing
    words = f"{one.documents} documents in both"
    words += f", {one.renamed} of them under another schema's name" if one.renamed else ""
    words += f"; {one.unread} more were not read" if one.unread else ""
    for name, number, ids in (("A", one.only_a, one.ids_only_a), ("B", one.only_b, one.ids_only_b)):
        if number:
            words += f"; {number} only in {name}: {', '.join(map(visible_id, ids[:3]))}"
    return words


def _statuses(found: RunComparison) -> Table:
    table = Table("A \\ B", *STATUSES, title="documents by status in A and in B", title_justify="left")
    for one in STATUSES:
        counts = [found.transitions.get((one, two), 0) for two in STATUSES]
        styles = ["green" if two == "valid" else "red" if one == "valid" else "" for two in STATUSES]
        row = [
            cell(str(count), style if count and one != two else "")
            for count, style, two in zip(counts, styles, STATUSES, strict=True)
        ]
        table.add_row(cell(one), *row)
    return table


def _measures(some: list[Measure]) -> Table:
    table = Table("", "A", "B", "more in B", "less in B", "documents", "adjusted p", "", title="paired")
    table.title_justify = "left"
    for one in some:
        name = f"{one.name} of {one.schema}" if one.schema else one.name
        style = "red" if one.is_worse else "green" if one.verdict == "changed" and one.worse else ""
        verdict = "worse" if one.is_worse else "better" if style else one.verdict
        counts = map(str, (one.up, one.down, one.documents))
        p = f"{one.adjusted:.2g}" if one.verdict != "few" else "-"
        cells = (name, shown(one, one.a), shown(one, one.b), *counts, p)
        table.add_row(*map(cell, cells), cell(verdict, style))
    return table


def _fields(found: RunComparison, some: list[FieldDiff]) -> Table:
    table = Table("field", "same", "changed", "only in B", "only in A", "beyond chance", title="fields")
    table.title_justify = "left"
    several = len({one.schema for one in found.fields}) > 1
    for one in some:
        place = one.pointer or "(the record)"
        lines = moved(found, one)
        counts = map(str, (one.same, one.changed, one.appeared, one.vanished))
        name = cell(f"{one.schema} {place}" if several else place, "red" if lines else "")
        table.add_row(name, *map(cell, counts), cell("\n".join(lines)))
    if more := len([one for one in found.fields if one.differ]) - len(some):
        table.caption = f"{more} more; --all shows them" if more > 0 else None
    return table


def _examples(some: tuple[Example, ...], *, everything: bool) -> Table:
    table = Table("what", "document", "A", "B", title="documents that differ", title_justify="left")
    for one in some if everything else some[:SHOWN_EXAMPLES]:
        table.add_row(cell(one.what), cell(visible_id(one.document_id)), cell(one.a), cell(one.b))
    return table


def _colour(state: str) -> str:
    return {"kept": "", "open": "yellow", "broken": "red"}[state]


def _value(value: Any) -> str:
    return "nothing" if value is None else cut(json.dumps(value, ensure_ascii=False), SHOWN_VALUE)
