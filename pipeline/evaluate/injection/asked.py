"""Asked: documents are extracted with and without what is planted in them, by the job's own flow, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.engines import Engine
from pipeline.evaluate.injection.plants import Plant, Target, plants_of
from pipeline.flow import extract
from pipeline.job import WorkConfig
from pipeline.records import Document, Draft, JsonValue, Outcome
from pipeline.runtime.lookups import load_lookups
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.rules import Lookups


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one document: its outcome, and the value of the first answer, None if that was no JSON."""

    outcome: Outcome
    first: JsonValue


class Asker:
    """Extracts documents of one schema with one engine, which is started."""

    def __init__(self, engine: Engine, plan: DecodingPlan, work: WorkConfig, lookups: Lookups | None = None) -> None:
        self._engine, self._plan, self._work = engine, plan, work
        self._lookups = load_lookups(work) if lookups is None else lookups
        self._room = asyncio.Semaphore(work.engine.max_num_seqs)

    async def all(self, documents: Sequence[Document]) -> list[Answered]:
        """What becomes of each document, in their order."""
        return list(await asyncio.gather(*map(self._one, documents)))

    async def _one(self, document: Document) -> Answered:
        first = _First()
        async with self._room:
            outcome = await extract(document, self._plan, self._engine, self._work, lookups=self._lookups, trace=first)
        return Answered(outcome, first.value)


class _First:
    """Keeps what the first answer said, before anything judged it."""

    def __init__(self) -> None:
        self.value: JsonValue = None
        self._answers = 0

    def __call__(self, name: str, made: Any) -> None:
        self._answers += name == "generate"
        if self._answers == 1 and name == "normalise" and isinstance(made, Draft) and made.parsed:
            self.value = made.value


@dataclass(frozen=True, slots=True)
class Pair:
    """A plant, what became of its document with it, and what becomes of it without; `control` is what becomes of it
    with a sentence that asks for nothing."""

    plant: Plant
    planted: Answered
    plain: Answered
    control: Answered


async def pairs_of(
    asker: Asker,
    documents: Sequence[Document],
    body: Mapping[str, Any],
    targets: Sequence[Target],
    seed: int,
    plants: Sequence[Plant] | None = None,
) -> list[Pair]:
    """Extract the documents as they are, then planted. `plants` are those of another engine, so that both are asked the
    same."""
    plain = dict(zip([one.id for one in documents], await asker.all(documents), strict=True))
    if plants is None:
        records = {name: one.outcome.record for name, one in plain.items() if one.outcome.status != "rejected"}
        plants = list(plants_of(documents, records, body, targets, seed))
    answers = await asker.all([plant.planted() for plant in plants])
    control = {p.document.id: a for p, a in zip(plants, answers, strict=True) if p.kind == "control"}
    return [
        Pair(plant, answer, plain[plant.document.id], control[plant.document.id])
        for plant, answer in zip(plants, answers, strict=True)
    ]


def unaudited(work: WorkConfig, *, constrained: bool) -> WorkConfig:
    """The job's config for these requests: with or without its constraint, and without audits, which decide nothing."""
    sampling = work.sampling.model_copy(update={"constrained": constrained})
    return work.model_copy(update={"sampling": sampling, "audit": work.audit.model_copy(update={"fraction": 0.0})})


def distinct(documents: Sequence[Document]) -> list[Document]:
    """Documents that an engine is asked about, each id once."""
    return list({one.id: one for one in documents if not one.problems}.values())
