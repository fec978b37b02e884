"""The flow: what happens to one document, and what happens to a job. Start reading here.

`extract` knows no Ray, no Arrow and no vLLM: it is the same function in a batch job, in a test and in a replay.
`run` knows no single document: it cuts the input into units, streams them through actors that call `extract`, and
commits what they wrote.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from pipeline.compile.plans import plans_of
from pipeline.engines import Engine
from pipeline.engines.busy import EngineBusyError
from pipeline.engines.patience import in_time
from pipeline.errors import EngineError, InputError, JobFileError
from pipeline.job import ExtractConfig, JobConfig
from pipeline.observe.events.line import Hook
from pipeline.records import Completion, Document, Draft, Manifest, Outcome
from pipeline.runtime.input import InputScan
from pipeline.runtime.lease import Beating, held
from pipeline.runtime.live import Live
from pipeline.runtime.lookups import load_lookups, lookups_digest
from pipeline.runtime.output.commit import Run, open_run
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.sampled import Sample
from pipeline.runtime.setup import Setup
from pipeline.runtime.source import Source, source_of
from pipeline.runtime.store import open_store
from pipeline.runtime.stream import stream
from pipeline.runtime.switch import CONSTRAINED, read_switch, switched
from pipeline.runtime.told import Told
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.attempt import attempt_of
from pipeline.steps.clean import Cleaned, clean
from pipeline.steps.clipped import audited, first_sampling, with_audit
from pipeline.steps.confidence import score
from pipeline.steps.ground import ground
from pipeline.steps.normalise import normalise
from pipeline.steps.parse import parse
from pipeline.steps.prompt import render
from pipeline.steps.repair import repair
from pipeline.steps.retry import Step, feedback, good_enough, may_retry, next_sampling, pause
from pipeline.steps.route import best, failed, refused, route, worth_asking
from pipeline.steps.rules import NO_LOOKUPS, Lookups, check
from pipeline.steps.salvage import salvage
from pipeline.steps.validate import validate

Observer = Callable[[str, object], None]
"""Called with what happens: ("compared", Source), then ("done", where the run lies), if nothing is to do, or ("opened",
Run), ("planned", Plans), ("scanned", InputScan), ("asking", since how many seconds), ("progress", Tally), ("numbers",
Numbers); ("warned", words) at any time."""

Trace = Callable[[str, object], None]
"""Called by `extract` with each step's name and what it made."""


async def extract(
    document: Document,
    plan: DecodingPlan,
    engine: Engine,
    config: ExtractConfig,
    *,
    lookups: Lookups = NO_LOOKUPS,
    trace: Trace = lambda _name, _made: None,
) -> Outcome:
    """Everything that happens to one document, from its text to its outcome.

    Raises:
        EngineError, EngineBusyError: it is gone, or shared and full. All else that can go wrong is in the outcome.
    """
    document = refused(document, plan) if plan.refused else document
    steps: list[Step] = []
    started, seconds = time.monotonic(), config.retry.deadline_seconds
    most = config.retry.max_attempts + config.retry.max_engine_failures if worth_asking(document) else 0
    try:
        judge = _Judge(document, clean(document.text, config.clean), plan, config, lookups, trace)
        trace("clean", judge.cleaned)
        for number in range(1, most + 1):
            prompt = render(judge.cleaned.text, plan, feedback(steps, config), cite=config.cite)
            sampling = next_sampling(steps, config) if steps else first_sampling(document, config)
            trace("render", (prompt, sampling))
            completion, waited = await in_time(engine, prompt, plan, sampling, started + seconds)
            started += waited
            trace("generate", completion)
            # An answer is kept though a step may raise on it.
            steps.append(Step(attempt_of(completion, sampling, number), Draft(), completion))
            steps[-1] = dataclasses.replace(steps[-1], draft=judge.answer(completion, number))
            if good_enough(steps[-1].draft, config) or not may_retry(steps, config, started):
                break
            await asyncio.sleep(pause(steps, config.retry, started))
        return judge.outcome(steps)
    except (EngineError, EngineBusyError):
        raise
    except Exception as error:  # a fault of ours or of a library costs this document, not the job
        trace("failed", error)
        return failed(document, plan, steps, error)


@dataclass(frozen=True, slots=True)
class _Judge:
    """All that an answer to one document is held against."""

    document: Document
    cleaned: Cleaned
    plan: DecodingPlan
    config: ExtractConfig
    lookups: Lookups
    trace: Trace

    def answer(self, completion: Completion, number: int) -> Draft:
        """The draft of one completion, with all that is wrong with it."""
        draft = self._step("parse", parse(completion, number))
        draft = self._step("repair", repair(draft, completion, number, self.plan))
        draft = self._step("normalise", normalise(draft, self.plan, number))
        draft = self._step("validate", validate(draft, self.plan, number, constrained=completion.constrained))
        return self._meaning(draft, completion, number)

    def outcome(self, steps: Sequence[Step]) -> Outcome:
        """What becomes of the document after these attempts."""
        outcome = route(self.document, self.plan, steps, self.choice(steps), self.config, self.cleaned.repairs())
        return with_audit(outcome, steps[0].completion) if steps and audited(self.document, self.config) else outcome

    def choice(self, steps: Sequence[Step]) -> Step | None:
        """The attempt whose record the outcome holds, or None if there is none to hold."""
        chosen = best(steps, self.document) or self._saved(steps)
        self.trace("route", chosen)
        return chosen

    def _saved(self, steps: Sequence[Step]) -> Step | None:
        """Layer 3: what is certain of the attempt that holds most; one that cannot be kept either tells why not."""
        if not self.config.policy.degraded or not worth_asking(self.document):
            return None
        kept = []
        for step in steps:
            draft = salvage(step, self.plan)
            if draft is not None:
                draft = self._meaning(self._step("salvage", draft), step.completion, step.attempt.number)
                kept.append(dataclasses.replace(step, draft=draft))
        return best(kept, self.document, steps) or (kept[-1] if kept else None)

    def _meaning(self, draft: Draft, completion: Completion, number: int) -> Draft:
        draft = self._step("rules", check(draft, self.document, self.plan, self.config, self.lookups, number))
        draft = self._step("ground", ground(draft, self.cleaned, self.plan, self.config, number))
        return self._step("confidence", score(draft, completion)) if self.config.policy.confidence else draft

    def _step(self, name: str, draft: Draft) -> Draft:
        self.trace(name, draft)
        return draft


def run(  # noqa: PLR0913  # what a caller may want otherwise, each by its name
    job: JobConfig,
    observe: Observer,
    *,
    record: str | None = None,
    fresh: bool = False,
    again: Collection[str] = (),
    sample: Sample | None = None,
    hook: Hook | None = None,
) -> Manifest:
    """Run a job to its committed manifest, or continue it, or find that it is done and do nothing.

    `record` names a directory to save completions in; `fresh` allows a new run although one under other digests is
    unfinished; `again` is what an incremental run is to take again (`runtime.since.AGAIN`); `sample` takes a share of
    the documents of another run instead of the input; `hook` sees each event.

    Raises:
        GristmillError: a subclass that says what stopped the job. What was written so far is kept for a rerun.
    """
    with Told(job, observe, hook) as told:
        manifest = _run(job, told, record, fresh, partial(source_of, again=again, sample=sample))
        told("committed", manifest)
    return manifest


def _run(job: JobConfig, observe: Told, record: str | None, fresh: bool, choose: Callable[..., Source]) -> Manifest:
    store, looked_up = open_store(job.output), lookups_digest(load_lookups(job))
    job = switched(job, switch := read_switch(store, job.name))
    if switch is not None and switch.state == "free":
        observe("warned", switch.told(job.name))
    source = choose(job, looked_up, store)
    found = source.scan(job.placement.unit_documents)
    observe("compared", source)
    if (last := source.done()) is not None:
        return _nothing_to_do(*last, observe, record)
    planned = plans_of(job, filter(None, found.schema_counts))
    plans = planned.by_name
    identity = identity_of(job, found, plans, looked_up, source.origin)
    if (last := source.done(identity)) is not None:
        return _nothing_to_do(*last, observe, record)
    this_run = open_run(job, identity, store, fresh=fresh, leave={CONSTRAINED} if switch else ())
    if (manifest := this_run.manifest()) is not None:
        this_run.sweep_late()
        return _nothing_to_do(this_run.where, manifest, observe, record)
    observe("opened", this_run)
    observe("planned", planned)
    with held(this_run.store) as lease:
        if (manifest := this_run.manifest()) is not None:  # by whoever held it until now
            return _nothing_to_do(this_run.where, manifest, observe, record)
        if this_run.unit_documents != job.placement.unit_documents:
            found = source.scan(this_run.unit_documents)  # the units that the run was cut into before
            if identity_of(job, found, plans, looked_up, source.origin) != identity:
                raise InputError(f"{job.input.path} is being changed while it is read. Run again when it is complete.")
        recording = record and os.path.abspath(record)
        where = (this_run.store, identity.run_id, recording)
        setup = Setup(job, plans, *where, extract, looked_up, planned.speeds, hook=observe.hook)
        observe("scanned", found)
        return _finish(this_run, found, source, setup, lease, observe)


def _finish(this_run: Run, found: InputScan, source: Source, setup: Setup, lease: Beating, observe: Told) -> Manifest:
    """Bring every unit to its commit record, and all of them to the manifest."""
    done = this_run.committed_units()
    left = [unit for unit in found.units if unit.id not in done]
    live = Live(setup, found, len(done), observe)
    with closing(stream(left, setup, partial(observe, "looked"), live)) as tallies:
        for tally in tallies:
            lease.check()
            observe("progress", tally)
    schemas = {name: plan.schema_digest for name, plan in setup.plans.items()}
    told = source.finish(this_run)
    lease.check()
    clock = observe.clock() if this_run.begun else {}  # of one that went on, nobody can tell work from pauses
    return this_run.commit(found, schemas, told, lambda: source.check(this_run), setup.speeds, clock)


def _nothing_to_do(where: str, manifest: Manifest, observe: Observer, record: str | None) -> Manifest:
    if record is not None:
        raise JobFileError(f"{where} is committed: nothing is left to record. Give another `slot`.")
    observe("done", where)
    return manifest
