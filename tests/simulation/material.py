"""What is worked on: small inputs, planned and scanned once, and what becomes of each document."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from pipeline.engines import Engine
from pipeline.job import ExtractConfig, JobConfig
from pipeline.records import Attempt, Completion, Document, Outcome, Problem, Prompt, Sampling, Status
from pipeline.runtime.input import InputScan, read_unit, scan
from pipeline.runtime.output.identity import Identity, identity_of
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from tests.crash.checked import Rows, read_input
from tests.support import plan_of

BODY = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
NAMES = ("left@1", "right@1")
VARIANTS = 6
FATES: tuple[Status, ...] = ("valid", "valid", "valid", "valid", "degraded", "rejected")
TRIES = 3


@dataclasses.dataclass(frozen=True)
class Material:
    """A job with all that `flow.run` knows before the first document. `documents` are by key on the ledger, `texts`
    those that an engine may be asked about."""

    job: JobConfig
    found: InputScan
    plans: dict[str, DecodingPlan]
    identity: Identity
    rows: Rows
    documents: dict[str, Document]
    texts: tuple[str, ...]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="simulation-")


@functools.cache
def material(variant: int) -> Material:
    """The input of a variant: how many documents, in which units, and what is odd about them is drawn by its number."""
    dice = random.Random(f"material {variant}")
    path = Path(_folder().name) / f"in-{variant}.jsonl"
    count = dice.randint(6, 10)
    names = NAMES[: dice.choice([1, 2, 2])]
    lines = []
    for number in range(count):
        row = {"id": f"d{number}", "kind": dice.choice(names), "text": f"document {variant}/{number}"}
        odd = dice.random()
        if odd < 0.05:
            lines.append("{no json")
            continue
        if odd < 0.12 and number:
            row["id"] = f"d{dice.randrange(number)}"  # again
        if odd > 0.95:
            del row["kind"]
        lines.append(json.dumps(row))
    path.write_text("".join(f"{line}\n" for line in lines))
    unit_documents = dice.choice([3, 4, 6])
    job = JobConfig.model_validate(
        {
            "name": "simulated",
            "input": {"path": str(path), "schema_column": "kind"},
            "output": "memory",
            "engine": {"engine": "sampler", "max_num_seqs": 2},
            "placement": {"unit_documents": unit_documents},
        }
    )
    found = scan(job.input, unit_documents)
    plans = {name: plan_of(BODY, name) for name in NAMES}
    documents = {f"{unit.id}/{n}": one for unit in found.units for n, one in enumerate(read_unit(unit, job.input))}
    texts = tuple(one.text for one in documents.values() if asks(one))
    return Material(job, found, plans, identity_of(job, found, plans), read_input(path), documents, texts)


def asks(document: Document) -> bool:
    """Whether an engine is asked about a document."""
    return bool(document.schema) and not document.problems


def fate(text: str) -> Status:
    """What becomes of a document if nothing happens to it."""
    return FATES[int(digest([text]), 16) % len(FATES)]


async def extract(document: Document, plan: DecodingPlan, engine: Engine, config: ExtractConfig) -> Outcome:
    """In place of `flow.extract`: as often as it, it asks the engine, but its judgement costs nothing."""
    attempts: list[Attempt] = []
    if asks(document):
        while len(attempts) < TRIES:
            completion = await engine.generate(Prompt("", document.text), plan, Sampling(64))
            attempts.append(_attempt(completion, len(attempts) + 1))
            if completion.finish_reason == "stop":
                break
    answered = bool(attempts) and attempts[-1].finish_reason == "stop"
    status: Status = fate(document.text) if answered else "rejected"
    problems = list(document.problems)
    if attempts and not answered:
        problems.append(Problem("engine_abort", attempt=len(attempts)))
    elif status == "rejected" and answered:
        problems.append(Problem("no_json", attempt=len(attempts)))
    return Outcome(
        document_id=document.id,
        source=document.source,
        schema=document.schema,
        status=status,
        layer={"valid": 1, "degraded": 3, "rejected": 0}[status],
        record=None if status == "rejected" else {"word": document.text},
        problems=tuple(problems),
        attempts=tuple(attempts),
        document_text=document.text,
        work_digest=digest([document.text, plan.digest]),
        record_attempt=0 if status == "rejected" else len(attempts),
    )


def _attempt(completion: Completion, number: int) -> Attempt:
    told: dict[str, Any] = {name: getattr(completion, name) for name in ("finish_reason", "error", "prompt_tokens")}
    told |= {name: getattr(completion, name) for name in ("cached_tokens", "output_tokens", "queue_seconds", "seconds")}
    return Attempt(number, "simulated", "", constrained=False, raw_text=completion.text, **told)
