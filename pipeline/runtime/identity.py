"""What makes a run that run: the same job on the same input is the same run, and resumes or does nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.job import JobConfig, RecordedConfig
from pipeline.runtime.input import InputScan
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan

PERFORMANCE_KEYS = ("max_num_seqs", "num_gpus", "environment", "token_seconds")
"""Keys of an engine config that are about speed and place, not about what is decoded."""


@dataclass(frozen=True, slots=True)
class Identity:
    """`origin` says which input and slot of which job; `work` what is done to it, by digest, piece by piece.

    Two runs of one origin whose work differs must not be mixed in one directory.
    """

    origin: Mapping[str, str]
    work: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return digest([dict(self.origin), dict(self.work)])

    def differences(self, other_work: Mapping[str, Any]) -> list[str]:
        """The names of the pieces in which this run's work differs from another's, sorted."""
        names = sorted({*self.work, *other_work})
        return [name for name in names if self.work.get(name) != other_work.get(name)]


def identity_of(job: JobConfig, found: InputScan, plans: Mapping[str, DecodingPlan]) -> Identity:
    """The identity of running a job on what was found. Placement is not part of it: it changes no outcome."""
    engine = {k: v for k, v in job.engine.model_dump(mode="json").items() if k not in PERFORMANCE_KEYS}
    if isinstance(job.engine, RecordedConfig):
        engine["recording"] = _recording_digest(Path(job.engine.recording))
    work: dict[str, Any] = {f"engine.{key}": value for key, value in engine.items()}
    for section in ("sampling", "retry", "policy"):
        values = getattr(job, section).model_dump(mode="json")
        work |= {f"{section}.{key}": value for key, value in values.items()}
    for name, plan in plans.items():
        work[f"schema {name}"] = plan.schema_digest
        work[f"prompt of {name}"] = digest(plan.prefix)
        work[f"grammar of {name}"] = plan.grammar_digest
    return Identity({"job": job.name, "input": found.snapshot, "slot": job.slot}, work)


def _recording_digest(path: Path) -> str:
    """The content of a recording, wherever it lies; "missing" if it is not there (the engine will say so)."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not all(file.is_file() for file in files):
        return "missing"
    digests = []
    for file in files:
        with file.open("rb") as content:
            digests.append(hashlib.file_digest(content, "sha256").hexdigest())
    return digest(digests)
