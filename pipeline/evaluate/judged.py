"""Judged: what one document adds to the sums that scores are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.evaluate.calibration import bin_of
from pipeline.evaluate.gold import GoldRow
from pipeline.evaluate.intervals import Name, Slice
from pipeline.evaluate.match import RIGHT, FieldMatch, Matched
from pipeline.evaluate.published import METRICS, published_counts
from pipeline.observe.paths import answers_of
from pipeline.records import Field, Outcome
from pipeline.report.rows import was_asked

ALL: Slice = ("all",)
EXPECTED = ("exact", "normalised", "wrong", "missing")
FOUND = ("exact", "normalised", "wrong", "invented")
TOO_LONG = "document_too_long"

BUCKETS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
"""Upper bounds of document lengths in characters."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One document with gold. `outcome` is None if the run has no row of it; `text` None if it cannot be read."""

    gold: GoldRow
    schema: str
    matched: Matched
    outcome: Outcome | None
    text: str | None = None

    @property
    def has_record(self) -> bool:
        """Whether it came to a record."""
        return self.outcome is not None and self.outcome.status != "rejected"

    @property
    def known(self) -> dict[str, Field]:
        """What the run knows of the record's leaves, by pointer."""
        return {one.pointer: one for one in self.outcome.fields} if self.outcome else {}


def contributions(judged: Judged, slices: Mapping[str, str]) -> dict[Name, float]:
    """The numbers of one document; `slices` has its value in each kind of slice."""
    whole = _document(judged)
    made: dict[Name, float] = {}
    for where in (ALL, ("schema", judged.schema), *slices.items()):
        made.update({(where, name): value for name, value in whole.items() if value})
    known = judged.known
    fields: dict[Slice, Counter[str]] = {}
    for one in judged.matched.fields:
        sums = fields.setdefault(("field", judged.schema, one.pointer), Counter({"documents": 1}))
        sums.update(_leaf(one, known))
    made.update({(where, name): float(value) for where, sums in fields.items() for name, value in sums.items()})
    for one in judged.matched.fields:
        field = known.get(one.place) if one.place else None
        if field is not None and field.confidence is not None:
            where, right = ("confidence", judged.schema, str(bin_of(field.confidence))), one.verdict in RIGHT
            for name, value in (("right" if right else "not", 1.0), ("sum", field.confidence)):
                made[where, name] = made.get((where, name), 0.0) + value
    return made


def length_of(text: str | None) -> str:
    """The bucket of a document's length."""
    if text is None:
        return "unknown"
    bound = next((bound for bound in BUCKETS if len(text) <= bound), None)
    return f"up to {bound} characters" if bound else f"over {BUCKETS[-1]} characters"


def _leaf(one: FieldMatch, known: Mapping[str, Field]) -> dict[str, float]:
    sums: dict[str, float] = {one.verdict: 1}
    if one.verdict not in ("abstained", "unanswered"):
        sums |= {"judged": 1, "alike": one.alike}
    field = known.get(one.place) if one.place else None
    if field is not None and field.match:
        sums["looked"] = 1
        sums["ungrounded"] = field.match == "none"
    return sums


def _document(judged: Judged) -> dict[str, float]:
    known = judged.known
    sums: Counter[str] = Counter()
    for one in judged.matched.fields:
        sums.update(_leaf(one, known))
    found: dict[str, float] = dict(sums)
    exact, right = sums["exact"], sums["exact"] + sums["normalised"]
    faults = sum(sums[name] for name in ("wrong", "missing", "invented", "unanswered")) + judged.matched.left_out
    sizes = sum(sums[name] for name in (*EXPECTED, *FOUND))
    found |= {
        "documents": 1,
        "whole": judged.has_record and not faults,
        "whole_exact": judged.has_record and not faults and not sums["normalised"],
        "mean_f1": 2 * right / sizes if sizes else float(judged.has_record),
        "mean_f1_exact": 2 * exact / sizes if sizes else float(judged.has_record),
    }
    return found | dict(_layers(judged.outcome)) | dict(_published(judged))


def _layers(outcome: Outcome | None) -> Iterator[tuple[str, float]]:
    if outcome is None:
        yield "unextracted", 1
        return
    yield outcome.status, 1
    yield "too_long", any(problem.code == TOO_LONG for problem in outcome.problems)
    if not was_asked(outcome):
        return
    yield "asked", 1
    own = [answer for answer in answers_of(outcome) if not answer.failed]
    if own:
        first: Any = own[0]
        yield "first_format", first.format_first
        yield "format", first.format_first or first.format_repaired
        yield "schema", first.schema
        yield "semantic", first.semantic


def _published(judged: Judged) -> Iterator[tuple[str, float]]:
    record = judged.outcome.record if judged.outcome is not None and judged.has_record else None
    counts = published_counts(judged.gold.record, record)
    if counts is None:
        yield "not_flat", 1
        return
    for metric in METRICS:
        for name, value in zip(("right", "extracted", "expected"), counts[metric], strict=True):
            yield f"{metric}_{name}", value
