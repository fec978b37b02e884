"""The runs of models that are held against each other: made for it from a job, or there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import JobFileError, OutputError
from pipeline.evaluate.arms import arm_of, run_arm
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.gold import read_gold
from pipeline.evaluate.models import Candidate, Selection, Wanted, select
from pipeline.flow import Observer
from pipeline.job import JobConfig
from pipeline.jobfile import load_engine, load_job
from pipeline.runtime.output.browse import Browsed
from pipeline.runtime.output.run_record import recorded_job

FOLDER = "models"
"""Where the runs lie in the job's output."""
MAIN = "main"
"""The name of the job's own engine."""


def from_job(
    path: str, engines: Sequence[str], limit: int | None, repeats: int, wanted: Wanted, observe: Observer
) -> tuple[str, Selection]:
    """Run a job with each of several engines, each `repeats` times more and once in other batches, and hold them
    against each other; also the job's name. An engine is `main`, a name of the job's `engines`, or an engine config.

    Raises:
        InputError: the gold cannot be read.
        JobFileError: there is no such engine, or the job cannot be run with it.
        GristmillError: as for `flow.run`.
    """
    job = load_job(path)
    named = _named(job, engines)
    if wanted.gold is not None:
        next(read_gold(wanted.gold), None)  # a wrong path is told before hours of runs
    arms = {name: arms_of(job, name, engine, limit, repeats) for name, engine in named.items()}
    candidates = []
    for name, mine in arms.items():
        runs = [run_arm(arm, observe) for arm in mine]
        candidates.append(Candidate(name, runs[0], tuple(runs[1 : 1 + repeats]), tuple(runs[1 + repeats :])))
    return job.name, _selected(candidates, wanted, job.schemas)


def from_runs(paths: Sequence[str], wanted: Wanted) -> tuple[str, Selection]:
    """Hold runs against each other. Those that were made by the same are repeats of the first of them, in other batches
    if their engines took another number of requests at once; also the name of the first one's job.

    Raises:
        OutputError: there is no committed run, one cannot be read, or no document is in all.
    """
    runs = [run_of(path) for path in paths]
    groups: dict[str, list[Browsed]] = {}
    for run, _ in runs:
        groups.setdefault(_made_by(run), []).append(run)
    candidates = []
    for place, group in enumerate(groups.values(), 1):
        others = [(run, _at_once(run) == _at_once(group[0])) for run in group[1:]]
        again, batches = (tuple(run for run, same in others if same is alike) for alike in (True, False))
        candidates.append(Candidate(f"{place}: {_model(group[0])}", group[0], again, batches))
    if len(candidates) < 2:
        raise JobFileError("all runs were made by the same engine: give runs of two models, at least.")
    return runs[0][0].manifest.job, _selected(candidates, wanted, runs[0][1])


def _selected(candidates: Sequence[Candidate], wanted: Wanted, schemas: str | None) -> Selection:
    notes: list[str] = []
    first = candidates[0].run
    bodies = bodies_of(first, wanted.schemas or schemas, sorted(first.manifest.schemas), notes)
    return select(candidates, bodies, wanted, notes)


def _named(job: JobConfig, engines: Sequence[str]) -> dict[str, Any]:
    """Engine configs by a short name each."""
    if job.placement.kind == "serve":
        raise JobFileError("under `placement.kind: serve` the application's engine answers, whatever is named here.")
    found: dict[str, Any] = {}
    for one in engines:
        engine = job.engine if one == MAIN else job.engines.get(one)
        name = one if engine is not None else Path(one).stem[:24]
        if name in found:
            raise JobFileError(f"two engines are called `{name}`: give each once, by files of different names.")
        found[name] = load_engine(one) if engine is None else engine
    if len(found) < 2:
        raise JobFileError("give two engines, at least: --engine A --engine B (`main` is the job's own).")
    return found


def arms_of(job: JobConfig, name: str, engine: Any, limit: int | None, repeats: int) -> list[JobConfig]:
    """The jobs of an engine: one, `repeats` more of the same, and one with a quarter of the requests at once, unless
    there is only one at once."""
    arm = arm_of(job, FOLDER, name, limit, engine=engine)
    slots = [f"{job.slot} again {turn}" for turn in range(1, repeats + 1)]
    arms = [arm, *(arm.model_copy(update={"slot": slot}) for slot in slots)]
    at_once = min(engine.max_num_seqs, arm.input.limit or engine.max_num_seqs)
    if at_once > 1:
        fewer = engine.model_copy(update={"max_num_seqs": max(1, at_once // 4)})
        arms.append(arm.model_copy(update={"engine": fewer, "slot": f"{job.slot} batches"}))
    return arms


def _made_by(run: Browsed) -> str:
    return repr(sorted(dict(run.record.get("work") or {"run": run.manifest.run_id}).items(), key=str))


def _model(run: Browsed) -> str:
    work = run.record.get("work") or {}
    return str(work.get("engine.model") or work.get("engine.engine") or run.manifest.job)[-40:]


def _at_once(run: Browsed) -> int | None:
    try:
        return getattr(recorded_job(run.store)[0].engine, "max_num_seqs", None)
    except OutputError:
        return None
