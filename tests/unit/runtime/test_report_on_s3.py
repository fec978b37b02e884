"""The report of a run whose output is a bucket lies in the bucket."""

from __future__ import annotations

from typing import Any

import pytest
import s3_server
from recomputed import figures_of

from pipeline.report.build import write_report
from pipeline.runtime.output.lookup import find_run


def test_a_report_lies_beside_its_run(make_work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    output = f"s3://{s3_server.new_bucket()}/some%20where"
    for slot in ("", "later"):
        work = make_work(output=output, slot=slot)
        run = work.open()
        manifest = work.finish(run)
    where = write_report(output)  # the latest run
    assert where == f"{run.where}/report.html"
    page = (find_run(output).get("report.html") or b"").decode("utf-8")
    shown = figures_of(page)
    assert shown["documents"][0] == manifest.documents
    assert shown["against|documents valid|before"] == shown["against|documents valid|now"]
    assert "receipt " in page  # a document, read again or kept
