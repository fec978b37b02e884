"""The closed set of metrics: what each is called, counts and means. docs/metrics.md is written from it.

The table is data, `catalogue.toml` beside this file. Names and labels are promised: dashboards and alert rules are
built on them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

Group = Literal["documents", "answers", "quality", "cost", "schemas", "run", "endpoint"]
Kind = Literal["counter", "gauge", "histogram"]

OF_JOB: frozenset[Group] = frozenset({"run", "endpoint"})
"""Groups without the label `schema`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """`labels` are the label names in order, `job` first, then `schema` where the metric has it.

    `help` is the metric's text in an exposition. The page also says what a `healthy` value is, what an `anomaly`
    indicates, and what `action` to take.
    """

    name: str
    group: Group
    type: Kind
    labels: tuple[str, ...]
    help: str
    healthy: str
    anomaly: str
    action: str

    @property
    def family(self) -> str:
        """The name without the suffix that expositions give a counter."""
        return self.name.removesuffix("_total")


def _metric(name: str, group: Group, labels: list[str], **rest: str) -> Metric:
    common = ("job",) if group in OF_JOB else ("job", "schema")
    return Metric(name=name, group=group, labels=(*common, *labels), **rest)  # type: ignore[arg-type]


METRICS: dict[str, Metric] = {
    name: _metric(name, **row)
    for name, row in tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text("utf-8")).items()
}
