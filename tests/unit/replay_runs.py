"""Small runs that `test_replay.py` replays: committed without Ray, from answers that are listed here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support import GOOD, RECEIPT, Answers, completion

from pipeline.compile.plans import plans_of
from pipeline.engines.recorded import RecordingEngine
from pipeline.engines.several import build_all
from pipeline.flow import extract
from pipeline.job import JobConfig
from pipeline.records import Outcome
from pipeline.runtime.input import read_unit, scan
from pipeline.runtime.lookups import load_lookups, lookups_digest
from pipeline.runtime.output.commit import open_run
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.store import open_store
from pipeline.schema.plan import NO_PLAN, DecodingPlan

EVIL = "a\x1b[2J[/b] \u202e\x00"


def answers() -> dict[str, Answers]:
    """An engine for each kind of answer; they count what they were asked, so each run has its own."""
    return {
        "valid": Answers(completion(GOOD, constrained=True)),
        "fenced": Answers("```json\n" + json.dumps(GOOD) + "\n```"),
        "retried": Answers({"vendor": 5, "total": "x"}, GOOD),
        "cut": Answers(completion('{"vendor":"Ann","lines":["te', "length", constrained=True)),
        "hopeless": Answers("I cannot " + EVIL),
        "aborted": Answers(completion('{"vendor": "Exa', "abort"), GOOD),
        "engine": Answers(completion("", "error", error="engine_failed", detail="CUDA out of luck")),
        "refused": Answers(completion("", "stop", refusal="I must not.")),
        "reasoned": Answers(completion("", "stop", reasoning="Let me see …")),
        "broken": Answers(completion('{"vendor":"Ann"', "stop", constrained=True)),
        "surrogate": Answers('{"vendor": "\ud800", "total": 2}'),
        "empty": Answers(completion("", "length")),
        "loop": Answers(completion('{"vendor":"' + "ha " * 90, "repetition", constrained=True)),
    }


def commit(
    tmp_path: Path, answers: Mapping[str, Any] | None, rows: list[dict[str, Any]] | None = None, **job: Any
) -> Path:
    folder = tmp_path / "schemas" / "receipt" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.json").write_text(json.dumps(RECEIPT))
    rows = rows or [{"id": key, "text": f"Ann & Co, total 19.90 {key}"} for key in answers or ("d0", "d1")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings: dict[str, Any] = {
        "name": "t",
        "input": {"path": str(tmp_path / "in.jsonl"), "schema": "receipt@1"},
        "output": str(tmp_path / "out"),
        "schemas": str(tmp_path / "schemas"),
        "engine": {"engine": "recorded", "recording": str(tmp_path / "recording")},
        "sampling": {"max_tokens": 120},
    }
    return run(JobConfig.model_validate({**settings, **job}), answers)


def run(job: JobConfig, answers: Mapping[str, Any] | None) -> Path:
    found = scan(job.input, job.placement.unit_documents)
    plans = dict(plans_of(job, filter(None, found.schema_counts)).by_name)
    units = [read_unit(unit, job.input) for unit in found.units]
    lookups = load_lookups(job)
    outcomes = [asyncio.run(extracted(job, plans, documents, answers, lookups)) for documents in units]
    identity = identity_of(job, found, plans, lookups_digest(lookups))
    this = open_run(job, identity, open_store(job.output))
    for unit, written in zip(found.units, outcomes, strict=True):
        write_unit(unit, written, plans, this.store, identity.run_id)
    this.commit(found, {name: plan.schema_digest for name, plan in plans.items()})
    return Path(this.where)


async def extracted(
    job: JobConfig, plans: Mapping[str, DecodingPlan], documents: list[Any], answers: Any, lookups: Any
) -> list[Outcome]:
    """As the job does; what the answers' engines say is recorded where the job's engine plays it."""
    outcomes = []
    engine = build_all(job, "xgrammar") if answers is None else None
    if engine is not None:
        await engine.start(list(plans.values()))
    for document in documents:
        asked: Any = engine or RecordingEngine(answers[document.id], job.engine.recording)  # type: ignore[union-attr]
        outcomes.append(await extract(document, plans.get(document.schema, NO_PLAN), asked, job, lookups=lookups))
    return outcomes
