"""This pipeline, as `gristmill run` runs it: JSONL in, Parquet and manifest out, through Ray Data.

Only `extract` is wrapped, to know when things happen: the first documents of the input are the warm-up, and the
others are held back, at the door of the actor, until the last of the warm-up has its outcome.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.documents import SCHEMA, SCHEMAS, write_jsonl
from bench.systems.measured import Measured, steady_rate
from bench.workload import BACKEND, CACHE_GIB, ENGINE_SETTINGS, MAX_TOKENS, Workload
from pipeline.compile.plans import plans_of
from pipeline.engines import Engine
from pipeline.flow import extract
from pipeline.job import ExtractConfig, JobConfig
from pipeline.records import Document, Manifest, Outcome
from pipeline.runtime.input import scan
from pipeline.runtime.output.commit import open_run
from pipeline.runtime.output.gather import COMMITS
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import open_store
from pipeline.runtime.stream import stream
from pipeline.schema.plan import DecodingPlan

OPENED, FINISHED = "opened", "finished"
UNIT_DOCUMENTS = 128


def main(path: str) -> None:
    """Measure one round. The clock stops when the last unit is written, flushed and committed."""
    work = Workload.load(path)
    with tempfile.TemporaryDirectory(prefix="bench-ours-") as name:
        folder = Path(name)
        write_jsonl(folder / "input.jsonl", [(item.id, item.text) for item in [*work.warm, *work.items]])
        directory, manifest = _run(_job(work, folder), work, folder)
        committed = max(file.stat().st_mtime for file in (directory / COMMITS).glob("*.json"))
        ready = float((folder / OPENED).read_text())
        _report(work, folder, _attempts(directory, manifest, work), ready, committed)


def _report(work: Workload, folder: Path, rows: list[dict[str, Any]], ready: float, committed: float) -> None:
    finished = [float(line) for line in (folder / FINISHED).read_text().split()]
    attempts = [row["attempts"][0] for row in rows if row["attempts"]]
    Measured(
        system="ours",
        documents=len(rows),
        start_seconds=ready - work.started,
        total_seconds=committed - ready,
        steady_rate=steady_rate(finished),
        prompt_tokens=sum(attempt["prompt_tokens"] for attempt in attempts),
        output_tokens=sum(attempt["output_tokens"] for attempt in attempts),
        texts={row["document_id"]: row["attempts"][0]["raw_text"] for row in rows if row["attempts"]},
        extra={
            "seconds_after_last_outcome": committed - max(finished),
            "cached_tokens": sum(attempt["cached_tokens"] for attempt in attempts),
            **{f"status_{status}": sum(row["status"] == status for row in rows) for status in ("valid", "degraded")},
        },
    ).print()


def _job(work: Workload, folder: Path) -> JobConfig:
    settings = dict(ENGINE_SETTINGS)
    structured = settings.pop("structured_outputs_config")
    known = {key: settings.pop(key) for key in ("dtype", "max_model_len", "max_num_seqs")}
    engine = {
        "engine": "vllm",
        "model": work.model,
        "backend": structured["backend"],
        "compact_json": structured["disable_any_whitespace"],
        "engine_args": settings,
        "environment": {"VLLM_CPU_KVCACHE_SPACE": CACHE_GIB},
        **known,
    }
    return JobConfig.model_validate(
        {
            "name": "bench-overhead",
            "input": {"path": str(folder / "input.jsonl"), "schema": SCHEMA},
            "output": str(folder / "out"),
            "schemas": str(SCHEMAS),
            "engine": engine,
            "sampling": {"max_tokens": MAX_TOKENS},
            "retry": {"max_attempts": 1, "max_engine_failures": 0},
            # A pilot would wait for documents that wait for the warm-up, which waits for the pilot.
            "pilot": {"documents": 0},
            "stop_if": {"truncation": None, "first_pass": None, "rejection": None},
            "placement": {"unit_documents": UNIT_DOCUMENTS},
        }
    )


def _run(job: JobConfig, work: Workload, folder: Path) -> tuple[Path, Manifest]:
    """`pipeline.flow.run` with the timed `extract`."""
    found = scan(job.input, job.placement.unit_documents)
    plans = plans_of(job, filter(None, found.schema_counts)).by_name
    if plans[SCHEMA].transport != work.transport or getattr(job.engine, "backend", "") != BACKEND:
        raise SystemExit("the pipeline's constraint is not the one that the others are measured with")
    identity = identity_of(job, found, plans)
    this_run = open_run(job, identity, open_store(job.output))
    warm = frozenset(item.id for item in work.warm)
    timed = functools.partial(_timed_extract, str(folder), warm)
    setup = Setup(job, plans, this_run.store, identity.run_id, None, timed)
    for _ in stream(found.units, setup):
        pass
    manifest = this_run.commit(found, {name: plan.schema_digest for name, plan in plans.items()})
    return Path(this_run.where), manifest


def _attempts(directory: Path, manifest: Manifest, work: Workload) -> list[dict[str, Any]]:
    """The rows that readers of the output would trust, but for the warm-up's."""
    import pyarrow.parquet as pq

    warm = {item.id for item in work.warm}
    rows = []
    for file in manifest.files:
        table = pq.ParquetFile(directory / file["path"]).read(columns=["document_id", "attempts"])
        rows += [{**row, "status": file["status"]} for row in table.to_pylist() if row["document_id"] not in warm]
    return rows


class _Gate:
    """Shut until the warm-up is through. One per actor process, and the benchmark has one actor."""

    def __init__(self, warm: int) -> None:
        self.left = warm
        self.opened = asyncio.Event()


_GATES: dict[str, _Gate] = {}


async def _timed_extract(
    folder: str,
    warm: frozenset[str],
    *arguments: Any,
) -> Outcome:
    """`extract`, told apart by document: the warm-up opens the gate, the others wait for it and note their end."""
    document: Document
    plan: DecodingPlan
    engine: Engine
    config: ExtractConfig
    document, plan, engine, config = arguments
    gate = _GATES.setdefault(folder, _Gate(len(warm)))
    if document.id in warm:
        outcome = await extract(document, plan, engine, config)
        gate.left -= 1
        if gate.left == 0:
            Path(folder, OPENED).write_text(str(time.time()))
            gate.opened.set()
        return outcome
    await gate.opened.wait()
    outcome = await extract(document, plan, engine, config)
    with Path(folder, FINISHED).open("a") as file:
        file.write(f"{time.time()}\n")
    return outcome


if __name__ == "__main__":
    from bench.systems import ours

    ours.main(sys.argv[1])  # not this module under the name __main__, which actors could not import
