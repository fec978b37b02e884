"""Models: several engines over the same documents, side by side, and which to take by the rule of `advice`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pipeline.errors import OutputError
from pipeline.evaluate.advice import Advice, advise, comparisons
from pipeline.evaluate.gold import GoldConfig
from pipeline.evaluate.gold_score import GoldScore, scoring
from pipeline.evaluate.intervals import FEW, LEVEL, RESAMPLES, Rate
from pipeline.evaluate.side_rates import Gap, SideRates
from pipeline.evaluate.sides import Beside, Key, Part, Together, together
from pipeline.report.cost import Cost, cost_of
from pipeline.runtime.output.browse import Browsed
from pipeline.runtime.output.run_record import recorded_job

SHARES = ("gold", "valid", "legal", "required", "empty", "unsupported", "clipped", "repeat", "batch")
AMOUNTS = ("output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and its runs over the same documents: one, the same again, and the same in other batches."""

    name: str
    run: Browsed
    repeats: tuple[Browsed, ...] = ()
    batches: tuple[Browsed, ...] = ()

    @property
    def runs(self) -> tuple[Browsed, ...]:
        """All of them."""
        return (self.run, *self.repeats, *self.batches)


@dataclass(frozen=True, slots=True)
class Speed:
    """Of a model's first run: output tokens a second; and what a valid record took, in money if there is a price, else
    in seconds of all engines, with an interval. It reaches as far as that of the share of valid records; that the
    machine may have been busy is not in it. None: nobody knows."""

    tokens_per_second: float | None
    per_valid: Gap
    money: bool


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model. `shares` and `amounts` are over the documents of all models."""

    name: str
    where: tuple[str, ...]
    shares: Mapping[str, Rate]
    amounts: Mapping[str, Gap]
    speed: Speed


@dataclass(frozen=True, slots=True)
class Selection:
    """All that is known. `level` is that of the intervals that the advice rests on."""

    documents: int
    apart: int
    unread: int
    models: Sequence[ModelRow]
    advice: Advice
    level: float
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How models are held against each other: at most about `most` documents, by `gold` if given. `per_gpu_hour` is
    what a GPU costs, `start_seconds` what engines took to start, which is taken off each run. `schemas` is where they
    are, if not where the job has them."""

    most: int
    gold: GoldConfig | None = None
    per_gpu_hour: float | None = None
    start_seconds: float = 0.0
    schemas: str | None = None
    resamples: int = 4 * RESAMPLES  # intervals corrected for many comparisons reach far out


def select(
    candidates: Sequence[Candidate],
    bodies: Mapping[str, Mapping[str, Any]],
    wanted: Wanted,
    notes: Iterable[str] = (),
) -> Selection:
    """Hold models against each other over the documents of all their runs. `bodies` are the schemas by name.

    Raises:
        InputError: the gold cannot be read.
        OutputError: a run cannot be read, or they have no document in common.
    """
    found = together([run for one in candidates for run in one.runs], bodies, wanted.most)
    level = 1 - (1 - LEVEL) / comparisons(len(candidates))
    rates = SideRates(level, wanted.resamples)
    with scoring(wanted.gold, bodies) if wanted.gold is not None else nullcontext() as score:
        for key, sides in found.documents.items():
            rates.add("\0".join(key), _parts(candidates, key, sides, score))
        told = list(_notes(candidates, found, score))
    speeds = {one.name: _speed(one.run, rates.rate((one.name, "valid")), wanted) for one in candidates}
    costs = {name: one.per_valid for name, one in speeds.items()}
    advice = advise(
        [one.name for one in candidates],
        lambda model, name: rates.rate((model, name)).value,
        lambda one, other, name: rates.difference((one, name), (other, name)),
        {name: (gap.value, gap.low, gap.high) for name, gap in costs.items() if gap.value and gap.low and gap.high},
    )
    rows = [_row(one, rates, speeds[one.name]) for one in candidates]
    return Selection(len(found.documents), found.apart, found.unread, rows, advice, level, [*notes, *told])


def _parts(
    candidates: Sequence[Candidate], key: Key, sides: Sequence[Beside], score: GoldScore | None
) -> dict[tuple[str, ...], Part]:
    parts: dict[tuple[str, ...], Part] = {}
    alike = set.intersection(*(set(side.parts) for side in sides)) | {"clipped"}
    place = 0
    for one in candidates:
        mine = sides[place : place + len(one.runs)]
        place += len(one.runs)
        first = mine[0]
        parts |= {(one.name, name): part for name, part in first.parts.items() if name in alike}
        for name, others in (
            ("repeat", mine[1 : 1 + len(one.repeats)]),
            ("batch", mine[1 + len(one.repeats) :]),
        ):
            if others:
                moved = sum(not _same(first, other) for other in others)
                parts[one.name, name] = (float(moved), float(len(others)))
        if score is not None and (agrees := score(*key, first.seen.record)) is not None:
            parts[one.name, "gold"] = (agrees, 1.0)
    return parts


def _same(one: Beside, other: Beside) -> bool:
    """Whether two runs came to the same record and status."""
    if one.seen.status != other.seen.status:
        return False
    if one.seen.packed == other.seen.packed:
        return True
    return json.dumps(one.seen.record, sort_keys=True) == json.dumps(other.seen.record, sort_keys=True)


def _row(one: Candidate, rates: SideRates, speed: Speed) -> ModelRow:
    return ModelRow(
        name=one.name,
        where=tuple(run.store.where for run in one.runs),
        shares={name: rates.rate((one.name, name)) for name in SHARES},
        amounts={name: rates.mean((one.name, name)) for name in AMOUNTS},
        speed=speed,
    )


def _speed(run: Browsed, valid: Rate, wanted: Wanted) -> Speed:
    cost = _cost(run, wanted)
    tokens = sum(tally.output_tokens for tally in run.tallies().values())
    seconds = None if cost.seconds is None else cost.seconds - wanted.start_seconds
    if seconds is None or seconds <= 0:
        return Speed(None, Gap(None, None, None), money=False)
    money = bool(wanted.per_gpu_hour and cost.gpus)
    spent = seconds * (cost.engines or 1)
    if money:
        spent = seconds / 3600 * float(cost.gpus or 0) * float(wanted.per_gpu_hour or 0)
    ends = [
        spent / (share * run.manifest.documents) if share else None for share in (valid.value, valid.high, valid.low)
    ]
    return Speed(tokens / seconds if tokens else None, Gap(*ends), money)


def _cost(run: Browsed, wanted: Wanted) -> Cost:
    try:
        job = recorded_job(run.store)[0]
    except OutputError:  # of a run whose run.json is gone only the time is known
        job = None
    return cost_of(run.manifest, job, wanted.per_gpu_hour)


def _notes(candidates: Sequence[Candidate], found: Together, score: GoldScore | None) -> Iterator[str]:
    """What a reader must know before believing the rest."""
    if found.apart:
        yield f"{found.apart} rows are of documents that are not in all runs, or not alone under their id: left out."
    if found.unread:
        yield f"{found.unread} documents were not read."
    if len(found.documents) < FEW:
        yield f"There are {len(found.documents)} documents: hardly any difference can be shown by so few."
    if score is not None and (invalid := score.counts["invalid"]):
        yield f"{invalid} times gold was not used, since its schema refuses it."
    if score is not None and not score.counts["scored"]:
        yield "No document of all runs has gold that can be used. Do the ids agree?"
    if alone := [one.name for one in candidates if not one.repeats]:
        yield f"Not run again, so nobody knows how stable it is: {', '.join(alone)}."
