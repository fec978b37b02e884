"""`metrics.prom`: the metrics of a committed run as a text that Prometheus reads, from its commit records.

It is written before the manifest that names it. So it is there when a run is committed, and made again by whoever
commits it after a crash in between.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping
from typing import Any

from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.labels import SchemaLabels
from pipeline.observe.metrics.numbers import Info, RunState, Speeds, by_label, numbers_of
from pipeline.observe.metrics.text import text_of
from pipeline.records import Manifest
from pipeline.runtime.output.gather import Gathered
from pipeline.runtime.output.run_record import read_run_record
from pipeline.runtime.store import Store

METRICS = "metrics.prom"
MANIFEST = "manifest.json"
_LOG = logging.getLogger(__name__)


def metrics_text(
    manifest: Manifest, gathered: Gathered, documents: Mapping[str, int], speeds: Speeds, job: Mapping[str, Any]
) -> str:
    """The text of a run that is to be committed. `documents` counts the input's by schema, `job` is that of
    `run.json`."""
    info = Info(
        manifest.versions.get("gristmill", ""),
        manifest.versions.get("ray", ""),
        str(job.get("engine", {}).get("engine", "")),
        str(job.get("placement", {}).get("kind", "")),
    )
    state = RunState(
        up=0,
        elapsed_seconds=_seconds(manifest.started, manifest.committed),
        documents=manifest.documents,
        units=len(gathered.units),
        units_done=len(gathered.units),
        poison_documents=gathered.totals.codes["poison"],
        info=info,
    )
    labels = SchemaLabels.of_run(documents, manifest.schemas)
    tallies = by_label(labels, gathered.by_schema)
    return text_of(families_of(numbers_of(manifest.job, labels, tallies, speeds, state)))


def write_metrics(
    store: Store, manifest: Manifest, gathered: Gathered, documents: Mapping[str, int], speeds: Speeds
) -> dict[str, str]:
    """Write the file, and say in the manifest's totals that it is there, or why not: a run is worth more than its
    metrics."""
    try:
        if store.size(MANIFEST) is not None:  # whoever committed it meanwhile wrote the file
            return {"file": METRICS}
        job = (read_run_record(store) or {}).get("job", {})
        store.put(METRICS, metrics_text(manifest, gathered, documents, speeds, job).encode())
    except Exception as error:
        _LOG.warning("%s/%s could not be written (%r); the run is committed without it", store.where, METRICS, error)
        return {"failed": repr(error)[:200]}
    return {"file": METRICS}


def _seconds(started: str, ended: str) -> float:
    """Between two times of `run_record.now`."""
    return (datetime.datetime.fromisoformat(ended) - datetime.datetime.fromisoformat(started)).total_seconds()
