"""Rows of one set, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.coverage import instances
from bench.coverage.measure import BACKENDS, Row
from bench.coverage.quantiles import of_slots, of_values

SECONDS = {"p50": 0.5, "p99": 0.99}
MASKS = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
SLOWEST = 10
ENDED = ("refused", "unsatisfiable")
"""Kinds of trials that are an answer; `timeout` means hung, the rest crashed."""


def totals(rows: Sequence[Row]) -> dict[str, Any]:
    """The report of a set."""
    loaded = [row for row in rows if "ours" in row]
    broken = [fault | {"id": row["id"], "backend": backend} for row in rows for backend, fault in _faults(row)]
    judged = [row for row in loaded if row["ours"]]
    return {
        "schemas": len(rows),
        "loaded": len(loaded),
        "not_loaded": _counts(row["refused"] for row in rows if "refused" in row),
        "crashed": sum(fault["kind"] != "timeout" for fault in broken),
        "hung": sum(fault["kind"] == "timeout" for fault in broken),
        "plans": _plans(judged),
        "instances": instances.handed(loaded),
        "chosen": instances.chosen(judged),
        "backends": {backend: _backend(backend, judged) for backend in BACKENDS},
        "raw": {backend: _raw(backend, judged) for backend in BACKENDS if any("raw" in row for row in judged)},
        "seconds": _seconds(rows),
        "cases": {
            "broken": broken,
            "not_loaded": [_said(row) for row in rows if "refused" in row],
            "no_plan": [_said(row) | _words(row) for row in judged if not row["chosen"]],
            "refused": [_said(row, b) for row in judged for b in BACKENDS if row["ours"][b]["kind"] in ENDED],
            **instances.cases(judged),
        },
    }


def _faults(row: Row) -> Iterable[tuple[str, dict[str, str]]]:
    if "broken" in row:
        yield "", row["broken"]
    for backend, found in row.get("ours", {}).items():
        if "broken" in found:
            yield backend, found["broken"]


def _plans(rows: Sequence[Row]) -> dict[str, Any]:
    refused = {backend: Counter(row["ours"][backend]["kind"] for row in rows) for backend in BACKENDS}
    return {
        "made": sum(bool(row["chosen"]) for row in rows),
        "chosen": _counts(row["chosen"] for row in rows if row["chosen"]),
        "why": _counts(row["why"].split(":")[0] for row in rows if row["chosen"]),
        "refused": _counts(row["why"] for row in rows if not row["chosen"]),
        "by_backend": {backend: dict(sorted(counts.items())) for backend, counts in refused.items()},
    }


def _backend(backend: str, rows: Sequence[Row]) -> dict[str, Any]:
    every = [row["ours"][backend] for row in rows]
    found = [one for one in every if one["kind"] == "ok"]
    masks: Counter[int] = Counter()
    for one in found:
        masks.update({int(place): count for place, count in one.get("walk", {}).get("masks", {}).items()})
    return {
        "handed": instances.of_backend(backend, rows),
        "sites": _sites((row["sites"], row["ours"][backend].get("verdicts", {})) for row in rows),
        "left": {"sites": sum(len(one["left"]) for one in found), "keywords": _left(found)},
        "generated": {
            "valid": sum(one["valid"] for one in found),
            "lost": sum(len(one["lost"]) for one in found),
            "leaks": sum(len(one["leaks"]) for one in found),
            "surprises": sum(len(one["surprises"]) for one in found),
            "ran_out_of_time": sum(not one["complete"] for one in found),
            "walks": dict(sum((Counter(one["walks"]) for one in found), Counter())),
        },
        "mask_disagrees": sum(one.get("walk", {}).get("disagree", 0) for one in found),
        "compile_seconds": of_values((one["compile_seconds"] for one in found), SECONDS),
        "mask_micros": of_slots(masks, MASKS) | {"masks": sum(masks.values())},
        "peak_mib": of_values((one["peak_mib"] for one in every), SECONDS, 0),
    }


def _raw(backend: str, rows: Sequence[Row]) -> dict[str, Any]:
    found = [row["raw"][backend] for row in rows if "raw" in row]
    compiled = [one for one in found if not one["refused"]]
    probed = [(row["sites"], row["raw"][backend]) for row in rows if "raw" in row]
    return {
        "failed": sum(bool(one["refused"]) for one in found),
        "hung_or_crashed": sum("ended" in one for one in found),
        "refused_by_vllm": sum(one.get("admission") == "refused" for one in found),
        "failed_or_refused_by_vllm": sum(one.get("admission") == "refused" or bool(one["refused"]) for one in found),
        "handed": instances.of_raw(backend, rows, vllm=False),
        "handed_with_vllm": instances.of_raw(backend, rows, vllm=True),
        "sites": _sites((sites, one.get("verdicts", {})) for sites, one in probed),
        "sites_with_vllm": _sites(
            (sites, {} if one.get("admission") == "refused" else one.get("verdicts", {})) for sites, one in probed
        ),
        "compile_seconds": of_values((one["compile_seconds"] for one in compiled), SECONDS),
        "over_1_second": sum(one["compile_seconds"] > 1 for one in compiled),
    }


def _sites(pairs: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """Sites by verdict; all those of a schema without a matcher are refused."""
    found: Counter[str] = Counter()
    for sites, verdicts in pairs:
        found.update(verdicts or {"refused": sites})
    return {"sites": sum(found.values()), **dict(sorted(found.items()))}


def _left(found: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return _counts(keyword for one in found for _, keyword, _ in one["left"])


def _seconds(rows: Sequence[Row]) -> dict[str, Any]:
    loads = {row["id"]: row["load_seconds"] for row in rows if "load_seconds" in row}
    trials = {
        backend: {row["id"]: row["ours"][backend]["seconds"] for row in rows if "ours" in row} for backend in BACKENDS
    }
    whole = {key: load + sum(trials[backend].get(key, 0.0) for backend in BACKENDS) for key, load in loads.items()}
    slowest = sorted(whole.items(), key=lambda pair: -pair[1])[:SLOWEST]
    return {
        "load": of_values(loads.values(), SECONDS),
        "trial": {backend: of_values(times.values(), SECONDS, 3) for backend, times in trials.items()},
        "whole": of_values(whole.values(), SECONDS, 3),
        "slowest": [{"id": key, "seconds": round(seconds, 2)} for key, seconds in slowest],
    }


def _said(row: Row, backend: str = "") -> Row:
    if not backend:
        return {"id": row["id"], "code": row.get("refused", row.get("why")), "words": row.get("words", "")}
    found = row["ours"][backend]
    return {"id": row["id"], "backend": backend, "kind": found["kind"], "words": found["words"]}


def _words(row: Row) -> Row:
    return {"words": "; ".join(f"{backend}: {found['words']}" for backend, found in row["ours"].items())}


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())
