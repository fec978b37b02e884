"""A job of a few documents with everything that makes trouble: two schemas, an id that occurs twice, a row that is no
JSON, one that names no schema, documents that no engine can answer. What it costs to plan and to scan is paid once.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from pipeline.flow import extract
from pipeline.job import JobConfig
from pipeline.records import Completion, Manifest, Prompt, Sampling
from pipeline.runtime.input import InputScan, scan
from pipeline.runtime.output import commit
from pipeline.runtime.output.commit import Run, open_run
from pipeline.runtime.output.identity import Identity, identity_of
from pipeline.runtime.setup import Setup
from pipeline.runtime.store import Store
from pipeline.schema.plan import DecodingPlan
from tests.crash.checked import Rows, read_input
from tests.support import plan_of

BODY = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NAMES = ("left@1", "right@1")
ANSWERS = ['{"word": "tea"}', '{"word": "tea",}', "no json", '{"word": 1}']
"""By turns: as it should be, to be repaired, to be rejected, against its schema."""


commit.versions = functools.cache(commit.versions)  # 10 ms, which a job spends once


@dataclasses.dataclass(frozen=True)
class SmallJob:
    """What `flow.run` has before the first document."""

    job: JobConfig
    found: InputScan
    plans: dict[str, DecodingPlan]
    identity: Identity
    rows: Rows

    def setup(self, store: Store) -> Setup:
        """What its processes get; `store` is the run's."""
        return Setup(self.job, self.plans, store, self.identity.run_id, None, extract)

    def commit(self, run: Run) -> Manifest:
        """Publish the run."""
        return run.commit(self.found, {name: plan.schema_digest for name, plan in self.plans.items()})

    def open(self, output: Store) -> Run:
        """The run in an output, to which no path need lead."""
        return open_run(self.job, self.identity, output)


def make(folder: Path, documents: int, unit_documents: int, **keys: Any) -> SmallJob:
    """Write the input of a job, scan and plan it; `keys` are merged into the job."""
    lines = [_line(number, documents) for number in range(documents)]
    path = folder / f"in-{documents}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    settings: dict[str, Any] = {
        "name": "small",
        "input": {"path": str(path), "schema_column": "kind"},
        "output": str(folder / "out"),
        "engine": {"engine": "sampler", "max_num_seqs": 2},
        "placement": {"unit_documents": unit_documents},
        "retry": {"max_attempts": 1, "backoff_seconds": 0},
        "pilot": {"documents": 0},
        "stop_if": dict.fromkeys(("truncation", "first_pass", "rejection")),
    }
    job = JobConfig.model_validate({**settings, **keys})
    found = scan(job.input, unit_documents)
    plans = {name: plan_of(BODY, name) for name in NAMES}
    return SmallJob(job, found, plans, identity_of(job, found, plans), read_input(path))


def answer_to(prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
    """Always the same to the same document."""
    text = ANSWERS[hashlib.sha256(prompt.user.partition("\n")[2].encode()).digest()[0] % len(ANSWERS)]
    return Completion(text, "stop", constrained=False, plan_digest=plan.digest, output_tokens=len(text))


def _line(number: int, documents: int) -> str:
    if number == 2:
        return "{this is no JSON"
    row = {"id": f"d{number}", "kind": NAMES[number % 2], "text": f"document {number} says tea"}
    if number == 3:
        row["id"] = "d0"  # again
    if number == documents - 1 and documents > 5:
        del row["kind"]
    return json.dumps(row)
