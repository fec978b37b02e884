"""A job run constrained, free and under another order of choices on local Ray: its arms, and that none runs twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.evaluate.differential import Differential
from pipeline.evaluate.differential_runs import from_job
from pipeline.evaluate.order import Ordered
from tests.integration.conftest import MakeJob

pytestmark = [pytest.mark.usefixtures("ray_cluster"), pytest.mark.slow]  # four runs of a job

DOCUMENTS = 16


def experiment(path: Path) -> tuple[Differential, Ordered, list[str]]:
    events: list[str] = []
    _, found, order = from_job(str(path), DOCUMENTS, 1000, lambda event, _value: events.append(event), orders=1)
    assert order is not None
    return found, order, events


def test_arms_are_runs_over_the_same_documents_and_none_runs_twice(
    documents: list[dict[str, Any]], make_job: MakeJob, tmp_path: Path
) -> None:
    rows = [row for row in documents if row["schema"] == "receipt@1"][: DOCUMENTS + 5]
    job = make_job(rows, retry={"max_attempts": 1}, audit={"fraction": 1.0})
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job.model_dump(mode="json", by_alias=True)))
    found, order, events = experiment(path)
    assert events.count("opened") == 4 and "done" not in events
    assert found.documents == order.documents == DOCUMENTS and found.apart == 0
    assert sum(found.classes[name].count for name in list(found.classes)[:6]) == DOCUMENTS
    measures = {one.name: one for one in found.measures}
    as_it_came = measures["as_it_came"]
    assert as_it_came.free.value == 0.0  # the sampler chats around its answer when it is free to
    assert as_it_came.constrained.value is not None and as_it_came.constrained.value > 0.5
    assert measures["clipped"].constrained.value is not None and measures["clipped"].free.value is None
    assert not [note for note in found.notes if "Not only the constraint" in note or "were answered" in note]
    assert order.enums == 1 and order.records.again.count == 0  # nothing but the seed decides what a sampler says
    assert order.records.order.count > 0
    assert Path(job.output, "differential", "_schemas", "order-0", "receipt", "1", "schema.json").is_file()
    again, ordered, events = experiment(path)
    assert events.count("done") == 4 and "progress" not in events
    assert (again, ordered) == (found, order)
    assert not list(Path(job.output).glob("run=*"))  # the job itself was not run
