"""The text that Prometheus reads (exposition format 0.0.4), of families."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pipeline.observe.buckets import Histogram
from pipeline.observe.metrics.catalogue import METRICS, Metric
from pipeline.observe.metrics.families import Families, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text_of(families: Families) -> str:
    """The exposition of these families, in the order of the catalogue."""
    from prometheus_client import generate_latest

    return generate_latest(registry_of(lambda: families)).decode("utf-8")


def registry_of(families: Callable[[], Families]) -> CollectorRegistry:
    """A registry of prometheus_client that asks for the families each time it is read, and holds nothing else."""
    from prometheus_client import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(families))
    return registry


class _Collector:
    """What prometheus_client asks for families. Without `describe` it is not read when it is registered."""

    def __init__(self, families: Callable[[], Families]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        for name, series in self._families().items():
            yield _family(METRICS[name], series)


def _family(metric: Metric, series: Sequence[Series]) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    if metric.type == "histogram":
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for one in series:
            if isinstance(one.value, Histogram):
                family.add_metric(one.labels, list(one.value.buckets), one.value.sum)
        return family
    made = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
    plain = made(metric.family, metric.help, labels=metric.labels)
    for one in series:
        if not isinstance(one.value, Histogram):
            plain.add_metric(one.labels, one.value)
    return plain
