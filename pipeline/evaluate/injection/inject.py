"""Inject: a job's documents with instructions planted in them, under one engine or several, constrained and free."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.compile.plans import plans_of
from pipeline.cost.sample import picked
from pipeline.engines import Engine
from pipeline.engines.several import build_all
from pipeline.errors import InputError
from pipeline.evaluate.injection.asked import Asker, distinct, pairs_of, unaudited
from pipeline.evaluate.injection.flips import flips
from pipeline.evaluate.injection.plants import CONTROL, TEMPLATES, Plant, Target, targets_of
from pipeline.job import JobConfig, WorkConfig
from pipeline.records import Document
from pipeline.runtime.input import InputScan, read_unit, scan
from pipeline.schema.plan import DecodingPlan

Build = Callable[[WorkConfig, str], Engine]
"""Makes an engine for a grammar back end."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for: documents of each schema; only these fields (empty: all); with `free`, each engine without its
    constraint as well; `engines` are further ones, by name, in place of the job's."""

    documents: int = 10
    seed: int = 0
    fields: tuple[str, ...] = ()
    free: bool = False
    engines: tuple[Any, ...] = ()


def inject(job: JobConfig, wish: Wish, build: Build = build_all) -> dict[str, Any]:
    """All arms (an engine, constrained or free) and what instructions did under each; the first one's plants are given
    to all. docs/injection.md lists the keys.

    Raises:
        GristmillError: the input, a schema or an engine cannot be used.
        InputError: no document or field can be planted in.
    """
    found = scan(job.input, job.placement.unit_documents)
    plants: dict[str, list[Plant]] = {}
    documents: dict[str, list[Document]] = {}
    arms, notes = [], []
    for work, constrained in _arms(job, wish):
        plans = plans_of(work, filter(None, found.schema_counts)).by_name
        for name in plans:
            if name not in documents:
                documents[name] = distinct(_documents(job, found, name, wish))
        refused = [name for name, plan in plans.items() if plan.refused]
        notes += [f"{name} is refused: {plans[name].refused}" for name in refused]
        usable = {name: plan for name, plan in plans.items() if name not in refused and documents[name]}
        parts = asyncio.run(_arm(work, usable, documents, wish, (plants, build)))
        arms.append(
            {"engine": work.engine.engine, "model": model_of(work.engine), "constrained": constrained, "schemas": parts}
        )
    if not any(arm["schemas"] for arm in arms):
        raise InputError(
            "; ".join(["there is no document and field that an instruction can be planted for", *notes]) + "."
        )
    words = hashlib.sha256("\n".join([*TEMPLATES.values(), CONTROL]).encode()).hexdigest()[:16]
    return {"job": job.name, "seed": wish.seed, "templates": words, "arms": arms, "notes": list(dict.fromkeys(notes))}


def model_of(engine: Any) -> str:
    """What tells an engine's model from others."""
    return str(getattr(engine, "model", "") or getattr(engine, "recording", "") or engine.engine)


def _arms(job: JobConfig, wish: Wish) -> list[tuple[WorkConfig, bool]]:
    works = [job, *(job.model_copy(update={"engine": engine}) for engine in wish.engines)]
    ways = [True, False] if wish.free and job.sampling.constrained else [job.sampling.constrained]
    return [(unaudited(work, constrained=way), way) for work in works for way in ways]


async def _arm(
    work: WorkConfig,
    plans: Mapping[str, DecodingPlan],
    documents: Mapping[str, Sequence[Document]],
    wish: Wish,
    given: tuple[dict[str, list[Plant]], Build],
) -> list[dict[str, Any]]:
    """One engine for each back end, one after the other; `given` are the plants that all arms share, and the maker of
    engines."""
    plants, build = given
    told = []
    for backend in sorted({plan.backend for plan in plans.values()}):
        mine = {name: plan for name, plan in plans.items() if plan.backend == backend}
        engine = build(work, backend)
        try:
            await engine.start(list(mine.values()))
            for name, plan in mine.items():
                targets = _targets(plan, wish)
                asker = Asker(engine, plan, work)
                pairs = await pairs_of(asker, documents[name], plan.acceptance, targets, wish.seed, plants.get(name))
                plants.setdefault(name, [pair.plant for pair in pairs])
                told.append(flips(name, pairs, targets))
        finally:
            await engine.close()
    return sorted(told, key=lambda one: str(one["schema"]))


def _targets(plan: DecodingPlan, wish: Wish) -> list[Target]:
    return [one for one in targets_of(plan.acceptance) if not wish.fields or one.pointer in wish.fields]


def _documents(job: JobConfig, found: InputScan, schema: str, wish: Wish) -> list[Document]:
    group = [unit for unit in found.units if unit.schema == schema]
    chosen = []
    for place, rows in picked(group, wish.documents, f"{wish.seed} {schema}").items():
        documents = read_unit(group[place], job.input)
        chosen += [documents[row] for row in rows]
    return chosen
