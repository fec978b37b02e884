"""`gristmill canary`, and the candidate of `gristmill run`: exit codes, what is said, and the switch."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from canary_runs import BADLY, WELL, commit_candidate, content, job_of, main_run, settings

from pipeline import cli


def told(capsys: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["gristmill", *arguments])
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    found = capsys.readouterr()
    return int(stopped.value.code or 0), found.out, found.err


@pytest.fixture
def tell(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *arguments: told(capsys, monkeypatch, *arguments)


def written(tmp_path: Path, **canary: Any) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(settings(tmp_path, **canary)))
    return str(path)


@pytest.mark.parametrize(("answer", "verdict", "strict"), [(WELL, "promote", 0), (BADLY, "roll_back", 9)])
def test_the_verdict_is_shown_and_decides_the_exit_code_only_if_asked(
    tmp_path: Path, tell: Any, answer: Any, verdict: str, strict: int
) -> None:
    job = job_of(tmp_path)
    commit_candidate(job, answer)
    path = written(tmp_path)
    code, out, _ = tell("run", path)
    assert code == 0 and "nothing to do: this run was committed" in out and f"verdict  {verdict}" in out
    assert f"gristmill compare {main_run(job).where}" in out
    assert tell("canary", path)[0] == 0
    code, out, err = tell("canary", path, "--strict", "--json")
    assert code == strict and json.loads(out)["verdict"] == verdict and f"verdict  {verdict}" in err
    code, out, _ = tell("run", path, "--no-canary")
    assert code == 0 and "verdict  " not in out


def test_a_candidate_that_fails_is_no_fault_of_the_run(tmp_path: Path, tell: Any) -> None:
    job = job_of(tmp_path)
    path = written(tmp_path, schemas=str(tmp_path / "nowhere"))
    before = content(main_run(job).where)
    code, out, _ = tell("run", path)
    assert code == 0 and "its candidate was not judged: SchemaError" in out
    code, _, err = tell("canary", path)
    assert code == 4 and "error: " in err
    shutil.rmtree(tmp_path / "out" / "canary")
    (tmp_path / "out" / "canary").write_text("in the way")
    code, out, _ = tell("run", path)
    assert code == 0 and "its candidate was not judged: OutputError" in out
    kept = {name: digest for name, digest in content(main_run(job).where).items() if not name.endswith("report.html")}
    assert kept == before


def test_there_is_nothing_to_try_without_a_run_or_a_candidate(tmp_path: Path, tell: Any) -> None:
    path = written(tmp_path)
    code, _, err = tell("canary", path)
    assert code == 6 and "Run the job first" in err
    job_of(tmp_path)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({**settings(tmp_path), "canary": None}))
    code, _, err = tell("canary", path)
    assert code == 2 and "has no `canary`" in err


def test_the_switch_is_set_and_told_and_needs_no_candidate(tmp_path: Path, tell: Any) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump({**settings(tmp_path), "canary": None}))
    path = str(tmp_path / "job.yaml")
    code, out, _ = tell("canary", path, "--switch", "free", "--because", "aborts [red]\x1b[2J")
    assert code == 0 and "switched off" in out and "aborts [red]" in out and "\x1b" not in out
    assert json.loads((tmp_path / "out" / "_switch" / "t.json").read_text())["state"] == "free"
    code, out, _ = tell("canary", path, "--switch", "constrained")
    assert code == 0 and "as its job file says" in out
    code, _, err = tell("canary", path, "--switch", "off")
    assert code == 2 and "free, constrained" in err
