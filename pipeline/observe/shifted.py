"""Shifted: a comparison of two profiles as a person reads it, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from pipeline.observe.shift import Comparison, Count, Finding
from pipeline.observe.visible import cell

SHOWN = 40
SHOWN_WORDS = 30


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One of the two that were compared: where it lies, and by schema the records that were read and that there are."""

    where: str
    read: Mapping[str, int]
    records: Mapping[str, int]


def as_document(found: Comparison, before: Side, now: Side) -> dict[str, Any]:
    """The comparison as one JSON document (docs/field-drift.md lists its keys)."""
    document = dataclasses.asdict(found)
    sides = {"before": dataclasses.asdict(before), "now": dataclasses.asdict(now)}
    return {**sides, "shifted": len(found.shifted), **document}


def rendered(found: Comparison, before: Side, now: Side, *, everything: bool = False) -> Iterator[RenderableType]:
    """What was compared, a table of what is beyond chance (or of everything), and a summary."""
    yield cell(f"before: {before.where}")
    yield cell(f"now:    {now.where}")
    for schema in sorted(name for name in before.read.keys() & now.read.keys() if before.read[name] or now.read[name]):
        yield cell(f"{schema}: {_read(before, schema)} before, {_read(now, schema)} now")
    for schemas, when in ((found.gone, "before"), (found.new, "now")):
        if schemas:
            yield cell(f"records only {when}, not compared: {', '.join(schemas)}", "yellow")
    if found.left_out:
        yield cell(f"{found.left_out} values of further fields are left out", "yellow")
    shown = [one for one in found.findings if everything or one.verdict in ("shifted", "slight")]
    if shown:
        yield _table(shown if everything else shown[:SHOWN], one_schema=len({one.schema for one in shown}) == 1)
    if len(shown) > SHOWN and not everything:
        yield cell(f"… and {len(shown) - SHOWN} more; --all shows them")
    yield cell(_summary(found), "red" if found.shifted else "")


def _read(side: Side, schema: str) -> str:
    read, there = side.read[schema], side.records.get(schema, 0)
    return f"{read} records" if read == there else f"{read} of {there} records"


def _summary(found: Comparison) -> str:
    fields = len({(one.schema, one.pointer) for one in found.shifted})
    said = f"{fields} {'field' if fields == 1 else 'fields'} shifted in at least {found.least:.0%} of the documents "
    said += f"({found.tests} tests; a false alarm in at most {found.alpha * 100:.3g}% of comparisons)."
    same = [one.detectable for one in found.findings if one.verdict == "none"]
    said += f" Where none was seen, up to about {max(same):.0%} may have shifted all the same." if same else ""
    few = sum(one.verdict == "few" for one in found.findings)
    return f"{said} Too few documents for {few} further tests." if few else said


def _table(findings: list[Finding], *, one_schema: bool) -> Table:
    table = Table("verdict", "field", "what", "documents", "distance", "adjusted p", "before → now")
    for one in findings:
        place = one.pointer or ("(documents)" if one.aspect == "status" else "(the record)")
        table.add_row(
            cell(one.verdict, "red" if one.verdict == "shifted" else ""),
            cell(place if one_schema else f"{one.schema} {place}"),
            cell(one.aspect),
            cell(f"{one.before} → {one.now}"),
            cell(f"{one.distance:.2f}"),
            cell(f"{one.adjusted:.2g}" if one.statistic else "-"),
            cell("\n".join([one.statistic, _counts(one)]).strip()),
        )
    return table


def _counts(one: Finding) -> str:
    return ", ".join(f"{_cut(count.what)} {_number(count)}" for count in one.counts)


def _number(count: Count) -> str:
    return f"{count.before:.6g} → {count.now:.6g}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_WORDS else line[: SHOWN_WORDS - 1] + "…"
