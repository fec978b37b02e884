"""Counts: what an endpoint's process answered since it started, for its metrics. Nothing here changes an answer."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter
from collections.abc import Mapping

from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.labels import INLINE, SchemaLabels
from pipeline.observe.metrics.numbers import NO_SPEEDS, Numbers, numbers_of
from pipeline.observe.metrics.text import text_of
from pipeline.observe.tally import Tally
from pipeline.records import Outcome
from pipeline.runtime.ray_metrics import EXPORT_SECONDS, RayMetrics
from pipeline.schema.plan import DecodingPlan

_LOG = logging.getLogger(__name__)


class Counts:
    """Belongs to one event loop. `plans` are those of the registered schemas; all that come with requests share one
    label, and nothing of them is in another."""

    def __init__(self, job: str, plans: Mapping[str, DecodingPlan]) -> None:
        self._job = job
        self._labels = SchemaLabels.of_run(
            dict.fromkeys(plans, 0), {name: plan.schema_digest for name, plan in plans.items()}
        )
        self._tallies: dict[str, Tally] = {}
        self._http: Counter[int] = Counter()
        self._told = False

    def outcome(self, outcome: Outcome, plan: DecodingPlan, *, inline: bool) -> None:
        """Count an outcome under this plan."""
        try:
            tally, label = Tally(), INLINE if inline else self._labels.of(plan.name)
            if inline:  # its places are a stranger's words
                tally.add(dataclasses.replace(outcome, schema=INLINE, clipped=()))
            else:
                tally.add(outcome, plan)
            self._tallies.setdefault(label, Tally()).merge(tally)
        except Exception as error:  # an answer is worth more than its count
            self._trouble(error)

    def answer(self, http: int, documents: int = 1) -> None:
        """Count answers about documents by their HTTP code."""
        self._http[http] += documents

    def numbers(self) -> Numbers:
        """What was counted so far."""
        return dataclasses.replace(numbers_of(self._job, self._labels, self._tallies, NO_SPEEDS), http=self._http)

    def text(self) -> str:
        """The same as Prometheus reads it."""
        return text_of(families_of(self.numbers()))

    async def export(self) -> None:
        """Keep Ray's metrics up to date, for ever."""
        metrics = RayMetrics()
        while True:
            try:
                metrics.export(families_of(self.numbers()))
            except Exception as error:
                self._trouble(error)
            await asyncio.sleep(EXPORT_SECONDS)

    def _trouble(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            _LOG.warning("the endpoint's metrics are not up to date: %r", error)
