"""Plans: what every schema of a job is decoded under, settled before an engine starts.

A schema that cannot be loaded, satisfied or compiled is refused with its group of documents; the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from pipeline.compile.check import Trial, answers, choose, trial_job, trial_of
from pipeline.compile.report_budget import budget_job, told
from pipeline.compile.trial import backends_of
from pipeline.engines.recorded import recorded_digests
from pipeline.errors import JobFileError, SchemaError
from pipeline.job import RecordedConfig, WorkConfig
from pipeline.observe.metrics.numbers import Speeds
from pipeline.schema.plan import DecodingPlan, build_plan, refused_plan
from pipeline.schema.reach import declares
from pipeline.schema.registry import DocumentSchema, load_schema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.transport import Transport
from pipeline.steps.prompt import system_prompt


@dataclass(frozen=True)
class Plans:
    """The plan of each schema by name, refused ones among them, why its back end was chosen, what its budget risks, and
    all that is known of that budget (`report_budget.told`)."""

    by_name: Mapping[str, DecodingPlan]
    trials: Mapping[str, Trial]
    reasons: Mapping[str, str]
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def speeds(self) -> Speeds:
        """What the trials measured, for metrics; a verdict that is kept has the numbers of the machine that made it."""
        return {
            name: {"compile": trial.compile_seconds, **{p[1:]: trial.mask_seconds[p] for p in ("p50", "p99")}}
            for name, trial in self.trials.items()
            if trial.mask_seconds.keys() >= {"p50", "p99"}
        }


def plans_of(job: WorkConfig, names: Iterable[str]) -> Plans:
    """The plans of the schemas that an input names.

    Raises:
        SchemaError: not one of them can be used; the message has the reason of each.
        JobFileError: a lookup speaks of a place that no schema declares.
        EngineError: the model whose tokenizer the grammars need is missing.
    """
    schemas: dict[str, DocumentSchema] = {}
    refused: dict[str, SchemaError] = {}
    for name in sorted(names):
        try:
            schemas[name] = load_schema(job.schemas, name)
        except SchemaError as error:
            refused[name] = error
    _check_lookups(job, schemas)
    plans = {name: refused_plan(name, "", error.message) for name, error in refused.items()}
    tried = _tried(job, schemas)
    recorded = recorded_digests(job.engine.recording) if isinstance(job.engine, RecordedConfig) else set()
    for name, schema in schemas.items():
        try:
            plans[name] = _plan(job, schema, tried.get(name), recorded)
        except SchemaError as error:
            refused[name] = error
            plans[name] = refused_plan(name, schema.digest, error.message)
    if plans and len(refused) == len(plans):
        first, *others = refused.values()
        raise SchemaError("\n".join(error.message for error in (first, *others)), first.code)
    return Plans(
        dict(sorted(plans.items())),
        {name: found.trial for name, found in tried.items()},
        {name: found.why for name, found in tried.items()},
        {name: found.warnings for name, found in tried.items() if found.warnings and name not in refused},
        {name: found.budget for name, found in tried.items()},
    )


def _check_lookups(job: WorkConfig, schemas: Mapping[str, DocumentSchema]) -> None:
    """Refuse a lookup whose pointer means nothing in the schemas that it is for: it would check nothing, silently."""
    for lookup in job.lookups:
        judged = [schema for name, schema in schemas.items() if lookup.schema_name in (None, name)]
        if judged and not any(declares(schema.body, lookup.pointer) for schema in judged):
            names = ", ".join(schema.name for schema in judged)
            raise JobFileError(f"lookups: nothing is declared at pointer {lookup.pointer!r} in {names}.")


@dataclass(frozen=True, slots=True)
class _Tried:
    trial: Trial
    why: str
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    budget: Mapping[str, Any]


def policy_of(job: WorkConfig) -> Policy:
    """What a job's config says about the transport language."""
    narrow = job.sampling.narrow
    return Policy(job.policy.abstain, narrow.max_items, narrow.max_length)


def _tried(job: WorkConfig, schemas: Mapping[str, DocumentSchema]) -> dict[str, _Tried]:
    """The trial of the chosen back end of each schema, and its budget. A recording has no tokenizer to try with."""
    if isinstance(job.engine, RecordedConfig) or not schemas:
        return {}
    engine, policy, backends = job.engine, policy_of(job), backends_of(job.engine.backend)
    order = [(name, backend) for name in schemas for backend in backends]
    asked = [trial_job(schemas[name], backend, compact=engine.compact_json, policy=policy) for name, backend in order]
    asked += [budget_job(schema, policy, []) for schema in schemas.values()]
    said = answers(engine.tokenizer_model, asked)
    trials = {key: trial_of(key[1], answer) for key, answer in zip(order, said, strict=False)}
    found = {}
    for name, budget in zip(schemas, said[len(order) :], strict=True):
        best, why = choose(trials[name, backend] for backend in backends)
        measured = told(budget, max_tokens_of(job), engine.max_model_len)
        findings = measured["findings"]
        by_severity = [
            tuple(item["message"] for item in findings if (item["severity"] == "refuse") == refuse)
            for refuse in (True, False)
        ]
        refusals, warnings = by_severity
        if measured["words"]:
            warnings += (f"its token budget is not known: {measured['words']}",)
        if best.usable and best.admission == "unknown":
            warnings += ("vLLM is not installed here: whether it would let this schema pass is not known",)
        if best.narrowed:
            warnings += (f"narrowed on request at {', '.join(pointer or '/' for pointer in best.narrowed[:5])}",)
        found[name] = _Tried(best, why, refusals, warnings, measured)
    return found


def max_tokens_of(job: WorkConfig) -> int:
    """The most tokens that a job gives one answer."""
    return min(job.sampling.max_tokens, job.retry.max_output_tokens or job.sampling.max_tokens)


def _plan(job: WorkConfig, schema: DocumentSchema, tried: _Tried | None, recorded: Set[str]) -> DecodingPlan:
    """The plan of one schema. Of what was not tried, the one that was `recorded`.

    Raises:
        SchemaError: no back end that the job allows can decode under it, or the job's budget holds no answer.
    """
    prefix = system_prompt(schema, job.policy.abstain)
    compact, policy = job.engine.compact_json, policy_of(job)
    if tried is None:
        made = [
            build_plan(schema, prefix, backend=backend, compact_json=compact, policy=policy)
            for backend in backends_of(job.engine.backend)
        ]
        return next((plan for plan in made if plan.digest in recorded), made[0])
    trial = tried.trial
    if not trial.usable:
        raise SchemaError(
            f"schema {schema.name} cannot be decoded under: {trial.kind}, {trial.words}. `gristmill check "
            f"{schema.name}` says more.",
            trial.kind,
        )
    if tried.refusals:
        raise SchemaError(f"schema {schema.name}: {' '.join(tried.refusals)}", "budget")
    transport = Transport(trial.transport, trial.left, trial.narrowed)
    return build_plan(schema, prefix, backend=trial.backend, compact_json=compact, policy=policy, transport=transport)
