"""What must be true when a story has ended, whatever happened in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.runtime.supervise.sick import is_answer
from tests.crash.checker import committed
from tests.simulation.material import asks, fate

if TYPE_CHECKING:
    from tests.simulation.world import World


def complaints_of(world: World) -> Iterator[str]:
    """All that is wrong."""
    run = {key.partition("/")[2]: data for key, data in world.objects.content.items() if key.startswith("run=")}
    if "manifest.json" not in run:
        yield "there is no manifest"
        return
    yield from committed(run, world.material.rows)
    rows = dict(_rows(run))
    yield from _contents(world, rows)
    yield from _poison(world, rows)
    yield from _work_done_twice(world)


def _rows(run: Mapping[str, bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """By source."""
    for file in json.loads(run["manifest.json"])["files"]:
        if file["path"] not in run:  # told by the checker
            continue
        parquet = pq.ParquetFile(pa.BufferReader(run[file["path"]]))
        words = [] if file["status"] == "rejected" else ["record.word"]
        table = parquet.read(columns=["source", "problems.list.element.code", *words], use_threads=False)
        for row in table.to_pylist():
            codes = {one["code"] for one in row["problems"]}
            yield row["source"], {"status": file["status"], "codes": codes, "record": row.get("record")}


def _contents(world: World, rows: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Each document has the outcome that is its own."""
    for document in world.material.documents.values():
        row = rows.get(document.source, {"status": "", "codes": set()})
        if "poison" in row["codes"] or ("engine_abort" in row["codes"] and world.forecast.aborts):
            continue
        expected = fate(document.text) if asks(document) else "rejected"
        if row["status"] != expected:
            yield f"{document.source} is {row['status']}, not {expected}: {row['codes']}"
        if expected != "rejected" and row.get("record") != {"word": document.text}:
            yield f"{document.source} has the record {row.get('record')}"


def _poison(world: World, rows: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """All poison is found; another document is taken for it only if its process died twice, once of something else."""
    deadly = world.poison | world.sticky
    for key, document in world.material.documents.items():
        found = "poison" in rows.get(document.source, {"codes": ()})["codes"]
        if document.text in deadly and not found:
            yield f"{document.source} is poison and was not found to be"
        drivers = range(len(world.drivers))
        if found and not any(world.deaths[driver, key] > 1 for driver in drivers):
            yield f"{document.source} is taken for poison, and was never in two deaths"
        if found and document.text not in deadly and not any(world.blamed[driver, key] for driver in drivers):
            yield f"{document.source} is taken for poison, and never was in a process that died of anything else"


def _work_done_twice(world: World) -> Iterator[str]:
    """What was finished long enough before its process died, or in good number, is not extracted again."""
    wire = world.forecast.wire.seconds
    if not world.forecast.reliable:
        return
    patience = world.forecast.save_seconds + 2.0 + 40 * wire
    lost: Counter[Any] = Counter()
    first: dict[str, tuple[Any, float]] = {}
    for source, process, begun, through, outcome in sorted(world.history, key=lambda one: one[3]):
        if source in first:
            before, when = first[source]
            safe = when + patience
            if begun > safe and before.died_at > safe:
                yield f"{source}, through at {when:.1f} s, is saved by {safe:.1f} s; begun again at {begun:.1f} s"
            if begun > before.died_at:
                lost[before] += 1
        if is_answer(outcome):
            first[source] = process, through
    most = max(1, world.forecast.save_documents - world.forecast.in_flight) + world.forecast.in_flight
    for process, count in lost.items():
        if count > most and wire < 0.1:
            yield f"{count} documents were lost with {process.name}, more than {most}"
