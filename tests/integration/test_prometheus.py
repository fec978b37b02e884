"""A real Prometheus, configured as the repository says, scrapes a job that runs: from its port and from Ray."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from pipeline.flow import run
from pipeline.observe.metrics.server import serving
from pipeline.records import STATUSES, Manifest
from tests.integration.conftest import MakeJob

pytestmark = [
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="prometheus is not installed (Debian: the package prometheus)"
    ),
]

MONITORING = Path(__file__).resolve().parents[2] / "monitoring"
SCHEMA = "package@1"
PATIENCE = 60.0
"""Ray's agent hears of its processes' metrics every 10 s."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Prometheus:
    """One that has the repository's configuration, with addresses of this test, and is faster."""

    def __init__(self, folder: Path, run_port: int) -> None:
        self.run = f"127.0.0.1:{run_port}"
        self.ray = ray_agent()
        self._url = f"http://127.0.0.1:{free_port()}"
        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (rules,) = config["rule_files"]
        text = (MONITORING / rules).read_text(encoding="utf-8")
        (folder / "rules.yml").write_text(re.sub(r"(interval|for): \d+[sm]", r"\1: 1s", text), encoding="utf-8")
        config["rule_files"] = ["rules.yml"]
        of_run, of_ray = config["scrape_configs"]
        of_run["static_configs"] = [{"targets": [self.run]}]
        of_ray["file_sd_configs"] = [{"files": ["ray.json"]}]
        (folder / "ray.json").write_text(json.dumps([{"labels": {"job": "ray"}, "targets": [self.ray]}]))
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command += [f"--web.listen-address={self._url.removeprefix('http://')}", "--log.level=error"]
        self._process = subprocess.Popen(["prometheus", *command])

    def ask(self, query: str) -> list[dict[str, Any]]:
        """What an instant query finds."""
        answer = httpx.post(f"{self._url}/api/v1/query", data={"query": query}).json()
        assert answer["status"] == "success", f"{query}: {answer}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def told(self, what: str) -> Any:
        """`rules` or `alerts`."""
        return httpx.get(f"{self._url}/api/v1/{what}").json()["data"]

    def counts(self, instance: str) -> dict[str, int]:
        """Documents by status, as they were last scraped."""
        query = (
            f'sum by (status) (last_over_time(gristmill_documents_total{{job="watched", instance="{instance}"}}[5m]))'
        )
        return {one["metric"]["status"]: int(float(one["value"][1])) for one in self.ask(query)}

    def ready(self) -> bool:
        try:
            return httpx.get(f"{self._url}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def ray_agent() -> str:
    import ray

    (node,) = [one for one in ray.nodes() if one["Alive"]]
    return f"{node['NodeManagerAddress']}:{node['MetricsExportPort']}"


def until(happened: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.25)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture
def prometheus(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    started = Prometheus(tmp_path, port)
    try:
        until(started.ready)
        yield started
    finally:
        started.close()


def watched(documents: list[dict[str, Any]], make_job: MakeJob, port: int, logs: Path, after: Any) -> Manifest:
    """Run a job, many of whose answers are cut; `after` is called while it is served. It takes several times as long as
    passes between two exports (5 s), so that the first sight of a counter is not the last."""
    rows = [row for row in documents if row["schema"] == SCHEMA][:120]
    engine = {"token_seconds": 0.025, "max_num_seqs": 8, "faults": [{"kind": "truncate", "share": 0.3}]}
    events = {"path": str(logs)}
    job = make_job(rows, "watched", engine=engine, placement={"unit_documents": 20}, events=events)
    told: list[str] = []
    with serving(f"127.0.0.1:{port}", told.append) as server:
        manifest = run(job, lambda name, value: server.show(value) if name == "numbers" else None)
        after(manifest)
    return manifest


def test_prometheus_sees_a_run_while_it_runs_and_its_alerts_fire(
    documents: list[dict[str, Any]], make_job: MakeJob, port: int, prometheus: Prometheus, tmp_path: Path
) -> None:
    def after(manifest: Manifest) -> None:
        counts = {status: manifest.counts.get(status, 0) for status in STATUSES}
        until(lambda: prometheus.counts(prometheus.run) == counts)
        until(lambda: set(prometheus.counts(prometheus.ray)) == set(STATUSES))
        until(lambda: firing(prometheus))

    manifest = watched(documents, make_job, port, tmp_path / "logs", after)
    (series,) = prometheus.ask(f'gristmill_run_up{{instance="{prometheus.run}"}}[5m]')
    assert {value for _, value in series["values"]} == {"1"}
    seen = {
        float(value)
        for one in prometheus.ask(f'gristmill_documents_total{{instance="{prometheus.run}", status="valid"}}[5m]')
        for _, value in one["values"]
    }
    assert len(seen) > 1, "it was scraped only at its end"
    names = {one["metric"]["__name__"] for one in prometheus.ask('{__name__=~".*gristmill.*", instance!=""}')}
    assert not [name for name in names if not name.startswith("gristmill_")]
    units = prometheus.ask(f'last_over_time(gristmill_run_units{{instance="{prometheus.run}"}}[5m])')
    assert {one["metric"]["job"] for one in units} == {"watched"}
    through_ray = prometheus.ask(f'gristmill_documents_total{{instance="{prometheus.ray}"}}[5m]')
    own = {"__name__", "job", "schema", "status", "instance"}
    assert {label for one in through_ray for label in one["metric"]} == own | {"WorkerId"}
    assert_rules_and_boards_work(prometheus)
    assert_the_log_tells_the_same(manifest, tmp_path / "logs")


def assert_the_log_tells_the_same(manifest: Manifest, logs: Path) -> None:
    told = [json.loads(line) for file in logs.glob("*.jsonl") for line in file.read_text("ascii").splitlines()]
    for status in ("degraded", "rejected"):
        documents = [line["document"] for line in told if line["event"] == f"document_{status}"]
        assert len(documents) == len(set(documents)) == manifest.counts[status]
    ends = {line["event"] for line in told if line["event"].startswith(("run_", "engine_"))}
    assert ends == {"run_started", "engine_started", "run_committed"}
    assert {line["process"].partition("-")[0] for line in told} == {"driver", "extract"}


def firing(prometheus: Prometheus) -> list[dict[str, Any]]:
    """Whether Prometheus tells of the cut answers."""
    alerts = prometheus.told("alerts")["alerts"]
    return [
        one
        for one in alerts
        if one["state"] == "firing"
        and one["labels"]["alertname"] == "GristmillTruncationJump"
        and (one["labels"]["job"], one["labels"]["schema"]) == ("watched", SCHEMA)
    ]


def assert_rules_and_boards_work(prometheus: Prometheus) -> None:
    """Each rule was evaluated without an error, and each panel finds something, but for what does not happen here."""
    for group in prometheus.told("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule
    board = json.loads((MONITORING / "grafana/dashboards/gristmill.json").read_text(encoding="utf-8"))
    empty = set()
    for panel in board["panels"]:
        queries = [one["expr"] for one in panel.get("targets", ())]
        filled = [
            one.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$schema", ".*") for one in queries
        ]
        found = [prometheus.ask(one) for one in filled]
        if queries and not any(found):
            empty.add(panel["title"])
    assert empty <= {
        "Answers of the endpoint by HTTP code",
        "Audits",
        "Clipped mass a token: structure and blanks",
        "Clipped mass a token: values",
        "Resolved by answer and status",
        "Resolved, of retried documents",
        "Violations where the grammar leaves it to the validator",
    }
