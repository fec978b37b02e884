"""What it costs to observe: the same job with everything on and with everything off, in pairs.

    on     audits of 2 % of the documents, events of all processes as JSON lines, /metrics asked for once a second
    off    none of them; tallies, and the export to Ray's own metrics, are part of every run

The sampler without a time per token shows CPU, with the machine's cores as the bottleneck; vLLM shows what audits take
from a real engine. Rates are of the middle of a job (`bench.middle`). Who goes first alternates.

`python -m bench.observing --json bench/results/observing.json`; `--documents 300 --pairs 1 --case sampler` shows that
it runs
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.documents import ROOT, SCHEMA, SCHEMAS, receipts, write_jsonl
from bench.intervals import paired_ratio
from bench.middle import middle_of
from pipeline.job import ExtractConfig, JobConfig
from pipeline.jobfile import load_engine
from pipeline.jobplacement import AuditConfig
from pipeline.observe.metrics.server import MetricsServer
from pipeline.records import Document
from pipeline.steps.clipped import audited

AUDITED = 0.02
TARGET = 0.97
"""The interval of the ratio of documents per second, on over off, is to hold at least this."""


@dataclass(frozen=True, slots=True)
class Case:
    """An engine config, how many documents a job has, and how many pairs there are."""

    name: str
    engine: dict[str, Any]
    documents: int
    pairs: int


CASES = (
    Case("sampler", {"engine": "sampler", "backend": "guidance", "max_num_seqs": 32, "seed": 7}, 2400, 5),
    Case("vllm", load_engine(ROOT / "serve_configs/cpu_embedded_guidance.yaml").model_dump(), 60, 3),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.observing", description=__doc__)
    parser.add_argument("--documents", type=int, help="of each job; default: as the case says")
    parser.add_argument("--pairs", type=int, help="default: as the case says")
    parser.add_argument("--case", choices=[case.name for case in CASES], action="append", help="only this one")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    described, load = machine.describe(), round(os.getloadavg()[0], 2)
    print(machine.sentence(described), flush=True)
    found = [
        _compared(case, chosen.documents or case.documents, chosen.pairs or case.pairs)
        for case in CASES
        if chosen.case is None or case.name in chosen.case
    ]
    result = {
        "benchmark": "observing",
        "machine": described,
        "date": time.strftime("%Y-%m-%d"),
        "load_before": load,
        "settings": {"audited": AUDITED, "target": TARGET},
        "cases": found,
    }
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _compared(case: Case, documents: int, pairs: int) -> dict[str, Any]:
    runs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for pair in range(pairs):
        for on in (True, False) if pair % 2 else (False, True):
            one = _job(case, documents, on=on)
            print(json.dumps({"case": case.name, "pair": pair, "on": on, **one}), flush=True)
            runs[on].append(one)
    rates = {on: [one["documents_per_second"] for one in rows] for on, rows in runs.items()}
    cpu = {on: median(one["cpu_milliseconds_per_document"] for one in rows) for on, rows in runs.items()}
    ratio = paired_ratio(rates[True], rates[False])
    print(f"{case.name}: on/off {ratio}; CPU ms a document {cpu[True]:.2f} on, {cpu[False]:.2f} off", flush=True)
    return {
        "case": case.name,
        "documents": documents,
        "documents_per_second_on_over_off": {"median": ratio.median, "low": ratio.low, "high": ratio.high},
        "target_is_held": ratio.high >= TARGET,
        "cpu_milliseconds_per_document": {"on": cpu[True], "off": cpu[False]},
        "on": runs[True],
        "off": runs[False],
    }


def _job(case: Case, documents: int, *, on: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-observing-") as name:
        folder = Path(name)
        job = _job_of(case, documents, folder, on=on)
        with _scraped() if on else contextlib.nullcontext() as heard:
            found = middle_of(job, documents, heard)
        totals = found.pop("totals")
        lines = sum(len(file.read_bytes().splitlines()) for file in folder.glob("events/**/*") if file.is_file())
    return {**found, "audits": dict(totals.get("audits", {})), "event_lines": lines}


def _job_of(case: Case, documents: int, folder: Path, *, on: bool) -> JobConfig:
    given = receipts(documents)
    write_jsonl(folder / "input.jsonl", [(one.id, one.text) for one in given])
    audit = {"fraction": AUDITED, "seed": _seed([one.id for one in given])}
    observed = {"audit": audit, "events": {"path": str(folder / "events")}} if on else {}
    return JobConfig.model_validate(
        {
            "name": f"observing-{case.name}",
            "schemas": str(SCHEMAS),
            "engine": case.engine,
            "sampling": {"max_tokens": 256},
            "retry": {"max_attempts": 1},
            "input": {"path": str(folder / "input.jsonl"), "schema": SCHEMA},
            "output": str(folder / "out"),
            "placement": {"kind": "local", "unit_documents": max(16, documents // 20)},
            "pilot": {"documents": 0},
            "stop_if": {"truncation": None, "first_pass": None, "rejection": None},
            **observed,
        }
    )


def _seed(ids: Sequence[str]) -> int:
    """The first seed by which as many documents of a job's middle are audited as `AUDITED` says, at least one: of few
    documents, most seeds choose none, and then nothing is measured."""
    inside = [Document(one, "", "", SCHEMA) for one in ids[len(ids) * 3 // 10 : len(ids) * 7 // 10]]
    wanted = math.ceil(AUDITED * len(inside))
    for seed in itertools.count():
        config = ExtractConfig(audit=AuditConfig(fraction=AUDITED, seed=seed))
        if sum(bool(audited(one, config)) for one in inside) == wanted:
            return seed
    raise AssertionError("seeds do not end")


@contextmanager
def _scraped() -> Iterator[Callable[[str, Any], None]]:
    """A server of metrics with somebody who asks it once a second; what is given takes a run's events."""
    server, done = MetricsServer("0"), threading.Event()

    def scrape() -> None:
        while not done.wait(1.0):
            urllib.request.urlopen(server.url, timeout=10).read()

    asking = threading.Thread(target=scrape, name="scrape", daemon=True)
    asking.start()
    try:
        yield lambda event, value: server.show(value) if event == "numbers" else None
    finally:
        done.set()
        asking.join()
        server.close()


if __name__ == "__main__":
    main()
