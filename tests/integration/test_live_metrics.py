"""A run's metrics while it is under way: from its driver, through Ray, and in the file of the committed run."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline import flow
from pipeline.job import JobConfig
from pipeline.observe.metrics.catalogue import METRICS
from pipeline.observe.metrics.server import MetricsServer
from pipeline.records import Manifest

ROOT = Path(__file__).resolve().parents[2]
Found = dict[tuple[str, frozenset[tuple[str, str]]], float]
RAYS_OWN = re.compile(r"[A-Z]\w*|otel_\w+")
"""Labels that Ray and its exporter add."""


def series_of(text: str, prefix: str = "") -> Found:
    """Every series of ours by its name, without `prefix`, and labels."""
    found: Found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(f"{prefix}gristmill_"):
                labels = frozenset((k, v) for k, v in sample.labels.items() if not RAYS_OWN.fullmatch(k))
                found[sample.name.removeprefix(prefix), labels] = sample.value
    return found


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


class Watched:
    """A run's observer that reads the driver's metrics whenever they change, and Ray's at the end."""

    def __init__(self) -> None:
        self.server = MetricsServer("0")
        self.pages: list[Found] = []
        self.warned: list[object] = []

    def __call__(self, event: str, value: Any) -> None:
        if event == "numbers":
            self.server.show(value)
            self.pages.append(series_of(read(self.server.url)))
        if event == "warned":
            self.warned.append(value)


def ray_series() -> Found:
    import ray

    node = ray.nodes()[0]
    return series_of(read(f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"), "ray_")


@pytest.fixture(scope="module")
def run(
    ray_cluster: None, documents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Watched, JobConfig, Manifest]]:
    """A run of two schemas, and of rows that name none that there is."""
    place = tmp_path_factory.mktemp("watched")
    strange = [{"id": f"strange-{n}", "schema": f"of row {n}@1", "text": "a"} for n in range(5)]
    rows = [row for row in documents if row["schema"] != "advisory@1"][:80]
    lines = "".join(json.dumps(row) + "\n" for row in [*rows, *strange])
    (place / "in.jsonl").write_text(lines, encoding="utf-8")
    job = JobConfig.model_validate(
        {
            "name": "watched",
            "input": {"path": str(place / "in.jsonl"), "schema_column": "schema"},
            "output": str(place / "out"),
            "schemas": str(ROOT / "schemas"),
            "engine": {"engine": "sampler", "seed": 3, "token_seconds": 0.005},
            "sampling": {"max_tokens": 300},
            "audit": {"fraction": 0.5},
        }
    )
    watched = Watched()
    yield watched, job, flow.run(job, watched)
    watched.server.close()


def test_the_driver_ray_and_the_file_tell_the_same_numbers(run: tuple[Watched, JobConfig, Manifest]) -> None:
    watched, job, manifest = run
    assert watched.warned == []
    file = Path(job.output) / f"run={manifest.run_id}" / manifest.totals["metrics"]["file"]
    kept, last = series_of(file.read_text(encoding="utf-8")), watched.pages[-1]

    def documents(found: Found) -> dict[tuple[str, str], float]:
        return {
            (dict(labels)["schema"], dict(labels)["status"]): value
            for (name, labels), value in found.items()
            if name == "gristmill_documents_total" and value
        }

    assert {schema for schema, _ in documents(kept)} == {"package@1", "receipt@1", "unknown"}
    assert sum(documents(kept).values()) == manifest.documents == 85
    assert documents(kept)["unknown", "rejected"] == 5
    for (name, labels), value in kept.items():
        if dict(labels).get("schema"):
            assert last.get((name, labels)) == value, (name, labels)
    assert kept["gristmill_run_up", frozenset({("job", "watched")})] == 0
    assert last["gristmill_run_up", frozenset({("job", "watched")})] == 1
    units = last["gristmill_run_units", frozenset({("job", "watched")})]
    assert last["gristmill_run_units_done", frozenset({("job", "watched")})] == units

    deadline = time.monotonic() + 40
    while not (found := {key: value for key, value in ray_series().items() if ("job", "watched") in key[1]}):
        assert time.monotonic() < deadline, "Ray shows none of the run's metrics"
        time.sleep(1)
    assert found.keys() <= last.keys() and len(found) > 100
    for key, value in found.items():
        if dict(key[1]).get("schema"):
            assert any(page.get(key) == value for page in watched.pages), key


def test_counters_never_go_backwards_and_every_series_is_in_the_catalogue(
    run: tuple[Watched, JobConfig, Manifest],
) -> None:
    watched, _, _ = run
    assert len(watched.pages) >= 2
    suffixes = re.compile(r"_(bucket|sum|count)$")
    for before, after in zip(watched.pages, watched.pages[1:], strict=False):
        for key, value in before.items():
            if METRICS.get(key[0], METRICS["gristmill_run_up"]).type == "counter":
                assert after[key] >= value, key
    for name, labels in watched.pages[-1]:
        metric = METRICS.get(name) or METRICS[suffixes.sub("", name)]
        assert {label for label, _ in labels} - {"le"} == set(metric.labels)
    assert "of row" not in json.dumps([sorted(map(str, labels)) for _, labels in watched.pages[-1]])
