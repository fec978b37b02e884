"""The report of `gristmill check`: plain JSON about schemas, from loading to the lock. docs/check.md lists its keys.

Whatever a schema is refused for, the others are reported all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pipeline
from pipeline.compile import lock
from pipeline.compile.cache import tokenizer_digest
from pipeline.compile.check import Trial, answers, choose, trial_job, trial_of, versions
from pipeline.compile.lock_changes import Change
from pipeline.compile.plans import Plans, max_tokens_of, policy_of
from pipeline.compile.report_budget import budget_job, told
from pipeline.compile.report_sites import held_sites, site_rows
from pipeline.compile.report_sources import Entry
from pipeline.compile.report_strict import strict_reasons
from pipeline.compile.sandbox import Job
from pipeline.compile.trial import backends_of
from pipeline.engines import models
from pipeline.errors import SchemaError
from pipeline.job import EMBEDDED_MODEL, JobConfig
from pipeline.records import JsonValue
from pipeline.schema.arrow import describe
from pipeline.schema.asked import printed
from pipeline.schema.columns import column_of
from pipeline.schema.drift import drift, to_json
from pipeline.schema.lint import examine
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Policy

FORMAT = 1
"""Of the JSON document; a key that changes its meaning or goes away changes it."""

STRICT_EXIT = 9


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be found out. `max_tokens` and `context` are a job's; `patience` multiplies the time of trials."""

    backends: tuple[str, ...] = ("xgrammar", "guidance")
    model: str = EMBEDDED_MODEL
    compact: bool = True
    policy: Policy = field(default_factory=Policy)
    raw: bool = False
    max_tokens: int | None = None
    context: int | None = None
    patience: int = 1

    @property
    def options(self) -> lock.Options:
        """The part that a lock file keeps."""
        return lock.Options(tuple(sorted(self.backends)), self.model, self.compact, self.policy)


@dataclass(frozen=True)
class Told:
    """What the sandbox said of one schema."""

    trials: Mapping[str, Trial]
    budget: Mapping[str, Any]
    chosen: Trial
    why: str
    tokenizer: str

    @property
    def found(self) -> lock.Found:
        """The part that a lock file keeps."""
        numbers = self.budget["numbers"]
        kept = {**(numbers or {}), "prompt_tokens": self.budget["prompt_tokens"]} if numbers else None
        return lock.Found(self.trials, self.chosen.backend if self.chosen.usable else "", kept, self.tokenizer)


def asked_by(job: JobConfig) -> Asked:
    """What a job asks of its schemas."""
    return Asked(
        backends=backends_of(job.engine.backend),
        model=job.engine.tokenizer_model,
        compact=job.engine.compact_json,
        policy=policy_of(job),
        max_tokens=max_tokens_of(job),
        context=getattr(job.engine, "max_model_len", None),
    )


def report(
    entries: Sequence[Entry],
    asked: Asked,
    samples: Sequence[JsonValue] = (),
    against: DocumentSchema | None = None,
    write_locks: bool = False,
) -> dict[str, Any]:
    """The whole document; with `write_locks` the lock files are written, where nothing is refused.

    Raises:
        EngineError: the model's tokenizer is missing, or the sandbox does not start.
        OutputError: a lock file cannot be written.
    """
    asked = replace(asked, patience=lock.PATIENCE) if write_locks else asked
    loaded = [entry for entry in entries if entry.schema is not None]
    said = dict(zip((entry.name for entry in loaded), _asked_of(loaded, asked, list(samples)), strict=True))
    tokenizer = next((one.tokenizer for one in said.values()), "")
    shown = []
    for entry in entries:
        one = of_schema(entry, asked, said.get(entry.name) if entry.schema else None, against)
        if write_locks and entry.schema and entry.folder and not one["refused"]:
            lock.write(entry.folder, lock.lock_of(entry.schema, asked.options, said[entry.name].found))
            one["lock"] = {"state": "written", "changes": []}
        shown.append(one | {"strict": strict_reasons(one)})
    return {
        "format": FORMAT,
        "gristmill": pipeline.__version__,
        "asked": asdict(asked),
        "tokenizer": tokenizer,
        "versions": versions(),
        "schemas": shown,
    }


def exit_code(document: Mapping[str, Any], *, strict: bool) -> int:
    """What the command exits with: 4 if a schema is refused, 9 if `strict` finds something, else 0."""
    if any(one["refused"] for one in document["schemas"]):
        return SchemaError.exit_code
    return STRICT_EXIT if strict and any(one["strict"] for one in document["schemas"]) else 0


def of_schema(entry: Entry, asked: Asked, said: Told | None, against: DocumentSchema | None = None) -> dict[str, Any]:
    """All that is known of one schema, without `strict`. Every key is always there."""
    nothing: dict[str, Any] = {"sites": [], "backends": {}, "columns": []}
    nothing |= {"lint": {"findings": [], "counts": {}}, "budget": None}
    one: dict[str, Any] = {"name": entry.name, "source": entry.source, "digest": "", "refused": None, "chosen": None}
    one |= {"closed": [], "printed": [], **nothing, "drift": None, "lock": None}
    if entry.schema is None or said is None:
        error = entry.refused or SchemaError("was not loaded")
        return one | {"refused": {"code": error.code, "words": error.message}}
    schema, best = entry.schema, said.chosen
    findings = examine(schema)
    return one | {
        "digest": schema.digest,
        "refused": _refusal(said),
        "chosen": {"backend": best.backend, "why": said.why} if best.usable else None,
        "closed": list(schema.closed),
        "printed": list(printed(schema.body)),
        "sites": site_rows(schema.asked, said.trials, best if best.usable else None),
        "backends": {name: of_trial(trial) for name, trial in said.trials.items()},
        "lint": {"findings": [asdict(finding) for finding in findings.findings], "counts": dict(findings.counts)},
        "budget": said.budget,
        "columns": [asdict(row) for row in describe(column_of(schema.body))],
        "drift": {**to_json(drift(against, schema)), "against": against.name} if against else None,
        "lock": _lock(entry, asked, said),
    }


def of_trial(trial: Trial) -> dict[str, Any]:
    """A trial as JSON: `verdicts` are counts here, the sites have them one by one."""
    raw = trial.raw and {**trial.raw, "verdicts": Counter(kind for _, _, kind, _ in trial.raw["verdicts"])}
    return {
        **asdict(replace(trial, verdicts={}, raw=None)),
        "verdicts": dict(Counter(kind for kind, _ in trial.verdicts.values())),
        "enforced": len(held_sites(trial)),
        "surprises": [{"pointer": pointer, "keyword": keyword} for pointer, keyword in trial.surprises],
        "raw": raw and {**raw, "verdicts": dict(raw["verdicts"])},
    }


def short_form(plans: Plans) -> list[dict[str, Any]]:
    """What `gristmill run` tells of its plans: an object a schema, with the keys that `observe.checked.line` reads."""
    lines = []
    for name, plan in plans.by_name.items():
        trial = plans.trials.get(name)
        tried = trial is not None and trial.usable
        lines.append(
            {
                "name": name,
                "backend": plan.backend,
                "why": plans.reasons.get(name, ""),
                "sites": len(trial.verdicts) if trial and tried else None,
                "enforced": len(held_sites(trial)) if trial and tried else None,
                "left": [f"{left.pointer or '/'} {left.keyword}" for left in plan.left],
                "refused": plan.refused,
                "warnings": list(plans.warnings.get(name, ())),
            }
        )
    return lines


def _asked_of(entries: Sequence[Entry], asked: Asked, samples: list[JsonValue]) -> list[Told]:
    """Trials and budgets of loaded schemas, by one sandbox."""
    schemas = [entry.schema for entry in entries if entry.schema is not None]
    jobs = [_trial_job(schema, backend, asked) for schema in schemas for backend in asked.backends]
    jobs += [budget_job(schema, asked.policy, samples) for schema in schemas]
    if not schemas:
        return []
    given, tokenizer = iter(answers(asked.model, jobs)), tokenizer_digest(models.resolve(asked.model))
    trials = [{backend: trial_of(backend, next(given)) for backend in asked.backends} for _ in schemas]
    budgets = [told(answer, asked.max_tokens, asked.context) for answer in given]
    return [
        Told(tried, measured, *choose(tried.values()), tokenizer)
        for tried, measured in zip(trials, budgets, strict=True)
    ]


def _trial_job(schema: DocumentSchema, backend: str, asked: Asked) -> Job:
    return trial_job(
        schema, backend, compact=asked.compact, policy=asked.policy, raw=asked.raw, patience=asked.patience
    )


def _refusal(said: Told) -> dict[str, str] | None:
    if not said.chosen.usable:
        words = "; ".join(f"{name}: {trial.words or trial.kind}" for name, trial in said.trials.items())
        return {"code": said.chosen.kind, "words": words}
    for finding in said.budget["findings"]:
        if finding["severity"] == "refuse":
            return {"code": finding["code"], "words": finding["message"]}
    return None


def _lock(entry: Entry, asked: Asked, said: Told) -> dict[str, Any] | None:
    """How the lock file differs: `absent`, `fresh`, `stale`, or `other` if it was made for other options."""
    if entry.folder is None or entry.schema is None:
        return None
    try:
        kept = lock.read(entry.folder)
        if kept is None:
            return {"state": "absent", "changes": []}
        same = lock.options_of(kept) == asked.options
        changes = lock.verify(kept, entry.schema, said.found if same else None)
    except SchemaError as error:
        return {"state": "stale", "changes": [asdict(Change("unreadable", "", error.message, ""))]}
    state = "stale" if changes else "fresh" if same else "other"
    return {"state": state, "changes": [asdict(change) for change in changes]}
