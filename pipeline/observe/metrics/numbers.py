"""Numbers: what a run or an endpoint counted up to a moment. The families of `families.py` are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.observe.metrics.labels import SchemaLabels
from pipeline.observe.tally import Tally

Speeds = Mapping[str, Mapping[str, float]]
"""What the trials of schemas measured, in seconds: `compile`, and percentiles of a token's mask as `50` and `99`."""
NO_SPEEDS: Speeds = {}


@dataclass(frozen=True, slots=True)
class Info:
    """What runs: the labels of `gristmill_run_info` behind `job`, in order."""

    version: str
    ray: str
    engine: str
    placement: str


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run is as a whole. `idle_seconds`, `engine_deaths` and `stopped_schemas` are known while it is under way.

    `up` is 1 then, and 0 in a file. Times are seconds.
    """

    up: int
    elapsed_seconds: float
    documents: int
    units: int
    units_done: int
    poison_documents: int
    info: Info
    idle_seconds: float | None = None
    engine_deaths: int | None = None
    stopped_schemas: int | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """`schemas` has the tally of each label that `SchemaLabels` gives, `speeds` those of schemas with their own.

    `run` is None for an endpoint, which has `http`: answers about documents by HTTP code.
    """

    job: str
    schemas: Mapping[str, Tally]
    speeds: Speeds = field(default_factory=dict)
    run: RunState | None = None
    http: Mapping[int, int] | None = None


def by_label(labels: SchemaLabels, schemas: Mapping[str, Tally]) -> dict[str, Tally]:
    """Tallies by schema as tallies by label. A row may name `inline` or `other` as its schema: that is `unknown`."""
    found: dict[str, Tally] = {}
    for schema, one in schemas.items():
        found.setdefault(labels.of(schema), Tally()).merge(one)
    return found


def numbers_of(
    job: str, labels: SchemaLabels, tallies: Mapping[str, Tally], speeds: Speeds, run: RunState | None = None
) -> Numbers:
    """The numbers of tallies by label. Schemas with a label of their own are there although nothing was counted yet, so
    that the first of something is seen as an increase from 0."""
    found = {name: Tally() for name in labels.own} | dict(tallies)
    return Numbers(job, found, {name: speeds[name] for name in labels.own if name in speeds}, run)
