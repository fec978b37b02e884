"""A run whose output is a bucket: written, committed, inspected and recalled through the real protocol."""

from __future__ import annotations

from typing import Any

import pytest
import s3_server

from pipeline.errors import RunChangedError
from pipeline.runtime.output.journal import Journal
from pipeline.runtime.output.lookup import document_text, find_rows, find_run, previous_run
from pipeline.runtime.output.recall import recall


def test_a_bucket_holds_what_a_disk_would(work: Any, make_work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    output = f"s3://{s3_server.new_bucket()}/some%20where"
    remote = make_work(output=output)
    run = remote.open()
    Journal(run.store, remote.found.units[0]).save({0: remote.outcomes(remote.found.units[0])[0]})
    manifest = remote.finish(run)
    assert manifest.counts == work.finish(work.open()).counts
    assert list(run.store.list("_journal/")) == []
    assert remote.open().manifest() == manifest
    for path in (output, run.where):
        found = find_run(path)
        (row,) = find_rows(found, status=None, document_id="d7", layer=None, limit=9)
        assert document_text(found, row) == "receipt 7"
        assert recall(found, "d7").document.text == "receipt 7"
    later = make_work(output=output, slot="later")
    after = later.open()
    later.finish(after)
    before = previous_run(after.store)
    assert before is not None and before.where == run.where
    make_work(output=output, slot="other").open()
    with pytest.raises(RunChangedError, match=r"s3://.*unfinished"):
        make_work(output=output, slot="other", sampling={"temperature": 1}).open()
