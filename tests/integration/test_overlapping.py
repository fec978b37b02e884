"""A schedule that begins several runs of one incremental job at once, as KubeRay does after its operator was away."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from one_job import GRISTMILL, Bench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WAIT = 300


def arrive(bench: Bench, start: int, end: int) -> None:
    """Documents, in a file of their own."""
    rows = [{"id": f"r{n}", "text": f"Shop {n}\nTOTAL EUR {n}.50"} for n in range(start, end)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (bench.folder / f"day-{start:02}.jsonl").write_text(text, encoding="utf-8")


def started(bench: Bench, overlap: str) -> subprocess.Popen[str]:
    line = [*GRISTMILL, "run", str(bench.path), "--overlap", overlap]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def committed(folder: Path) -> list[dict[str, int]]:
    """What each committed run says of the input, in their order."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("out/run=*/manifest.json")]
    return sorted((one["incremental"] for one in found), key=lambda one: int(one["sequence"]))


def test_one_works_the_others_are_refused_or_wait_and_missed_nights_are_made_up_for(bench: Bench) -> None:
    bench.job["input"] |= {"since": "last", "path": "day-*.jsonl"}
    bench.job["engine"] = {"engine": "sampler", "token_seconds": 0.1, "max_num_seqs": 4}
    bench.job["sampling"] = {"max_tokens": 40}
    arrive(bench, 0, 24)
    first = started(bench, "refuse")
    end = time.monotonic() + WAIT
    while not list(bench.folder.glob("out/run=*")):
        assert first.poll() is None and time.monotonic() < end, first.stdout and first.stdout.read()
        time.sleep(0.1)
    arrive(bench, 24, 30)  # more came meanwhile, so theirs would be another run
    waiting = [started(bench, "queue"), started(bench, "queue")]
    refused = started(bench, "refuse")
    told = refused.communicate(timeout=WAIT)[0]
    assert refused.returncode == 9 and "another run of `t` is under way" in told, told
    assert first.poll() is None, "they were to meet"
    words = [one.communicate(timeout=WAIT)[0] for one in (first, *waiting)]
    assert [one.returncode for one in (first, *waiting)] == [0, 0, 0], "\n".join(words)
    assert all("waiting for the end of another run of `t`" in one for one in words[1:])
    assert sum("nothing to do" in one for one in words[1:]) == 1, "the last of them found nothing, and said so"
    assert [one["new"] for one in committed(bench.folder)] == [24, 6], "no document twice"

    arrive(bench, 30, 36)  # this night is missed
    arrive(bench, 36, 40)
    night = bench.run()
    assert night.returncode == 0, night.stdout
    assert [one["new"] for one in committed(bench.folder)] == [24, 6, 10]
    again = bench.run()
    assert again.returncode == 0 and "nothing to do" in again.stdout
    assert len(committed(bench.folder)) == 3
