"""A job server that plays what it is told to, and a folder with a job that can be submitted."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import NotReachedError
from pipeline.runtime.submission.server import Request, Submitted

ROOT = Path(__file__).resolve().parents[4]
GONE = NotReachedError("gone")


class PlayedServer:
    """Knows jobs by id. `tails` are what each call of `tail` gives: pieces, exceptions, or what is to be done then."""

    address = "http://played:8265"

    def __init__(self, *jobs: Submitted) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.requests: list[Request] = []
        self.stopped: list[str] = []
        self.tails: list[Sequence[Any]] = []
        self.text = ""
        self.finds: list[BaseException] = []
        self.answers: list[BaseException] = []

    def submit(self, request: Request) -> None:
        if request.id in self.jobs:
            raise NotReachedError(f"HTTP 500: Job with submission_id {request.id} already exists.")
        answer = self.answers.pop(0) if self.answers else None
        if answer is None or "lost" in str(answer):
            self.requests.append(request)
            self.jobs[request.id] = Submitted(request.id, "PENDING", metadata=request.metadata)
        if answer is not None:
            raise answer

    def find(self, job_id: str) -> Submitted | None:
        if self.finds:
            raise self.finds.pop(0)
        return self.jobs.get(job_id)

    def all(self) -> list[Submitted]:
        return list(self.jobs.values())

    def stop(self, job_id: str) -> None:
        self.stopped.append(job_id)

    def log(self, job_id: str) -> str:
        return self.text

    async def tail(self, job_id: str) -> AsyncGenerator[str, None]:
        for piece in self.tails.pop(0) if self.tails else ():
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, str):
                yield piece
            elif (waited := piece()) is not None:
                await waited

    def ends(self, job_id: str, status: str = "SUCCEEDED", exit_code: int | None = 0) -> Callable[[], None]:
        """What lets a job end when it is called."""

        def end() -> None:
            self.jobs[job_id] = replace(self.jobs[job_id], status=status, exit_code=exit_code)

        return end


def write_job(folder: Path, **parts: Any) -> Path:
    """A job in `jobs/`, its engine config and schema beside that folder; the output elsewhere."""
    for name in ("jobs", "engines", "schemas/note/1"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    schema = {"type": "object", "properties": {"vendor": {"type": "string"}}, "required": ["vendor"]}
    (folder / "schemas/note/1/schema.json").write_text(json.dumps(schema), encoding="utf-8")
    (folder / "schemas/note/1/instructions.md").write_text("Say who sold it.\n", encoding="utf-8")
    (folder / "engines/e.yaml").write_text("engine: sampler\n", encoding="utf-8")
    (folder / "jobs/in.jsonl").write_text('{"id": "a", "text": "Ann & Co"}\n', encoding="utf-8")
    job = {
        "name": "nightly",
        "input": {"path": "in.jsonl", "schema": "note@1"},
        "output": str(folder.parent / "out"),
        "schemas": "../schemas",
        "engine": "../engines/e.yaml",
        **parts,
    }
    path = folder / "jobs/nightly.yaml"
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    return path
