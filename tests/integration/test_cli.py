"""The command line as a user meets it: what it says, and what it exits with, when something is wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_job import GRISTMILL, Bench

from pipeline import cli, commands_run
from pipeline.flow import run
from tests.integration.conftest import MakeJob

ROOT = Path(__file__).resolve().parents[2]


def fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """Exit code and message of a command, run in this process (errors come before Ray starts)."""
    monkeypatch.setattr(sys, "argv", ["gristmill", *arguments])
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0), capsys.readouterr().err


def spoil(bench: Bench, how: str) -> None:
    job = bench.job
    if how == "unknown key":
        job["ouput"] = job.pop("output")
    elif how == "nested key":
        job["input"]["pathh"] = "x"
    elif how == "missing input":
        job["input"]["path"] = "nowhere.jsonl"
    elif how == "empty input":
        bench.write([])
    elif how == "bad parquet":
        (bench.folder / "in.parquet").write_bytes(b"PAR1 this is not parquet PAR1")
        job["input"]["path"] = "in.parquet"
    elif how == "wrong column":
        pq.write_table(pa.table({"id": ["a"], "body": ["text"]}), bench.folder / "in.parquet")
        job["input"]["path"] = "in.parquet"
    elif how == "unknown schema":
        job["input"]["schema"] = "reciept@1"
    elif how == "model not found":
        job["engine"] = {"engine": "sampler", "model": "./no-such-model"}
    elif how == "output under a file":
        job["output"] = "in.jsonl/out"
    elif how == "memory":
        job["engine"] = {"engine": "vllm", "environment": {"VLLM_CPU_KVCACHE_SPACE": "100000"}}


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("unknown key", 2, "did you mean `output`?"),
        ("nested key", 2, "input.pathh: unknown key; did you mean `path`?"),
        ("missing input", 3, "nowhere.jsonl"),
        ("empty input", 3, "empty"),
        ("bad parquet", 3, "in.parquet"),
        ("wrong column", 3, "body"),
        ("unknown schema", 4, "receipt@1"),
        ("output under a file", 6, "cannot"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    bench: Bench,
    how: str,
    code: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoil(bench, how)
    exit_code, message = fails(capsys, monkeypatch, "run", str(bench.path))
    assert (exit_code, says in message) == (code, True), message
    assert not list(bench.folder.glob("out/run=*/manifest.json"))


def test_a_port_that_is_none_is_told_before_anything_starts(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code, message = fails(capsys, monkeypatch, "run", str(bench.path), "--metrics-port", "here")
    assert (exit_code, "such as 9400" in message) == (2, True), message
    assert not (bench.folder / "out").exists()


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [("model not found", 5, "no-such-model"), pytest.param("memory", 8, "GiB", marks=pytest.mark.slow)],
)
def test_what_an_engine_cannot_start_with_is_told_as_plainly(bench: Bench, how: str, code: int, says: str) -> None:
    spoil(bench, how)
    done = bench.run()
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert "UDF" not in done.stderr


def started(bench: Bench) -> tuple[subprocess.Popen[str], str]:
    """A run under way, and where its metrics are."""
    command = [*GRISTMILL, "run", str(bench.path), "--metrics-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().removeprefix("metrics: ").strip()


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as page:
        return str(page.read().decode())


def test_interrupt_resume_refuse_and_finish(bench: Bench) -> None:
    bench.write([{"id": f"r{n}", "text": f"Shop {n}\nTOTAL EUR {n}.50"} for n in range(80)])
    bench.job["engine"] = {"engine": "sampler", "token_seconds": 0.05, "max_num_seqs": 2}
    bench.job["placement"] = {"unit_documents": 4}
    process, metrics = started(bench)
    commits = bench.folder / "out"
    until = time.monotonic() + 240
    while len(list(commits.glob("run=*/_commits/*.json"))) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert 'gristmill_documents_total{job="t",schema="receipt@1"' in read(metrics)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == commands_run.INTERRUPTED, told
    assert "Run the same command to continue" in told
    assert "--metrics-port 0" in told
    kept = {path.name: path.stat().st_mtime_ns for path in commits.glob("run=*/_commits/*.json")}
    assert 2 <= len(kept) < 20

    bench.job["sampling"] = {"temperature": 0.5}
    refused = bench.run()
    assert refused.returncode == 7 and "sampling.temperature" in refused.stderr.replace("\n", "")

    del bench.job["sampling"]
    bench.job["engine"].pop("token_seconds")  # speed is not identity
    bench.job["placement"] = {"unit_documents": 9}  # neither is layout
    finished = bench.run()
    assert finished.returncode == 0, finished.stderr
    assert "resuming" in finished.stdout
    committed = next(commits.glob("run=*/manifest.json")).parent
    assert {p.name: p.stat().st_mtime_ns for p in committed.glob("_commits/*.json") if p.name in kept} == kept
    manifest = json.loads((committed / "manifest.json").read_text())
    assert manifest["totals"]["clock"] == {}, "of two commands, nobody can tell work from the pause between them"
    tables = [pq.ParquetFile(committed / file["path"]).read() for file in manifest["files"]]
    ids = [one for table in tables for one in table.column("document_id").to_pylist()]
    assert Counter(ids) == Counter(f"r{n}" for n in range(80))
    written = (committed / "report.html").stat().st_mtime_ns
    again = bench.run()
    assert again.returncode == 0 and "nothing to do" in again.stdout
    assert (committed / "report.html").stat().st_mtime_ns == written
    assert not list(committed.glob("**/.*")), "temporary files are left behind"


@pytest.mark.slow
def test_a_recorded_run_plays_again_without_its_engine_and_says_when_it_is_stale(bench: Bench) -> None:
    bench.write([{"id": f"r{n}", "text": f"Shop {n}\nTOTAL EUR {n}.50"} for n in range(12)])
    bench.job["engine"] = {"engine": "sampler", "faults": [{"kind": "truncate", "share": 0.4}]}
    recording = str(bench.folder / "recording")
    assert bench.run("--record", recording).returncode == 0
    first = records(bench.folder / "out")
    bench.job |= {"engine": {"engine": "recorded", "recording": recording}, "output": "replayed"}
    played = bench.run()
    assert played.returncode == 0, played.stderr
    assert records(bench.folder / "replayed") == first

    bench.job |= {"schemas": "schemas", "output": "stale"}
    shutil.copytree(ROOT / "schemas", bench.folder / "schemas")
    with (bench.folder / "schemas" / "receipt" / "1" / "instructions.md").open("a") as file:
        file.write("\nOne more sentence.\n")
    stale = bench.run()
    assert stale.returncode == 5
    assert "stale" in stale.stderr


def records(output: Path) -> dict[str, Any]:
    """Status and record by document id, from the files that the manifest names."""
    committed = next(output.glob("run=*/manifest.json")).parent
    manifest = json.loads((committed / "manifest.json").read_text())
    rows = [
        {**row, "status": file["status"]}
        for file in manifest["files"]
        for row in pq.ParquetFile(committed / file["path"]).read().to_pylist()
    ]
    return {row["document_id"]: (row["status"], row.get("record")) for row in rows}


@pytest.mark.usefixtures("ray_cluster")
def test_inspect_shows_document_raw_output_and_problems(make_job: MakeJob) -> None:
    texts = {f"r{n}": f"Shop {n} ünïcode 收据\nTOTAL EUR {n}.50" for n in range(12)}
    rows = [{"id": key, "schema": "receipt@1", "text": text} for key, text in texts.items()]
    job = make_job(rows, engine={"faults": [{"kind": "truncate", "share": 0.5}]})
    run(job, lambda event, value: None)
    command = [*GRISTMILL, "inspect", job.output, "--layer", "3", "--limit", "1"]
    environment = {**os.environ, "COLUMNS": "160"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert "layer 3" in shown
    assert "ünïcode 收据" in shown
    assert "truncated" in shown
    assert "raw output of the last attempt" in shown
