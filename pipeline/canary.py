"""Canary: a candidate on a share of the documents of a committed run, held against that run, and judged.

The candidate is a job of its own, derived from the job, and `flow.run` runs it as any other: resumed after a kill,
committed once, with its own output. Nothing is written into the run that it is held against.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline import flow
from pipeline.errors import GristmillError, JobFileError, RunBusyError, SchemaError, StoppedError
from pipeline.evaluate.compared import compare_runs
from pipeline.evaluate.comparison import RunComparison
from pipeline.evaluate.gate import Decision, Gated, gate
from pipeline.job import JobConfig
from pipeline.jobcanary import CanaryConfig
from pipeline.observe.events.line import Hook
from pipeline.runtime.output.run_record import now, reading
from pipeline.runtime.sampled import Sample
from pipeline.runtime.setup import log_of
from pipeline.runtime.store import Store, json_bytes, json_object, open_store, writing
from pipeline.runtime.switch import read_switch, switched

FOLDER = "canary"
"""Where candidates' runs lie in the job's output."""

VERDICT = "canary.json"
"""The last verdict, in that folder; and each run's own, in it."""

_SUFFIX = ".canary"
_LONGEST = 64
"""Characters that a job's name may have."""

_FINDINGS = (StoppedError, SchemaError)
"""What ends a candidate and is its own doing: it is worse, whatever else a comparison would show."""

_NEEDED = {"verdict", "reasons", "rules", "documents", "of", "run", "judged"}
"""Members of a verdict that was written to its end."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a candidate. `told` is what `canary.json` holds, `error` what kept the candidate from being held
    against the run, `before` that the verdict is an earlier one."""

    verdict: Decision
    reasons: tuple[str, ...]
    told: Mapping[str, Any]
    error: GristmillError | None = None
    before: bool = False


def candidate_of(job: JobConfig) -> JobConfig:
    """The job of the candidate. Its name and output are its own, so that numbers, events and runs are told apart."""
    canary = _canary(job)
    sampling = job.sampling.model_copy(update=canary.sampling_changes())
    changed = {
        "name": job.name[: _LONGEST - len(_SUFFIX)] + _SUFFIX,
        "engine": job.engine if canary.engine is None else job.engines[canary.engine],
        "schemas": canary.schemas or job.schemas,
        "sampling": sampling,
        "input": job.input.model_copy(update={"since": None}),
        "output": f"{job.output.rstrip('/')}/{FOLDER}",
        "canary": None,
    }
    return job.model_copy(update=changed)


def try_candidate(job: JobConfig, run: Store, observe: flow.Observer, hook: Hook | None = None) -> Judged:
    """Run the candidate of a job on its share of a committed run of that job, or go on with it, and judge it.

    `observe` sees the candidate's run. A candidate that cannot be judged is held, and a rerun tries again; one that
    `stop_if` stops, or of which every schema is refused, is to be rolled back.

    Raises:
        JobFileError: the job has no `canary`.
        RunBusyError: another driver is at the candidate's run.
        OutputError: the verdict cannot be written.
    """
    output = open_store(job.output)
    canary, opened = _canary(job), _Opened(observe)
    try:
        candidate = candidate_of(switched(job, read_switch(output, job.name)))
        sample = Sample(run, canary.share, canary.seed)
        # Candidates are changed while they are tried: an unfinished one is left behind, and never mixed with the next.
        flow.run(candidate, opened, fresh=True, sample=sample, hook=hook)
        judged = _judged(canary, run, open_store(opened.where))
    except RunBusyError:
        raise
    except GristmillError as error:
        judged = _failed(canary, run, opened.where, error)
    _tell(job, run, judged, hook)
    _keep(output, opened.where, judged)
    return judged


class _Opened:
    """Passes on what happens to the candidate's run, and keeps where it lies."""

    def __init__(self, observe: flow.Observer) -> None:
        self._observe = observe
        self.where = ""

    def __call__(self, event: str, value: Any) -> None:
        if event == "opened":
            self.where = value.where
        elif event == "done":
            self.where = value
        self._observe(event, value)


def _canary(job: JobConfig) -> CanaryConfig:
    if job.canary is None:
        raise JobFileError("the job has no `canary`: say there what a candidate does otherwise (docs/canary.md).")
    return job.canary


def _judged(canary: CanaryConfig, run: Store, candidate: Store) -> Judged:
    rules = canary.gate.model_dump(mode="json")
    with reading(f"{candidate.where}/{VERDICT}"):
        kept = json_object(candidate.get(VERDICT)) or {}
    if kept.get("gate") == rules and "error" not in kept and kept.keys() >= _NEEDED:
        return Judged(kept["verdict"], tuple(kept["reasons"]), kept, before=True)
    found = compare_runs(run, candidate, alpha=canary.gate.alpha)
    decided = gate(found, canary.gate)
    return Judged(decided.decision, decided.reasons, _told(canary, found, decided))


def _told(canary: CanaryConfig, found: RunComparison, decided: Gated) -> dict[str, Any]:
    return {
        "verdict": decided.decision,
        "reasons": list(decided.reasons),
        "rules": [dataclasses.asdict(rule) for rule in decided.rules],
        "documents": found.pairing.documents,
        "changes": [dataclasses.asdict(change) for change in found.changes],
        "warnings": list(found.warnings),
        **_about(canary, found.a.where, found.b.where),
    }


def _failed(canary: CanaryConfig, run: Store, candidate: str, error: GristmillError) -> Judged:
    verdict: Decision = "roll_back" if isinstance(error, _FINDINGS) else "hold"
    told = {
        "verdict": verdict,
        "reasons": [str(error)],
        "error": type(error).__name__,
        "exit_code": error.exit_code,
        **_about(canary, run.where, candidate),
    }
    return Judged(verdict, (str(error),), told, error)


def _about(canary: CanaryConfig, run: str, candidate: str) -> dict[str, Any]:
    return {
        "of": run,
        "run": candidate,
        "share": canary.share,
        "seed": canary.seed,
        "gate": canary.gate.model_dump(mode="json"),
        "judged": now(),
    }


def _keep(output: Store, candidate: str, judged: Judged) -> None:
    """Write the verdict: as the job's last one, and beside the candidate's manifest if it was not there."""
    data = json_bytes(judged.told)
    with writing(f"{output.where}/{FOLDER}/{VERDICT}"):
        if candidate and not judged.before:
            open_store(candidate).put(VERDICT, data)
        output.put(f"{FOLDER}/{VERDICT}", data)


def _tell(job: JobConfig, run: Store, judged: Judged, hook: Hook | None) -> None:
    if judged.before:
        return
    log = log_of(job, run.where.rpartition("run=")[2], "driver", hook)
    text = {"message": "; ".join(judged.reasons)}
    if judged.error is None:
        log.write("canary_judged", text, verdict=judged.verdict, documents=judged.told["documents"])
    else:
        error = judged.error
        log.write("canary_failed", text, error=type(error).__name__, exit_code=error.exit_code)
    log.close()
