"""The exit code of a submission: the manifest decides, in all combinations with Ray's word."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import s3_server

from pipeline.records import Manifest
from pipeline.runtime.submission.ending import Output, look, verdict
from pipeline.runtime.submission.receipt import VARIABLE, noting
from pipeline.runtime.submission.server import RUN, Submitted

RUN_ID, OTHER = "0123456789abcdef", "fedcba9876543210"
WORDS = [
    ("SUCCEEDED", 0),
    ("SUCCEEDED", None),
    ("FAILED", 5),
    ("FAILED", 9),
    ("FAILED", -9),
    ("FAILED", 0),
    ("FAILED", None),
    ("STOPPED", None),
    ("STOPPED", 143),
    None,
]


@pytest.mark.parametrize(("word", "seen"), list(product(WORDS, ["committed", "absent", "unknown"])))
def test_zero_needs_a_manifest_or_where_none_can_be_seen_the_drivers_own_zero(word: Any, seen: Any) -> None:
    job = None if word is None else Submitted("j", word[0], word[1])
    code, told = verdict(job, Output(seen, "out/run=1"))
    assert told
    if seen == "committed":
        assert code == 0
    elif word is None or (word[0] != "STOPPED" and word[1] is None):
        assert code == 12
    elif word[0] == "STOPPED":
        assert code == 143
    elif word[1] == 0:
        assert code == (0 if seen == "unknown" else 6)
    else:
        assert code == {5: 5, 9: 9, -9: 137}[word[1]]


def manifest_of(run: str) -> bytes:
    empty: Any = {}
    one = Manifest(run, "j", 1, empty, "", empty, (), empty, empty, "then", "now")
    return json.dumps({name: getattr(one, name) for name in one.__slots__}).encode()


def manifest(folder: Path, run: str) -> None:
    (folder / f"run={run}").mkdir(parents=True)
    (folder / f"run={run}" / "manifest.json").write_bytes(manifest_of(run))


def receipt(folder: Path, run: str) -> None:
    (folder / "_submissions").mkdir(parents=True)
    (folder / "_submissions" / "j.json").write_text(json.dumps({"run_id": run}), encoding="utf-8")


def test_the_manifest_of_the_run_in_the_receipt_counts(tmp_path: Path) -> None:
    manifest(tmp_path, OTHER)
    receipt(tmp_path, OTHER)
    seen = look(str(tmp_path), Submitted("j", "FAILED", metadata={RUN: RUN_ID}))
    assert seen.seen == "committed" and seen.where.endswith(f"run={OTHER}")
    assert seen.manifest is not None and seen.manifest.committed == "now"


def test_without_a_receipt_the_run_that_was_known_counts(tmp_path: Path) -> None:
    manifest(tmp_path, RUN_ID)
    assert look(str(tmp_path), Submitted("j", "FAILED", metadata={RUN: RUN_ID})).seen == "committed"
    assert look(str(tmp_path), Submitted("j", "FAILED")).seen == "absent", "another's run is not ours"


def test_a_receipt_of_an_unfinished_run_is_no_commit(tmp_path: Path) -> None:
    manifest(tmp_path, RUN_ID)
    receipt(tmp_path, OTHER)
    assert look(str(tmp_path), Submitted("j", "SUCCEEDED", 0, metadata={RUN: RUN_ID})).seen == "absent"


@pytest.mark.parametrize("torn", ["", "[]", '{"run_id": "../../x"}', '{"run_id": 7}'])
def test_a_receipt_that_is_none_names_no_run(tmp_path: Path, torn: str) -> None:
    receipt(tmp_path, RUN_ID)
    (tmp_path / "_submissions" / "j.json").write_text(torn, encoding="utf-8")
    assert look(str(tmp_path), Submitted("j", "SUCCEEDED", 0)).seen == "absent"


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert look(str(tmp_path / "on the cluster only"), Submitted("j", "SUCCEEDED", 0)).seen == "unknown"
    assert look("gs://bucket/out", Submitted("j", "SUCCEEDED", 0)).seen == "unknown"
    (tmp_path / f"run={RUN_ID}").mkdir()
    (tmp_path / f"run={RUN_ID}" / "manifest.json").write_text("{}", encoding="utf-8")
    assert look(str(tmp_path), Submitted("j", "SUCCEEDED", 0, metadata={RUN: RUN_ID})).seen == "unknown"


def test_receipt_and_manifest_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "j")
    with s3_server.stores(monkeypatch) as make:
        store = make()
        job = Submitted("j", "FAILED", metadata={RUN: OTHER})
        noting(lambda _event, _value: None, store.where, print)("done", f"{store.where}/run={RUN_ID}")
        assert look(store.where, job) == Output("absent", f"{store.where}/run={RUN_ID}")
        store.put(f"run={RUN_ID}/manifest.json", manifest_of(RUN_ID))
        assert look(store.where, job).seen == "committed"
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        assert look(store.where, job).seen == "unknown"
