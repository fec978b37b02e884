"""The receipt: which run a submission came to, written by the driver, which does not fail for it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.runtime.store import open_store
from pipeline.runtime.submission.receipt import VARIABLE, ids_below, noting, run_of

RUN = SimpleNamespace(identity=SimpleNamespace(run_id="0123456789abcdef"))


def events(output: str, *happened: tuple[str, Any]) -> tuple[list[str], list[str]]:
    seen: list[str] = []
    said: list[str] = []
    observe = noting(lambda event, _value: seen.append(event), output, said.append)
    for event, value in happened:
        observe(event, value)
    return seen, said


def test_nobody_who_was_not_submitted_leaves_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "../../etc/passwd", "a/b", "a" * 300):
        monkeypatch.setenv(VARIABLE, name)
        assert events(str(tmp_path / "out"), ("opened", RUN)) == (["opened"], [])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "happened",
    [("opened", RUN), ("done", "s3://bucket/out/run=0123456789abcdef"), ("done", "out/run=0123456789abcdef")],
)
def test_the_run_is_noted_before_it_is_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happened: Any
) -> None:
    monkeypatch.setenv(VARIABLE, "nightly-1-2")
    assert events(str(tmp_path), ("compared", object()), happened, ("progress", object()))[1] == []
    assert json.loads((tmp_path / "_submissions/nightly-1-2.json").read_text())["submission"] == "nightly-1-2"
    store = open_store(str(tmp_path))
    assert run_of(store, "nightly-1-2") == "0123456789abcdef"
    assert run_of(store, "nightly-1") == ""
    assert ids_below(store, "nightly-1") == ["nightly-1-2"]


def test_an_output_that_cannot_be_written_is_told_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nightly")
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    seen, said = events(str(tmp_path / "out"), ("opened", RUN), ("progress", object()))
    assert seen == ["opened", "progress"]
    assert "receipt" in said[0]
    assert ids_below(open_store(str(tmp_path / "out")), "nightly") == []
