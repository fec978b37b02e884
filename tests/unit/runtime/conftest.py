"""A small job on disk, its scan, and outcomes for its documents."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import GOOD, RECEIPT, Answers, completion, extracted, plan_of

from pipeline.job import JobConfig
from pipeline.records import Outcome
from pipeline.runtime.input import InputScan, Unit, read_unit, scan
from pipeline.runtime.output.commit import Run, open_run
from pipeline.runtime.output.identity import Identity, identity_of
from pipeline.runtime.output.write import write_unit
from pipeline.runtime.store import open_store
from pipeline.schema.plan import DecodingPlan

ANSWERS = [
    GOOD,
    {"vendor": "Büro \u2028 €", "total": None, "lines": []},
    '{"vendor": "Ann", "total": 1,}',
    "no json",
    '{"vendor": "\\ud800", "total": 2}',
]


@dataclass
class Work:
    """A job with everything that `flow.run` makes of it before the first document."""

    job: JobConfig
    found: InputScan
    plans: dict[str, DecodingPlan]
    identity: Identity

    def open(self, **options: Any) -> Run:
        return open_run(self.job, self.identity, open_store(self.job.output), **options)

    def outcomes(self, unit: Unit) -> list[Outcome]:
        documents = read_unit(unit, self.job.input)
        return [
            extracted(
                Answers(answer if not isinstance(answer, str) else completion(answer)), self.plans["receipt@1"], doc
            )
            for doc, answer in zip(documents, ANSWERS * len(documents), strict=False)
        ]

    def write(self, run: Run, unit: Unit, outcomes: list[Outcome] | None = None) -> dict[str, Any]:
        outcomes = self.outcomes(unit) if outcomes is None else outcomes
        return write_unit(unit, outcomes, self.plans, run.store, self.identity.run_id)

    def finish(self, run: Run) -> Any:
        for unit in self.found.units:
            self.write(run, unit)
        return run.commit(self.found, {"receipt@1": "digest"})


class Faulty:
    """A store whose operations are told to `before` and `after` with their names and arguments; both may raise."""

    def __init__(self, inner: Any, before: Any = None, after: Any = None) -> None:
        self._inner, self._before, self._after = inner, before, after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._inner, name)
        if not callable(real):
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            if self._before:
                self._before(name, *arguments)
            made = real(*arguments, **options)
            if self._after:
                self._after(name, *arguments)
            return made

        return call


@pytest.fixture
def faulty() -> Callable[..., Run]:
    """A run over a `Faulty` store."""
    return lambda run, **hooks: dataclasses.replace(run, store=Faulty(run.store, **hooks))


MakeWork = Callable[..., Work]


@pytest.fixture
def make_work(tmp_path: Path) -> MakeWork:
    """A Work of 12 documents in units of 5; `body` changes the schema, the rest is merged into the job."""
    rows = [{"id": f"d{n}", "text": f"receipt {n}"} for n in range(12)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(body: Any = RECEIPT, **job: Any) -> Work:
        settings: dict[str, Any] = {
            "name": "t",
            "input": {"path": str(tmp_path / "in.jsonl"), "schema": "receipt@1"},
            "output": str(tmp_path / "out"),
            "engine": {"engine": "sampler"},
            "placement": {"unit_documents": 5},
        }
        config = JobConfig.model_validate({**settings, **job})
        found = scan(config.input, config.placement.unit_documents)
        plans = {"receipt@1": plan_of(body)}
        return Work(config, found, plans, identity_of(config, found, plans))

    return make


@pytest.fixture
def work(make_work: MakeWork) -> Work:
    return make_work()
