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
    arms: list[dict[str, Any]] = []
    notes: list[str] = []
    ways = (True, False) if wish.free and job.sampling.constrained else (job.sampling.constrained,)
    for work in (job, *(job.model_copy(update={"engine": engine}) for engine in wish.engines)):
        plans = plans_of(work, filter(None, found.schema_counts)).by_name
        for name in plans.keys() - documents.keys():
            picked_ones = _documents(job, found, name, wish)
            documents[name] = distinct(picked_ones)
            if unasked := len(picked_ones) - len(documents[name]):
                notes.append(
                    f"{name}: {unasked} of {len(picked_ones)} picked documents are empty, unreadable or repeated"
                )
        usable = _usable(plans, documents, wish, notes)
        told = asyncio.run(_arms(work, ways, _Given(usable, documents, plants, build), wish))
        model = {"engine": work.engine.engine, "model": model_of(work.engine)}
        arms += [{**model, "constrained": way, "schemas": told[way]} for way in ways]
    if not any(arm["schemas"] for arm in arms):
        raise InputError(
            "; ".join(["there is no document and field that an instruction can be planted for", *notes]) + "."
        )
    words = hashlib.sha256("\n".join([*TEMPLATES.values(), CONTROL]).encode()).hexdigest()[:16]
    return {"job": job.name, "seed": wish.seed, "templates": words, "arms": arms, "notes": list(dict.fromkeys(notes))}


def model_of(engine: Any) -> str:
    """What tells an engine's model from others."""
    return str(getattr(engine, "model", "") or getattr(engine, "recording", "") or engine.engine)


@dataclass(frozen=True, slots=True)
class _Given:
    """What the arms of one engine work with. `plants` are those of each schema, made by the first arm of all."""

    plans: Mapping[str, DecodingPlan]
    documents: Mapping[str, Sequence[Document]]
    plants: dict[str, list[Plant]]
    build: Build


async def _arms(work: WorkConfig, ways: Sequence[bool], given: _Given, wish: Wish) -> dict[bool, list[dict[str, Any]]]:
    """What is told of each schema, constrained and free. One engine for each back end, one after the other."""
    told: dict[bool, list[dict[str, Any]]] = {way: [] for way in ways}
    configs = {way: unaudited(work, constrained=way) for way in ways}
    for backend in sorted({plan.backend for plan in given.plans.values()}):
        mine = {name: plan for name, plan in given.plans.items() if plan.backend == backend}
        engine = given.build(configs[ways[0]], backend)
        try:
            await engine.start(list(mine.values()))
            for way, config in configs.items():
                for name, plan in mine.items():
                    targets, asker = _targets(plan, wish), Asker(engine, plan, config)
                    asked = (given.documents[name], plan.acceptance, targets, wish.seed, given.plants.get(name))
                    pairs = await pairs_of(asker, *asked)
                    given.plants.setdefault(name, [pair.plant for pair in pairs])
                    told[way].append(flips(name, pairs, targets))
        finally:
            await engine.close()
    return {way: sorted(some, key=lambda one: str(one["schema"])) for way, some in told.items()}


def _usable(
    plans: Mapping[str, DecodingPlan], documents: Mapping[str, Sequence[Document]], wish: Wish, notes: list[str]
) -> dict[str, DecodingPlan]:
    """The plans of schemas in whose documents something can be planted, with notes of the others.

    Raises:
        InputError: a field was asked for that no schema has.
    """
    known = {target.pointer for plan in plans.values() for target in targets_of(plan.acceptance)}
    if unknown := [pointer for pointer in wish.fields if pointer not in known]:
        raise InputError(f"--field {unknown[0]} is no field that can be named. There are: {', '.join(sorted(known))}.")
    usable = {}
    for name, plan in plans.items():
        if plan.refused:
            notes.append(f"{name} is refused: {plan.refused}")
        elif not _targets(plan, wish):
            notes.append(f"{name} has no field that a sentence can name")
        elif documents[name]:
            usable[name] = plan
    return usable


def _targets(plan: DecodingPlan, wish: Wish) -> list[Target]:
    return [one for one in targets_of(plan.acceptance) if not wish.fields or one.pointer in wish.fields]


def _documents(job: JobConfig, found: InputScan, schema: str, wish: Wish) -> list[Document]:
    group = [unit for unit in found.units if unit.schema == schema]
    chosen = []
    for place, rows in picked(group, wish.documents, f"{wish.seed} {schema}").items():
        documents = read_unit(group[place], job.input)
        chosen += [documents[row] for row in rows]
    return chosen
