"""Replay: one document of a committed run once more, with every step shown, held against what was committed.

The same `extract` as in the job, in this process and without Ray; `docs/replay.md` says what the answer's keys mean.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any, Literal

from pipeline.compile.plans import plans_of
from pipeline.engines import Engine
from pipeline.engines.follow import Follower, follower
from pipeline.engines.grammar import backend_of
from pipeline.engines.kept import KeptEngine
from pipeline.engines.several import build_all
from pipeline.errors import EngineError, GristmillError, InputError, SchemaError
from pipeline.flow import Trace, extract
from pipeline.job import EMBEDDED_MODEL, JobConfig, RecordedConfig, WorkConfig
from pipeline.jobfile import load_job
from pipeline.observe.traced import Traced
from pipeline.records import Completion, JsonValue, Outcome, Prompt, Sampling
from pipeline.runtime.lookups import load_lookups, lookups_digest
from pipeline.runtime.output.lookup import find_run
from pipeline.runtime.output.recall import Recalled, changes, differences, recall
from pipeline.runtime.output.run_record import recorded_job
from pipeline.schema.plan import NO_PLAN, DecodingPlan, refused_plan
from pipeline.schema.storage import as_json
from pipeline.steps.answer.spans import scan
from pipeline.steps.route import worth_asking
from pipeline.steps.rules import NO_LOOKUPS, Lookups

Which = Literal["main", "recorded"]

_UNASKED: dict[str, Any] = {"lookups": ()}
"""No plan depends on lookups; one of another schema of the job would be refused where only one is loaded."""


class Asking:
    """An engine that is always asked for its tokens: they say to the byte where an answer stopped."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """As the engine does."""
        await self._inner.start(plans)

    async def close(self) -> None:
        """As the engine does."""
        await self._inner.close()

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt."""
        return await self._inner.generate(prompt, plan, dataclasses.replace(sampling, token_ids=True))


def replay(path: str, document_id: str, *, which: Which = "main", job_path: Path | None = None) -> dict[str, JsonValue]:
    """Everything about one more extraction of a document, as plain JSON values.

    Raises:
        GristmillError: no such run or document, no job, or an engine that does not start.
    """
    store = find_run(path)
    recalled = recall(store, document_id)
    job, lacks = (load_job(job_path), ()) if job_path else recorded_job(store)
    notes = [*recalled.notes, *(f"the run did not keep {name}, which may be secret" for name in lacks)]
    lookups, job = _lookups(job, notes)
    plan = _plan(job, recalled, which, notes)
    changed = list(changes(store, job, plan, lookups_digest(lookups)))
    shown = Traced()
    outcome = asyncio.run(_play(job, recalled, plan, lookups, which, shown))
    compared = _compared(recalled, outcome, plan, which, notes)
    return {
        "run": store.where,
        "run_id": recalled.row["run_id"],
        "document_id": recalled.document.id,
        "source": recalled.document.source,
        "schema": recalled.document.schema,
        "engine": which,
        "document": recalled.document.text,
        "changed": [*changed, *_digests(recalled, outcome, plan)],
        "steps": shown.steps,
        "stopped": _stopped(job, plan, shown.completions, notes),
        **compared,
        "notes": notes,
    }


def _lookups(job: JobConfig, notes: list[str]) -> tuple[Lookups, JobConfig]:
    try:
        return load_lookups(job), job
    except InputError as error:
        notes.append(f"lookups are left out: {error}")
        return NO_LOOKUPS, job.model_copy(update={"lookups": ()})


def _plan(job: JobConfig, recalled: Recalled, which: Which, notes: list[str]) -> DecodingPlan:
    """The document's plan. Where no engine is asked, or a recording does not say its back end, it is first of all the
    one that the row's attempts name, for which no model has to be there.

    Raises:
        EngineError: the model of the engine that is to be asked is missing.
    """
    name = recalled.document.schema
    if not name:
        return NO_PLAN
    used = {attempt["plan_digest"] for attempt in recalled.row["attempts"]}
    try:
        if which == "recorded" or isinstance(job.engine, RecordedConfig):
            plan = kept_plan(job, name, used)
            if plan.digest in used:
                return plan
        return plans_of(job.model_copy(update=_UNASKED), [name]).by_name[name]
    except SchemaError as error:
        notes.append(f"the schema is refused: {error}")
        return refused_plan(name, recalled.row["schema_digest"] or "", error.message)
    except EngineError as error:
        if which == "main":
            raise
        notes.append(f"the schema is taken as decodable, untried: {error}")
        return kept_plan(job, name, used)


def kept_plan(job: WorkConfig, name: str, used: Set[str]) -> DecodingPlan:
    """The plan of a schema for which no model has to be there: that of the back end whose digest is among `used`, those
    that answers were given under; of the first back end if neither is.

    Raises:
        SchemaError: the schema cannot be used.
    """
    compact = job.engine.compact_json
    made = []
    for backend in ("xgrammar", "guidance"):
        engine = {"engine": "recorded", "recording": os.devnull, "backend": backend, "compact_json": compact}
        without = job.model_copy(update={"engine": RecordedConfig.model_validate(engine), **_UNASKED})
        made.append(plans_of(without, [name]).by_name[name])
        if made[-1].digest in used:
            return made[-1]
    return made[0]


async def play_kept(
    job: WorkConfig, recalled: Recalled, plan: DecodingPlan, lookups: Lookups, trace: Trace = lambda _name, _made: None
) -> Outcome:
    """What comes of the answers that a row kept, by this version and this job; nobody is waited for."""
    engine = KeptEngine(recalled.row["attempts"], recalled.row["problems"])
    job = job.model_copy(update={"retry": job.retry.model_copy(update={"backoff_seconds": 0.0})})
    return await extract(recalled.document, plan, engine, job, lookups=lookups, trace=trace)


async def _play(
    job: JobConfig, recalled: Recalled, plan: DecodingPlan, lookups: Lookups, which: Which, shown: Traced
) -> Outcome:
    if which == "recorded" or plan.refused or not worth_asking(recalled.document):
        return await play_kept(job, recalled, plan, lookups, shown)
    engine = Asking(build_all(job, plan.backend))
    try:
        await engine.start([plan])
        return await extract(recalled.document, plan, engine, job, lookups=lookups, trace=shown)
    finally:
        await engine.close()


def _digests(recalled: Recalled, outcome: Outcome, plan: DecodingPlan) -> list[str]:
    """What the row's own digests say; a run's record might have been edited, or be of another version."""
    row = recalled.row
    pairs = {
        "schema digest": (row["schema_digest"], plan.schema_digest),
        "grammar digest": (row["grammar_digest"], plan.grammar_digest),
        "digest of the document's text with its plan": (row["work_digest"], outcome.work_digest),
        "plan digest of the last answer": (row["attempts"][-1]["plan_digest"] if row["attempts"] else "", plan.digest),
    }
    return [f"{name}: {then} in the run, {now} now" for name, (then, now) in pairs.items() if then and then != now]


def _stopped(
    job: JobConfig, plan: DecodingPlan, completions: Sequence[Completion], notes: list[str]
) -> list[dict[str, Any] | None]:
    """For each answer where its grammar left off; None for one that holds no text and failed."""
    nothing = [None for _ in completions]
    if plan.refused or not any(_is_answer(one) for one in completions):
        return [*nothing]
    try:
        chosen = _follower(job, plan, notes)
        return [_place(chosen, plan, one) if _is_answer(one) else None for one in completions]
    except GristmillError as error:
        notes.append(f"the matcher's state is not known: {error}")
        return [*nothing]


def _place(chosen: Follower, plan: DecodingPlan, one: Completion) -> dict[str, Any]:
    found = chosen.follow(plan.transport, one.text, one.token_ids)
    return {**dataclasses.asdict(found), "pointer": scan(one.text[: found.accepted]).pointer}


def _is_answer(completion: Completion) -> bool:
    return bool(completion.text) or not completion.error


def _follower(job: JobConfig, plan: DecodingPlan, notes: list[str]) -> Follower:
    backend, compact = backend_of(plan.backend), job.engine.compact_json
    if isinstance(job.engine, RecordedConfig):
        notes.append("a recording does not say whose tokens it holds: the embedded model's are followed")
    try:
        return follower(job.engine.tokenizer_model, backend, compact)
    except EngineError as error:
        notes.append(f"the embedded model's tokens are followed: {error}")
    return follower(EMBEDDED_MODEL, backend, compact)


def _compared(
    recalled: Recalled, outcome: Outcome, plan: DecodingPlan, which: Which, notes: list[str]
) -> dict[str, JsonValue]:
    without: tuple[str, ...] = ()
    if which == "recorded" and recalled.row.get("confidence") is not None:
        without = ("confidence",)
        notes.append("confidence is not compared: a run's rows keep no log probabilities")
    row, differing = differences(recalled.row, outcome, plan, without=without)
    return {
        "outcome": as_json(row),
        "committed": as_json(dict(recalled.row)),
        "equal": not differing,
        "differences": {name: {"committed": as_json(a), "now": as_json(b)} for name, (a, b) in differing.items()},
    }
