"""One schema: the compiler's trials in the sandbox, then the handed instances, then the raw back ends.

A row is plain JSON, so that it can be kept for a run that is taken up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.coverage.jobs import tally
from bench.coverage.sets import Case
from pipeline.compile.check import LIMITS, Trial, choose, trial_job, trial_of
from pipeline.compile.sandbox import Job, Result, Sandbox
from pipeline.schema.registry import DocumentSchema

BACKENDS = ("xgrammar", "guidance")
JOB_MODULES = ("pipeline.compile.trial", "bench.coverage.jobs")
NAME = "case@1"
MAX_SHOWN = 300

Row = dict[str, Any]


def measured(sandbox: Sandbox, case: Case, *, raw: bool = True) -> Row:
    """All that is found about one schema. `refused` if it was not loaded, `broken` if loading came to a bad end."""
    row: Row = {"id": case.id, "handed": len(case.tests)}
    if case.fault:
        return row | {"refused": "not_json", "words": case.fault}
    tests = [asdict(test) for test in case.tests]
    try:
        result = sandbox.call(Job("coverage_read", {"schema": case.schema, "name": NAME, "tests": tests}, LIMITS))
    except RecursionError:  # a payload is JSON
        return row | {"refused": "too_deep", "words": "nests too deeply to be sent"}
    if result.kind != "ok":
        return row | {"broken": _broken(result, "read")}
    loaded = result.value
    row["load_seconds"] = loaded["load_seconds"]
    if "refused" in loaded:
        return row | {"refused": loaded["refused"], "words": loaded["words"]}
    judged = [item | {"data": test.data} for item, test in zip(loaded["instances"], case.tests, strict=True)]
    usable = [item for item in judged if "text" in item]
    row |= {
        "sites": loaded["sites"],
        "instances": [_shown(item) for item in judged],
        "unjudged": [item["unjudged"] for item in judged if "unjudged" in item],
    }
    ours = {backend: _ours(sandbox, loaded, backend, usable) for backend in BACKENDS}
    best, why = choose([trial for trial, _ in ours.values()])
    row["chosen"], row["why"] = (best.backend, why) if best.usable else ("", best.kind)
    row["ours"] = {backend: found for backend, (_, found) in ours.items()}
    if raw:
        payload = {"schema": case.schema, "body": loaded["body"], "closed": loaded["closed"], "instances": usable}
        row["raw"] = {backend: _raw(sandbox, payload | {"backend": backend}) for backend in BACKENDS}
    return row


def _ours(sandbox: Sandbox, loaded: Mapping[str, Any], backend: str, usable: list[Row]) -> tuple[Trial, Row]:
    schema = DocumentSchema(NAME, loaded["body"], "", (), tuple(loaded["closed"]), "")
    result = sandbox.call(trial_job(schema, backend))
    found: Row = {"seconds": result.seconds, "peak_mib": result.peak_mib}
    if result.kind != "ok":
        broken = {"kind": result.kind, "words": result.words[-MAX_SHOWN:], "broken": _broken(result, "trial")}
        return Trial(backend, result.kind), found | broken
    trial = trial_of(backend, result.value)
    found |= _shortened(result.value, loaded["closed"])
    if not trial.usable:
        return trial, found
    # What the compiler announced, not what its own trial found out beyond that.
    shown = {"body": loaded["body"], "backend": backend, "left": result.value["left"], "instances": usable}
    walked = sandbox.call(Job("coverage_walk", shown | {"text": trial.transport}, LIMITS))
    return trial, found | ({"walk": walked.value} if walked.kind == "ok" else {"broken": _broken(walked, "walk")})


def _shortened(answer: Mapping[str, Any], closed: Sequence[str]) -> Row:
    verdicts = [((pointer, keyword), kind) for pointer, keyword, kind, _ in answer.get("verdicts", [])]
    texts = {name: [text[:MAX_SHOWN] for text in answer.get(name, [])] for name in ("lost", "leaks")}
    return {
        **answer,
        **texts,
        "words": answer["words"][:MAX_SHOWN],
        "transport": answer["transport"][:MAX_SHOWN],
        "verdicts": tally(verdicts, closed),
    }


def _raw(sandbox: Sandbox, payload: Mapping[str, Any]) -> Row:
    result = sandbox.call(Job("coverage_raw", payload, LIMITS))
    if result.kind != "ok":
        return {
            "refused": f"{result.kind}: {result.words}"[:MAX_SHOWN],
            "ended": result.kind,
            "seconds": result.seconds,
        }
    found: Row = result.value
    return found | {"seconds": result.seconds}


def _broken(result: Result, where: str) -> dict[str, str]:
    return {"kind": result.kind, "where": where, "words": result.words[-MAX_SHOWN:]}


def _shown(item: Mapping[str, Any]) -> Row:
    kept = {name: item[name] for name in ("label", "accepted", "reason", "about") if name in item}
    return kept | {"text": item.get("text", "")[:MAX_SHOWN]}
