"""The rate of a job in its middle, between a fifth and four fifths of its documents: starting and ending count for
neither documents per second nor CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.processes import Watch
from pipeline.flow import run
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally

FIRST, LAST = 0.2, 0.8


def middle_of(job: JobConfig, documents: int, beside: Callable[[str, object], object] | None = None) -> dict[str, Any]:
    """Run a job of so many documents: its rates, its whole time in seconds, and its manifest's totals as `totals`.
    `beside` also hears what the run's observer hears."""
    seen: list[tuple[float, int, float]] = []

    def observe(event: str, value: object) -> None:
        if beside is not None:
            beside(event, value)
        if event == "progress" and isinstance(value, Tally):
            seen.append((time.monotonic(), value.documents, watch.total()))

    watch, began = Watch().start(), time.monotonic()
    manifest = run(job, observe)
    whole = time.monotonic() - began
    watch.stop()
    if manifest.documents != documents:
        raise SystemExit(f"{manifest.documents} of {documents} documents came out")
    middle = [one for one in seen if FIRST * documents <= one[1] <= LAST * documents]
    seconds, done, cpu = (last - first for first, last in zip(middle[0], middle[-1], strict=True))
    return {
        "documents": documents,
        "whole_seconds": round(whole, 2),
        "middle": {"seconds": round(seconds, 2), "documents": done},
        "documents_per_second": round(done / seconds, 2),
        "cpu_milliseconds_per_document": round(1000 * cpu / done, 2),
        "totals": manifest.totals,
    }
