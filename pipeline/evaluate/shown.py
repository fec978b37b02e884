"""Shown: an evaluation as a person reads it, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table

from pipeline.evaluate.build import Evaluation
from pipeline.evaluate.intervals import LEVEL, Rate
from pipeline.evaluate.limits import Held
from pipeline.evaluate.mistakes import KINDS, Group
from pipeline.evaluate.scores import Scores
from pipeline.observe.visible import cell, visible_id

SHOWN_GROUPS = 20
SHOWN_FIELDS = 60
SHOWN_SLICES = 12
SHOWN_FAULTS = 5

_DOCUMENTS = {
    "coverage": "documents that fit the context",
    "first_pass_format": "first answer is JSON as it came",
    "post_repair_format": "first answer is JSON, or was made JSON by repair",
    "schema": "… and satisfies the schema",
    "semantic": "… and every rule and grounding",
    "valid": "documents valid",
    "degraded": "documents degraded",
    "rejected": "documents rejected",
    "unextracted": "documents the run has no row of",
}
_LEAVES = {
    "precision_exact": "precision, exact",
    "recall_exact": "recall, exact",
    "f1_exact": "F1, exact",
    "precision": "precision, normalised",
    "recall": "recall, normalised",
    "f1": "F1, normalised",
    "completeness": "completeness",
    "abstention": "rightly left empty",
    "invention": "invented",
    "likeness": "likeness of values",
    "ungrounded": "values that nothing in the document supports",
    "mean_f1": "F1 of a document, mean",
    "whole_exact": "whole records right, exact",
    "whole": "whole records right, normalised",
}


def as_document(found: Evaluation, limits: Sequence[Held] = ()) -> dict[str, Any]:
    """The evaluation as one JSON document (docs/evaluate.md lists its keys)."""
    asked = found.asked
    return {
        "run": found.run.store.where,
        "run_id": found.run.manifest.run_id,
        "job": found.run.manifest.job,
        "settings": {
            "level": LEVEL,
            **{name: getattr(asked, name) for name in ("resamples", "seed", "only_extracted")},
        },
        "gold": {"path": asked.gold.path, "rows": dict(found.gold), "faults": found.faults},
        "documents": dict(found.documents),
        "overall": dataclasses.asdict(found.overall),
        "schemas": {
            name: {
                **dataclasses.asdict(scores),
                "fields": _plain(found.fields[name]),
                "calibration": dataclasses.asdict(found.calibration[name]) if name in found.calibration else None,
            }
            for name, scores in found.schemas.items()
        },
        "slices": {kind: _plain(values) for kind, values in found.slices.items()},
        "published": found.published and {name: _plain(rates) for name, rates in found.published.items()},
        "mistakes": [_group(group) for group in found.mistakes],
        "limits": [dataclasses.asdict(one) for one in limits],
        "notes": found.notes,
    }


def rendered(found: Evaluation, limits: Sequence[Held] = ()) -> Iterator[RenderableType]:
    """What was judged, tables of rates, the mistakes, and what limits say."""
    yield cell(f"run   {found.run.store.where}")
    yield cell(f"gold  {found.asked.gold.path}: {_counts(found.gold)}")
    for fault in found.faults[:SHOWN_FAULTS]:
        yield cell(f"      {fault['what']}: {fault['where']} ({visible_id(fault['id'])}): {fault['why']}", "yellow")
    if len(found.faults) > SHOWN_FAULTS:
        yield cell("      … more in --json", "yellow")
    yield cell(f"      {_judged(found)}")
    yield _rates("documents, and what their first answers were", _DOCUMENTS, found.overall)
    yield _rates("values", _LEAVES, found.overall)
    if found.published:
        yield _published(found.published)
    for name, fields in found.fields.items():
        yield from _fields(name, fields)
    for name, one in found.calibration.items():
        words = f"AUROC {_rate(one.auroc)}, expected calibration error {_rate(one.ece)}"
        yield cell(f"confidence, {name}: {words}, of {one.values} values")
    for kind, values in found.slices.items():
        if len(values) > 1 or kind.startswith("by "):
            yield _slices(kind, values)
    yield from _mistakes(found.mistakes)
    for note in found.notes:
        yield cell(f"note: {note}", "yellow")
    yield from map(_limit, limits)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dataclasses.asdict(value) for name, value in values.items()}


def _limit(one: Held) -> RenderableType:
    value = "nothing to count" if one.value is None else f"{one.value:.4f}"
    sign = "at least" if one.at_least else "at most"
    return cell(f"{'kept' if one.kept else 'NOT KEPT'}: {sign} {one.limit}, found {value}", "" if one.kept else "red")


def _judged(found: Evaluation) -> str:
    said = f"{found.overall.documents} documents judged; intervals are of {LEVEL:.0%}"
    if found.documents.get("without_gold"):
        said += f"; {found.documents['without_gold']} documents of the run have no gold"
    if found.documents.get("left_out"):
        said += f"; {found.documents['left_out']} rows of gold left out, of documents that the run has no row of"
    return said


def _counts(counts: Mapping[str, int]) -> str:
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "rows" and count)
    return f"{counts['rows']} rows: {others}"


def _rate(rate: Rate) -> str:
    if rate.value is None or rate.low is None or rate.high is None:
        return "-"
    return f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


def _of(rate: Rate) -> str:
    return f"{rate.count:.6g} of {rate.of:.6g}"


def _rates(title: str, names: Mapping[str, str], scores: Scores) -> Table:
    table = Table(title, "rate and interval", "counted", title_justify="left")
    for name, words in names.items():
        table.add_row(words, _rate(scores.rates[name]), _of(scores.rates[name]))
    return table


def _published(metrics: Mapping[str, Mapping[str, Rate]]) -> Table:
    table = Table("public metric", "precision", "recall", "F1")
    for name, rates in metrics.items():
        table.add_row(name, *(_rate(rates[part]) for part in ("precision", "recall", "f1")))
    return table


def _fields(schema: str, fields: Mapping[str, Scores]) -> Iterator[RenderableType]:
    names = ("precision", "recall", "f1", "f1_exact")
    table = Table(Column(cell(schema)), "precision", "recall", "F1", "F1, exact", "verdicts")
    for pointer, scores in list(fields.items())[:SHOWN_FIELDS]:
        verdicts = ", ".join(f"{count} {name}" for name, count in scores.counts.items() if count)
        table.add_row(cell(pointer or "(the record)"), *(_rate(scores.rates[name]) for name in names), verdicts)
    yield table
    if len(fields) > SHOWN_FIELDS:
        yield cell(f"… and {len(fields) - SHOWN_FIELDS} more fields; --json has them")


def _slices(kind: str, values: Mapping[str, Scores]) -> Table:
    table = Table(Column(cell(kind)), "documents", "F1", "F1, exact", "completeness", "valid")
    for value, scores in list(values.items())[:SHOWN_SLICES]:
        shown = (_rate(scores.rates[name]) for name in ("f1", "f1_exact", "completeness", "valid"))
        table.add_row(cell(value), str(scores.documents), *shown)
    return table


def _mistakes(groups: Sequence[Group]) -> Iterator[RenderableType]:
    if not groups:
        return
    table = Table("mistake", "where", "documents", "values", "for example")
    for group in groups[:SHOWN_GROUPS]:
        example = group.examples[0]
        words = f"{visible_id(example.id)}: "
        words += f"expected {example.expected or 'nothing'}; " if group.kind not in ("no_record", "no_row") else ""
        words += f"found {example.found or 'nothing'}"
        words += f"\n  {example.passage}" if example.passage else ""
        counted = f"{group.leaves}" + (f", {group.ungrounded} ungrounded" if group.ungrounded else "")
        place = group.pointer or "(the record)"
        table.add_row(KINDS[group.kind], cell(place), str(group.documents), counted, cell(words))
    yield table
    if len(groups) > SHOWN_GROUPS:
        yield cell(f"… and {len(groups) - SHOWN_GROUPS} more kinds of mistakes; --json has them")


def _group(group: Group) -> dict[str, Any]:
    return {
        **{name: getattr(group, name) for name in ("schema", "pointer", "kind", "leaves", "documents", "ungrounded")},
        "examples": [dataclasses.asdict(one) for one in group.examples],
    }
