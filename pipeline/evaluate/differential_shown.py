"""A differential as tables, and as one JSON document (docs/differential.md lists its keys)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.evaluate.differential import CLASSES, Compared, Differential, FieldAgreement
from pipeline.evaluate.intervals import Rate
from pipeline.evaluate.order import Ordered
from pipeline.evaluate.sheet import Section, Sheet, difference_cell, factor_cell, mean_cell, rate_cell
from pipeline.evaluate.side_rates import Gap
from pipeline.evaluate.sides import AMOUNTS
from pipeline.observe.visible import visible_id
from pipeline.report.sections import key
from pipeline.report.shown import Cell, Table, count, cut, table, text

SHOWN_FIELDS = 60
WORDS = {
    "valid": "valid",
    "usable": "valid or degraded",
    "as_it_came": "first answer satisfies the schema as it came",
    "legal": "the same after repair of its format",
    "semantic": "first answer passes schema, rules and grounding as it came",
    "cut": "an answer was cut",
    "required": "required values that are filled",
    "empty": "fields of records that hold nothing",
    "unsupported": "values that the document does not support",
    "clipped": "clipped mass of a value token",
    "attempts": "attempts",
    "prompt_tokens": "prompt tokens",
    "output_tokens": "output tokens",
    "seconds": "seconds of the engine",
}
_WORSE = {"valid": -1, "usable": -1, "as_it_came": -1, "legal": -1, "semantic": -1, "cut": 1, "required": -1}


def as_document(found: Differential) -> dict[str, Any]:
    """Everything that is known, as JSON values."""
    return dataclasses.asdict(found)


def differential_section(found: Differential) -> list[Section]:
    """The tables."""
    return [
        Section(
            "classes",
            "What became of documents",
            "By their first answers. Legal: it satisfies the schema, after repair of its format at most.",
            [_classes(found)],
        ),
        Section(
            "measures",
            "Rates, tokens and time",
            "Each with its 95 % interval. Differences are of pairs: free less constrained, of amounts free by "
            "constrained. Seconds hold the load of the machine, which the runs do not share.",
            [_measures(found.measures)],
        ),
        Section(
            "fields",
            "Agreement by field",
            "Over documents whose first answers are legal in both runs: values that are the same, also in another "
            "notation, of those that either run has. Which of two values is right is not known here.",
            [_fields(found.fields)],
        ),
        Section("cases", "Examples", "At most five of each class, chosen by a hash of their ids.", [_cases(found)]),
    ]


def differential_sheet(found: Differential, job: str, command: str, more: Sequence[Section] = ()) -> Sheet:
    """All that is shown; `more` are sections of other experiments on the same job."""
    sections = [*differential_section(found), *more]
    return Sheet("Gristmill differential", job, list(lines(found)), found.notes, sections, command)


def order_section(found: Ordered) -> Section:
    """What other orders of choices change."""
    lead = (
        f"{found.enums} lists of choices, in {found.orders} other orders, in prompt and grammar alike. Shares "
        "of values, and of records, that are not those of the first run: when the very same is run again, and under "
        f"another order; over {found.documents} documents."
    )
    return Section("order", "Order of choices", lead, [_order(found)])


def _order(found: Ordered) -> Table:
    rows = [
        [
            text(cut(one.pointer, 120), one.schema, code=True) if one.schema else text("records"),
            rate_cell(key("again", one.schema, one.pointer), one.again),
            rate_cell(key("order", one.schema, one.pointer), one.order),
            difference_cell(key("order", one.schema, one.pointer, "gap"), one.gap, worse=1),
        ]
        for one in (found.records, *found.fields[:SHOWN_FIELDS])
    ]
    return table("What changes", ("", "run again", "another order", "more than by itself"), rows)


def lines(found: Differential) -> Iterator[str]:
    """What was found, in short."""
    gained, lost, content = (found.classes[name] for name in ("gained", "lost", "content"))
    yield f"{found.documents} documents. Legal only under the constraint: {_told(gained)}; only free: {_told(lost)}."
    both = Rate(None, None, None, content.count + found.classes["same"].count, content.of)
    yield f"Legal in both: {both.count:.0f}; of these the content differs in {content.count:.0f}."
    measures = {one.name: one for one in found.measures}
    for name in ("required", "valid"):
        if name in measures:
            one = measures[name]
            yield f"{WORDS[name].capitalize()}: {_value(one.constrained)} constrained, {_value(one.free)} free."


def _told(rate: Rate) -> str:
    if rate.value is None:
        return "unknown"
    return f"{rate.count:.0f} of {rate.of:.0f} ({rate.low:.0%} to {rate.high:.0%})"


def _value(one: Rate | Gap) -> str:
    if one.value is None:
        return "unknown"
    return f"{one.value:.1%}" + ("" if one.low is None else f" ({one.low:.0%} to {one.high:.0%})")


def _classes(found: Differential) -> Table:
    rows = [
        [text(words, name), count(key("class", name), int(rate.count)), rate_cell(key("class", name, "share"), rate)]
        for (name, words), rate in zip(CLASSES.items(), found.classes.values(), strict=True)
    ]
    return table("Documents that an engine was asked about in both runs", ("class", "documents", "share"), rows)


def _measures(some: Sequence[Compared]) -> Table:
    rows = []
    for one in some:
        where = ("measure", one.name)
        row = [text(WORDS[one.name], one.name)]
        if isinstance(one.constrained, Gap) or isinstance(one.free, Gap):
            sides = [mean_cell(key(*where, run), getattr(one, run)) for run in ("constrained", "free")]
            row += [*sides, factor_cell(key(*where, "gap"), one.gap)]
        else:
            sides = [rate_cell(key(*where, run), getattr(one, run)) for run in ("constrained", "free")]
            row += [*sides, difference_cell(key(*where, "gap"), one.gap, worse=_WORSE.get(one.name, 0))]
        rows.append([*row, count(key(*where, "documents"), one.documents)])
    caption = f"Shares, and means of a document ({', '.join(WORDS[name] for name in AMOUNTS)})"
    return table(caption, ("what", "constrained", "free", "free against constrained", "documents"), rows)


def _fields(some: Sequence[FieldAgreement]) -> Table:
    rows = [
        [
            text(cut(one.pointer, 120) or "(the record)", one.schema, code=True),
            rate_cell(key("agrees", one.schema, one.pointer), one.agrees),
            *_counts(one),
            rate_cell(key("clipped", one.schema, one.pointer), one.clipped),
        ]
        for one in some[:SHOWN_FIELDS]
    ]
    more = f"; {SHOWN_FIELDS} of {len(some)} are shown" if len(some) > SHOWN_FIELDS else ""
    found = ("agrees", "exactly", "in other notation", "another value", "only constrained", "only free")
    return table(f"Values by field, those that agree least first{more}", ("field", *found, "clipped mass"), rows)


def _counts(one: FieldAgreement) -> Iterator[Cell]:
    for name in ("exact", "normalised", "other", "only_constrained", "only_free"):
        yield count(key(name, one.schema, one.pointer), getattr(one, name))


def _cases(found: Differential) -> Table:
    rows = [
        [
            text(one.kind, one.schema),
            text(visible_id(one.document_id), code=True),
            text(one.constrained),
            text(one.free),
        ]
        for one in found.cases
    ]
    return table("Documents that differ", ("class", "document", "constrained", "free"), rows, (0, 1, 2, 3))
