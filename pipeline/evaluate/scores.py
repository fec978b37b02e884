"""Scores: rates made of the sums of a bootstrap, each with its denominator and interval (docs/evaluate.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.evaluate.intervals import Bootstrap, Floats, Rate, Slice, ratio, wilson
from pipeline.evaluate.judged import ALL, EXPECTED, FOUND
from pipeline.evaluate.published import METRICS

Names = tuple[str, ...]

_RIGHT = ("exact", "normalised")
LEAVES: Mapping[str, tuple[Names, Names]] = {
    "precision_exact": (("exact",), FOUND),
    "recall_exact": (("exact",), EXPECTED),
    "f1_exact": (("exact", "exact"), (*FOUND, *EXPECTED)),
    "precision": (_RIGHT, FOUND),
    "recall": (_RIGHT, EXPECTED),
    "f1": ((*_RIGHT, *_RIGHT), (*FOUND, *EXPECTED)),
    "completeness": (("exact", "normalised", "wrong"), EXPECTED),
    "abstention": (("abstained",), ("abstained", "invented", "unanswered")),
    "invention": (("invented",), ("abstained", "invented", "unanswered")),
    "likeness": (("alike",), ("judged",)),
    "ungrounded": (("ungrounded",), ("looked",)),
}
"""Rates of leaves: name → what is summed, and out of what. `exact` and `normalised` are right values; F1 is
2 · right / (found + expected), the harmonic mean of precision and recall."""

MEANS = ("mean_f1", "mean_f1_exact")
"""F1 of each document, averaged over documents."""

DOCUMENTS: Mapping[str, tuple[str, str]] = {
    "whole_exact": ("whole_exact", "documents"),
    "whole": ("whole", "documents"),
    "valid": ("valid", "documents"),
    "degraded": ("degraded", "documents"),
    "rejected": ("rejected", "documents"),
    "unextracted": ("unextracted", "documents"),
    "too_long": ("too_long", "documents"),
    "asked": ("asked", "documents"),
    "first_pass_format": ("first_format", "asked"),
    "post_repair_format": ("format", "asked"),
    "schema": ("schema", "format"),
    "semantic": ("semantic", "schema"),
}
"""Rates of documents. Those of layers are of the first answer, each out of what the layer before let through."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The rates of a slice by name. `documents` are those that have something to judge in it; `counts` are leaves by
    verdict."""

    documents: int
    counts: Mapping[str, int]
    rates: Mapping[str, Rate]


_VERDICTS = ("exact", "normalised", "wrong", "missing", "invented", "abstained", "unanswered")


def scores_of(boot: Bootstrap, where: Slice) -> Scores:
    """The rates of a slice; those of documents only where it is made of whole documents."""
    documents = float(boot.sums((where, "documents"))[0])
    sums = {name: boot.sums((where, name)) for name in (*_VERDICTS, "alike", "judged", "looked", "ungrounded")}
    rates = {
        name: ratio(_together(sums, count), _together(sums, of), documents) for name, (count, of) in LEAVES.items()
    }
    if where[0] != "field":
        rates |= dict(_of_documents(boot, where, documents))
    return Scores(int(documents), {name: int(sums[name][0]) for name in _VERDICTS}, rates)


def published_of(boot: Bootstrap, where: Slice = ALL) -> dict[str, dict[str, Rate]] | None:
    """Precision, recall and F1 of the public metrics; None if a record is not flat."""
    if boot.sums((where, "not_flat"))[0]:
        return None
    documents = float(boot.sums((where, "documents"))[0])
    made = {}
    for metric in METRICS:
        right, extracted, expected = (
            boot.sums((where, f"{metric}_{name}")) for name in ("right", "extracted", "expected")
        )
        made[metric] = {
            "precision": ratio(right, extracted, documents),
            "recall": ratio(right, expected, documents),
            "f1": ratio(2 * right, extracted + expected, documents),
        }
    return made


def slices_of(boot: Bootstrap, kind: str) -> list[Slice]:
    """The slices of a kind, those with the most documents first."""
    found = {where for where, name in boot.names() if where[0] == kind and name == "documents"}
    return sorted(found, key=lambda where: (-boot.sums((where, "documents"))[0], where))


def _of_documents(boot: Bootstrap, where: Slice, documents: float) -> Iterator[tuple[str, Rate]]:
    for name in MEANS:
        yield name, ratio(boot.sums((where, name)), boot.sums((where, "documents")), documents)
    for name, (count, of) in DOCUMENTS.items():
        yield name, wilson(float(boot.sums((where, count))[0]), float(boot.sums((where, of))[0]))
    extracted = documents - float(boot.sums((where, "unextracted"))[0])
    yield "coverage", wilson(extracted - float(boot.sums((where, "too_long"))[0]), extracted)


def _together(sums: Mapping[str, Floats], names: Names) -> Floats:
    return sum((sums[name] for name in names), start=0 * sums[names[0]])
