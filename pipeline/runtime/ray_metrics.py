"""The metrics of a process on Ray's own endpoint: `ray.util.metrics`, which its nodes' agents export with `ray_` before
each name.

All are gauges there, set to what was counted so far, under the very names that the catalogue has: `rate` and
`histogram_quantile` read them alike. Ray's counters cannot be 0, so that the first of something would not be seen as an
increase, and stay in the agent when their process is gone; its histograms keep no sum. Gauges that are not set again
are dropped after two of its intervals (10 s each), so whoever exports does that at least every `EXPORT_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.observe.buckets import Histogram
from pipeline.observe.metrics.catalogue import METRICS, Metric
from pipeline.observe.metrics.families import Families, Series

EXPORT_SECONDS = 5.0


class RayMetrics:
    """Exports families from this process, which Ray knows by then."""

    def __init__(self) -> None:
        self._gauges: dict[str, Any] = {}

    def export(self, families: Families) -> None:
        """Set every series."""
        for name, series in families.items():
            metric = METRICS[name]
            for one in series:
                for suffix, labels, value in _parts(metric, one):
                    self._gauge(metric, suffix, tuple(labels)).set(value, labels)

    def _gauge(self, metric: Metric, suffix: str, labels: tuple[str, ...]) -> Any:
        from ray.util.metrics import Gauge

        name = metric.name + suffix
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, metric.help, labels)
        return self._gauges[name]


def _parts(metric: Metric, series: Series) -> Iterator[tuple[str, dict[str, str], float]]:
    labels = dict(zip(metric.labels, series.labels, strict=True))
    value = series.value
    if not isinstance(value, Histogram):
        yield "", labels, value
        return
    for bound, count in value.buckets:
        yield "_bucket", {**labels, "le": bound}, count
    yield "_count", labels, value.count
    yield "_sum", labels, value.sum
