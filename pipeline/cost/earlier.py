"""Earlier: what a committed run of the job measured, schema by schema, from its commit records."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pipeline.cost.attempts import success_of
from pipeline.cost.estimate import Estimate, point, ratio_of, share_of
from pipeline.errors import JobFileError
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally
from pipeline.records import Manifest
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.commit import read_manifest
from pipeline.runtime.output.gather import THREADS, commit_record, committed_units
from pipeline.runtime.output.identity import Identity, work_of
from pipeline.runtime.output.lookup import find_run
from pipeline.runtime.output.run_record import read_run_record, reading, recorded_job
from pipeline.runtime.store import Store
from pipeline.schema.plan import DecodingPlan

_BY_SCHEMA = ("schema ", "prompt of ", "grammar of ")


@dataclass(frozen=True, slots=True)
class Measured:
    """One schema in an earlier run: the chance that an answer is the document's last one though more were allowed,
    output tokens of an answer, share of the prompt tokens that were cached. None: no engine was asked."""

    documents: int
    success: Estimate | None
    output_tokens: Estimate | None
    cached: Estimate | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """A committed run of at most `engines` engines. `seconds` are from its begin to its commit, 0 if it does not say;
    `start_seconds` are those of them before the first document was put before an engine, and all else that is no
    work, None if nobody knows. `differs` names what of the job is no longer as it was."""

    where: str
    run_id: str
    schemas: Mapping[str, Measured]
    output_tokens: int
    engines: int
    seconds: float
    start_seconds: float | None
    differs: tuple[str, ...]

    def tokens_per_second(self, start_seconds: float | None) -> Estimate:
        """Output tokens of one engine in a second of the run, without its start: measured, or else as given here. If
        nobody says what that took, it is assumed to be nothing, and the rate comes out too low.

        Raises:
            JobFileError: there was no such second, or no such token.
        """
        start = self.start_seconds if self.start_seconds is not None else start_seconds
        seconds = self.seconds - (start or 0.0)
        if seconds <= 0 or not self.output_tokens:
            raise JobFileError(
                f"{self.where} does not say how fast an engine is: {self.output_tokens} output tokens in "
                f"{self.seconds:.0f} s, of which {start or 0.0:.0f} s are for the start (--start-minutes). "
                "Give --tokens-per-second."
            )
        return point(self.output_tokens / seconds / self.engines, "assumed" if start is None else "measured")


def engines_of(job: JobConfig) -> int:
    """The engines that a job may have at once."""
    placement = job.placement
    return placement.actors if placement.kind == "local" else placement.max_engines


def earlier(path: str, job: JobConfig, plans: Mapping[str, DecodingPlan], lookups: Digests) -> Earlier:
    """What the run that a path or URI means measured: itself, or the run below it that committed last.

    Raises:
        OutputError: there is no committed run, or it cannot be read.
        JobFileError: it is a run of another job.
    """
    store = find_run(path)
    manifest = read_manifest(store)
    assert manifest is not None  # `find_run` looks for it
    if manifest.job != job.name:
        raise JobFileError(
            f"{store.where} is a run of the job `{manifest.job}`, not of `{job.name}`: its documents and answers say "
            "nothing about these. Name a run of this job."
        )
    made_by, _ = recorded_job(store)
    tallies, (seconds, start) = _tallies(store), _times(manifest)
    return Earlier(
        where=store.where,
        run_id=manifest.run_id,
        schemas={name: _measured(group, made_by.retry.max_attempts) for name, group in tallies.items()},
        output_tokens=sum(tally.output_tokens for group in tallies.values() for tally in group),
        engines=engines_of(made_by),
        seconds=seconds,
        start_seconds=start,
        differs=_differs(store, job, plans, lookups),
    )


def _tallies(store: Store) -> dict[str, list[Tally]]:
    """The counts of each unit, by its schema."""
    with reading(store.where):
        units = committed_units(store)
    found: dict[str, list[Tally]] = {}
    with ThreadPoolExecutor(THREADS, thread_name_prefix="commit-records") as pool:
        for record in pool.map(lambda unit: commit_record(store, unit), units):
            found.setdefault(str(record["input"].get("schema", "")), []).append(Tally.from_json(record["tally"]))
    return found


def _measured(group: Sequence[Tally], most: int) -> Measured:
    asked = sum(tally.asked for tally in group)
    answers = [sum(path.answers for path in tally.rates()) for tally in group]
    prompts = sum(tally.prompt_tokens for tally in group)
    outputs = [(tally.output_tokens, count) for tally, count in zip(group, answers, strict=True)]
    return Measured(
        documents=sum(tally.documents for tally in group),
        success=_success(group, asked, sum(answers), most) if asked else None,
        output_tokens=ratio_of(outputs) if sum(answers) else None,
        cached=ratio_of([(tally.cached_tokens, tally.prompt_tokens) for tally in group]) if prompts else None,
    )


def _success(group: Sequence[Tally], asked: int, answers: int, most: int) -> Estimate:
    """From how many answers a document took. A run that never asked twice tells only how many first answers were
    right, which is less: not everything that is wrong is asked for again."""
    if most > 1:
        return share_of(success_of(answers / asked, most) * asked, asked, "measured")
    return share_of(sum(tally.first_pass_semantic for tally in group), asked, "measured")


def _times(manifest: Manifest) -> tuple[float, float | None]:
    """How long a run took, and how much of that was no work. A run that was interrupted has only two times of day."""
    match manifest.totals.get("clock"):
        case {"seconds": int() | float() as seconds, "asking_seconds": int() | float() as asking}:
            return seconds, seconds - asking
    try:
        begun, ended = map(datetime.datetime.fromisoformat, (manifest.started, manifest.committed))
        return (ended - begun).total_seconds(), None
    except (ValueError, TypeError):  # no times, or only one of them with a zone: written by something else
        return 0.0, None


def _differs(store: Store, job: JobConfig, plans: Mapping[str, DecodingPlan], lookups: Digests) -> tuple[str, ...]:
    """The pieces of the job's work that are not as in the run; schemas that only one of them has are none."""
    before: Any = (read_run_record(store) or {}).get("work", {})
    work = json.loads(json.dumps(work_of(job, plans, lookups)))
    found = Identity({}, work).differences(before)
    return tuple(name for name in found if not name.startswith(_BY_SCHEMA) or (name in work and name in before))
