"""What a document costs in one thread, stage by stage and, within `extract`, step by step. No Ray, no model."""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench.documents import SCHEMA
from bench.recording import SAMPLING, recorded_job
from pipeline.engines import Engine, build
from pipeline.flow import extract, plans_of
from pipeline.job import JobConfig
from pipeline.observe.tally import tally
from pipeline.records import Document, Outcome
from pipeline.runtime.input import Unit, read_unit, scan
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.store import open_store
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.prompt import render

TOP = 15
PROFILED = 2000
MICRO = 1e6

T = TypeVar("T")


@dataclass
class Stages:
    """CPU seconds by stage (all threads of this process), over `documents` documents."""

    documents: int
    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[[], T]) -> T:
        started = time.process_time()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - started
        return result

    def micros(self) -> dict[str, float]:
        return {name: round(seconds / self.documents * MICRO, 1) for name, seconds in self.seconds.items()}


def measure(folder: Path, name: str) -> dict[str, Any]:
    """Run `folder/<name>.jsonl` through the stages of a run, unit by unit, and take `extract` apart."""
    job = recorded_job(folder, name)
    stages = Stages(0)
    found = stages.timed("scan (driver)", lambda: scan(job.input, job.placement.unit_documents))
    stages.documents = found.documents
    plan = plans_of(job, [SCHEMA]).by_name[SCHEMA]
    engine = build(job.engine)
    asyncio.run(engine.start([plan]))
    _unit(Stages(0), found.units[0], job, plan, engine, _directory(folder, "first"))  # imports and caches
    directory = _directory(folder, name)
    statuses: dict[str, int] = {}
    sample: list[Document] = []
    for unit in found.units:
        documents, outcomes = _unit(stages, unit, job, plan, engine, directory)
        sample += documents[: max(0, PROFILED - len(sample))]
        for outcome in outcomes:
            statuses[outcome.status] = statuses.get(outcome.status, 0) + 1
    micros = stages.micros()
    engine_micros = _engine_micros(sample, plan, engine)
    return {
        "documents": found.documents,
        "statuses": statuses,
        "extract_docs_per_second_per_core": round(MICRO / micros["extract"], 1),
        "extract_without_engine_docs_per_second_per_core": round(MICRO / (micros["extract"] - engine_micros), 1),
        "all_stages_docs_per_second_per_core": round(MICRO / sum(micros.values()), 1),
        "stage_micros_per_document": micros,
        "recorded_engine_micros_per_document": round(engine_micros, 1),
        "extract_profile": profile(sample, plan, engine, job, micros["extract"]),
    }


def _directory(folder: Path, name: str) -> Path:
    return folder / f"stages-{name}"


def _unit(
    stages: Stages, unit: Unit, job: JobConfig, plan: DecodingPlan, engine: Engine, directory: Path
) -> tuple[list[Document], Sequence[Outcome]]:
    """One unit, as `UnitWorker` treats it."""
    documents = stages.timed("read", lambda: read_unit(unit, job.input))
    outcomes = stages.timed("extract", lambda: asyncio.run(_extract_all(documents, plan, engine, job)))
    stages.timed("tally (progress)", lambda: tally(outcomes))
    stages.timed("write", lambda: write_unit(unit, outcomes, {SCHEMA: plan}, open_store(str(directory)), "bench"))
    return documents, outcomes


async def _extract_all(
    documents: Sequence[Document], plan: DecodingPlan, engine: Engine, job: JobConfig
) -> list[Outcome]:
    return [await extract(document, plan, engine, job) for document in documents]


def _engine_micros(documents: Sequence[Document], plan: DecodingPlan, engine: Engine) -> float:
    """What the stand-in for the model takes: a real engine's front end costs something else."""
    prompts = [render(document.text, plan) for document in documents]

    async def play() -> None:
        for prompt in prompts:
            await engine.generate(prompt, plan, SAMPLING)

    started = time.process_time()
    asyncio.run(play())
    return (time.process_time() - started) / len(prompts) * MICRO


@contextmanager
def _profiler() -> Any:
    profiler = cProfile.Profile(timer=time.process_time)
    profiler.enable()
    try:
        yield profiler
    finally:
        profiler.disable()


def profile(
    documents: Sequence[Document], plan: DecodingPlan, engine: Engine, job: JobConfig, micros: float
) -> dict[str, Any]:
    """Shares of `extract` by step (its direct callees) and the functions with most time, callees included.

    The profiler slows small functions down more than large ones, so shares are rough; `micros`, taken without it,
    is what they are shares of.
    """
    with _profiler() as profiler:
        asyncio.run(_extract_all(documents, plan, engine, job))
    stats: Any = pstats.Stats(profiler)
    functions = stats.stats
    main = next(key for key in functions if key[2] == "extract" and key[0].endswith("flow.py"))
    whole = functions[main][3]
    steps = {_name(key): entry[4][main][3] for key, entry in functions.items() if main in entry[4]}
    inside = {_name(key): (entry[3], entry[0]) for key, entry in functions.items() if "/pipeline/" in key[0]}
    own: dict[str, float] = {}
    for key, entry in functions.items():
        module = _module(key[0])
        own[module] = own.get(module, 0.0) + entry[2]
    return {
        "steps_share": _shares(steps, whole, micros),
        "functions_share": _shares({name: seconds for name, (seconds, _) in inside.items()}, whole, micros),
        "own_time_by_module_share": _shares(own, whole, micros),
    }


def _shares(seconds: dict[str, float], whole: float, micros: float) -> dict[str, dict[str, float]]:
    top = sorted(seconds.items(), key=lambda item: -item[1])[:TOP]
    return {
        name: {"share": round(spent / whole, 3), "micros": round(spent / whole * micros, 1)}
        for name, spent in top
        if spent > 0.002 * whole
    }


def _name(key: tuple[str, int, str]) -> str:
    return f"{_module(key[0])}:{key[2]}"


def _module(path: str) -> str:
    """A file as people name it: from the package on, whatever the directory it is installed in."""
    if path.startswith("~") or path.startswith("<"):
        return "built-in"
    for root in ("/pipeline/", "/site-packages/", "/lib/python3.11/"):
        if root in path:
            return (
                (root if root == "/pipeline/" else "").strip("/") + "/" * (root == "/pipeline/") + path.split(root)[-1]
            )
    return Path(path).name
