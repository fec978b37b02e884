"""What makes a run that run: the same job on the same input is the same run, and resumes or does nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.job import ExtractConfig, JobConfig, RecordedConfig
from pipeline.runtime.input import InputScan
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.secrets import without_secrets
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan

PERFORMANCE_KEYS = (
    "max_num_seqs",
    "num_gpus",
    "tensor_parallel",
    "pipeline_parallel",
    "environment",
    "token_seconds",
    *("requests_per_minute", "request_seconds", "connect_seconds", "max_tries", "max_wait_seconds", "max_answer_bytes"),
    *("trust_env", "api_key_env", "tokenizer"),
)
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


def identity_of(
    job: JobConfig,
    found: InputScan,
    plans: Mapping[str, DecodingPlan],
    lookups: Digests | None = None,
    base: Mapping[str, str] | None = None,
) -> Identity:
    """The identity of running a job on what was found. Placement is not part of it: it changes no outcome.

    `lookups` are the digests of what the job looks values up in; where the lists lie is not looked at. `base` says what
    an incremental run starts from: another base is another run, though the input be one that was there before.
    """
    origin = {"job": job.name, "input": found.snapshot, "slot": job.slot, **(base or {})}
    return Identity(origin, work_of(job, plans, lookups))


def work_of(job: JobConfig, plans: Mapping[str, DecodingPlan], lookups: Digests | None = None) -> dict[str, Any]:
    """What a job does to documents of the schemas of `plans`, piece by piece."""
    work = decoding_of(job.engine)
    for name, engine in job.other_engines().items():
        work |= decoding_of(engine, f"engines.{name}")
    for section in sorted(ExtractConfig.model_fields):
        if section not in ("lookups", "audit"):  # lookups below, by their contents; an audit decides nothing
            work |= _pieces(section, job.model_dump(mode="json", include={section})[section])
    del work["policy.preset"]  # what it fills in is there
    work["input.columns"] = list(dict.fromkeys(job.input.columns))
    work["lookups"] = [lookup.model_dump(mode="json", exclude={"path"}) for lookup in job.lookups]
    work["values of lookups"] = [(lookups or {})[lookup.path, lookup.column] for lookup in job.lookups]
    for name, plan in plans.items():
        work[f"schema {name}"] = plan.schema_digest
        work[f"prompt of {name}"] = digest(plan.prefix)
        work[f"grammar of {name}"] = plan.grammar_digest
    return work


def decoding_of(config: Any, name: str = "engine") -> dict[str, Any]:
    """What an engine config says of the decoding, without secrets, by key with the engine's name before it."""
    engine = {k: v for k, v in config.model_dump(mode="json").items() if k not in PERFORMANCE_KEYS}
    if isinstance(config, RecordedConfig):
        engine["recording"] = _recording_digest(Path(config.recording))
    return {f"{name}.{key}": value for key, value in without_secrets(engine)[0].items()}


def _pieces(section: str, values: Any) -> dict[str, Any]:
    """A section key by key, so that a difference can be named; `params`, whose keys are the user's, too."""
    return (
        {f"{section}.{key}": value for key, value in without_secrets(values)[0].items()}
        if isinstance(values, dict)
        else {section: values}
    )


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
