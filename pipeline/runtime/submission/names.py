"""Submission ids: the same work gets the same id, and each further attempt at it the next number."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.job import ExtractConfig, JobConfig
from pipeline.runtime.output.secrets import without_secrets
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import available

_WORK = {*ExtractConfig.model_fields, "name", "slot", "input", "output", "engine", "engines"}
"""Keys of a job that say what is done with what. No others change an outcome, but `schemas`: their contents count."""


def id_by_run(job: JobConfig, run_id: str) -> str:
    """The base of the ids of submissions that come to a run."""
    return f"{job.name}-{run_id}"


def id_by_job(job: JobConfig, again: Sequence[str] = ()) -> str:
    """The base of ids where the input was not read: from the job with its slot, and the files of its schemas, wherever
    they lie. The same every night, whatever the input holds."""
    kept: Any = job.model_dump(mode="json", by_alias=True, include=_WORK)
    names = [job.input.schema_name] if job.input.schema_name else available(job.schemas)
    contents = [_contents(Path(job.schemas, *name.split("@"))) for name in sorted(names)]
    return f"{job.name}-{digest([without_secrets(kept)[0], contents, sorted(set(again))])}"


def attempt_of(job_id: str, base: str) -> int | None:
    """Which attempt an id is, None if it is of another base."""
    found = re.fullmatch(rf"{re.escape(base)}(?:-([1-9]\d{{0,8}}))?", job_id)
    return int(found[1] or 1) if found else None


def next_id(base: str, taken: Iterable[str]) -> str:
    """The id of the next attempt. Ray does not take an id twice, not even of a job that was deleted."""
    last = max(filter(None, (attempt_of(one, base) for one in taken)), default=0)
    return f"{base}-{last + 1}" if last else base


def _contents(folder: Path) -> list[list[str]]:
    """Names and hashes of a schema's files."""
    files = (folder / name for name in ("schema.json", "instructions.md", "examples.jsonl"))
    return [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files if file.is_file()]
