"""The cost plan of a job, as plain JSON: what `gristmill plan` tells. No engine and no Ray is started.

input ── scan ── documents by schema ── compile.plans ── groups; a sample of each ── real prompt, real tokenizer
an earlier run │ given │ budget ── attempts and output ── tokens ── rate ── hours, engines, cost
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pipeline
from pipeline.compile.plans import Plans, max_tokens_of, plans_of
from pipeline.cost.earlier import Earlier, earlier, engines_of
from pipeline.cost.estimate import CONFIDENCE, Estimate, point
from pipeline.cost.given import Given
from pipeline.cost.hours import Hours, hours_of
from pipeline.cost.notes import looks, notes
from pipeline.cost.sample import Sampled, sample
from pipeline.cost.tokens import Tokens, together, tokens_of
from pipeline.job import JobConfig
from pipeline.runtime.bundles import all_gpus
from pipeline.runtime.input import InputScan
from pipeline.runtime.lookups import load_lookups, lookups_digest
from pipeline.runtime.source import source_of
from pipeline.runtime.store import open_store

FORMAT = 1
"""Of the JSON document; a key that changes its meaning or goes away changes it."""

STRICT_EXIT = 9


@dataclass(frozen=True, slots=True)
class Found:
    """All that was found out about a job. `tokens` are by schema, of those that are decoded for."""

    job: JobConfig
    given: Given
    scan: InputScan
    plans: Plans
    run: Earlier | None
    sampled: Mapping[str, Sampled]
    tokens: Mapping[str, Tokens]


def cost_plan(job: JobConfig, given: Given, *, strict: bool = False) -> dict[str, Any]:
    """What a job will take, under the keys that docs/plan.md lists.

    The scan of the input is kept beside the runs, where the run itself looks for it; nothing else is written.

    Raises:
        GristmillError: options that contradict each other, an input, tokenizer or earlier run that cannot be read, or
            no schema that can be used.
    """
    given.check()
    found = _found(job, given)
    total = together(list(found.tokens.values()))
    rate = _rate(given, found.run)
    start = _start_minutes(given, found.run)
    hours = hours_of(total, rate, all_gpus(job), given, start / 60) if rate else None
    document = {
        "format": FORMAT,
        "gristmill": pipeline.__version__,
        "job": job.name,
        "confidence": CONFIDENCE,
        "given": asdict(given),
        "engine": _engine(job),
        "documents": _documents(found.scan),
        "groups": _groups(found.plans),
        "schemas": [_schema(found, name) for name in sorted(found.scan.schema_counts) if name],
        "tokens": total.to_json(),
        "run": _run(found.run),
        "tokens_per_second": rate.to_json() if rate else None,
        **_times(hours, engines_of(job)),
    }
    document["look_at"] = list(looks(document))
    document["notes"] = list(notes(document))
    document["exit_code"] = STRICT_EXIT if strict and document["look_at"] else 0
    return document


def _found(job: JobConfig, given: Given) -> Found:
    lookups = lookups_digest(load_lookups(job))
    scan = source_of(job, lookups, open_store(job.output), ()).scan(job.placement.unit_documents)
    plans = plans_of(job, filter(None, scan.schema_counts))
    run = earlier(given.run, job, plans.by_name, lookups) if given.run else None
    sampled = sample(scan.units, job, plans.by_name, given.sample, given.seed)
    measured = run.schemas if run else {}
    tokens = {
        name: tokens_of(job, one, plans.budgets.get(name, {}).get("numbers"), measured.get(name), given)
        for name, one in sampled.items()
    }
    return Found(job, given, scan, plans, run, sampled, tokens)


def _rate(given: Given, run: Earlier | None) -> Estimate | None:
    """Output tokens a second of one engine."""
    if given.tokens_per_second is not None:
        return point(given.tokens_per_second, "given")
    start = None if given.start_minutes is None else given.start_minutes * 60
    return run.tokens_per_second(start) if run else None


def _start_minutes(given: Given, run: Earlier | None) -> float:
    """What passes before the engines work.

    Raises:
        JobFileError: it leaves no time before the deadline.
    """
    if given.start_minutes is not None:
        return given.start_minutes
    minutes = (run.start_seconds or 0.0) / 60 if run else 0.0
    given.check_start(minutes)
    return minutes


def _engine(job: JobConfig) -> dict[str, Any]:
    engine = job.engine
    return {
        "kind": engine.engine,
        "model": getattr(engine, "model", None),
        "tokenizer": engine.tokenizer_model,
        "context": job.context_of(""),
        "max_tokens": max_tokens_of(job),
        "max_attempts": job.retry.max_attempts,
        "requests_per_minute": getattr(engine, "requests_per_minute", None),
        "gpus": all_gpus(job),
        "engines": engines_of(job),
    }


def _documents(scan: InputScan) -> dict[str, int]:
    return {
        "total": scan.documents,
        "units": len(scan.units),
        "without_schema": scan.schema_counts.get("", 0),
        "repeated_ids": scan.duplicate_count,
    }


def _groups(plans: Plans) -> dict[str, Any]:
    """How many grammars are compiled, by back end."""
    kept = [plan for plan in plans.by_name.values() if not plan.refused]
    grammars = {(plan.backend, plan.grammar_digest) for plan in kept}
    return {"grammars": len(grammars), "backends": dict(sorted(Counter(backend for backend, _ in grammars).items()))}


def _schema(found: Found, name: str) -> dict[str, Any]:
    plan, seen, tokens = found.plans.by_name[name], found.sampled.get(name), found.tokens.get(name)
    sampled = None
    if seen is not None:
        sampled = {
            "documents": len(seen.prompts),
            "longest_prompt": seen.longest,
            "shared_prefix": seen.prefix,
            "rejected_unasked": seen.rejected_unasked.to_json(),
            "beyond_context": seen.beyond_context.to_json(),
        }
    return {
        "name": name,
        "documents": found.scan.schema_counts[name],
        "refused": plan.refused or None,
        "backend": plan.backend or None,
        "grammar": plan.grammar_digest or None,
        "why": found.plans.reasons.get(name, ""),
        "warnings": list(found.plans.warnings.get(name, ())),
        "budget": found.plans.budgets.get(name, {}).get("numbers"),
        "findings": list(found.plans.budgets.get(name, {}).get("findings", ())),
        "sampled": sampled,
        "tokens": tokens.to_json() if tokens else None,
    }


def _run(run: Earlier | None) -> dict[str, Any] | None:
    if run is None:
        return None
    names = ("where", "run_id", "output_tokens", "engines", "seconds", "start_seconds")
    about = {name: getattr(run, name) for name in names}
    documents = {name: one.documents for name, one in run.schemas.items()}
    return {**about, "documents": documents, "differs": list(run.differs)}


def _times(hours: Hours | None, engines: int) -> dict[str, Any]:
    """Hours and cost with the job's own engines, and with as many as a deadline wants."""
    if hours is None:
        return {"engine_hours": None, "as_placed": None, "deadline": None}
    needed = hours.needed()
    deadline = None
    if needed is not None:
        deadline = {"hours": hours.given.deadline_hours, "engines": needed.to_json()}
        deadline["at_value"] = hours.with_engines(int(needed.value))
        deadline["at_high"] = hours.with_engines(int(needed.high))
    return {
        "engine_hours": hours.work.to_json(),
        "as_placed": hours.with_engines(engines),
        "deadline": deadline,
    }
