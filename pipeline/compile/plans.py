"""Plans: what every schema of a job is decoded under, settled before an engine starts.

A schema that cannot be loaded, satisfied or compiled is refused with its group of documents; the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.compile.check import Trial, check, choose
from pipeline.compile.trial import backends_of
from pipeline.errors import SchemaError
from pipeline.job import JobConfig, RecordedConfig
from pipeline.schema.plan import DecodingPlan, build_plan, refused_plan
from pipeline.schema.registry import DocumentSchema, load_schema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.transport import Transport
from pipeline.steps.prompt import system_prompt


@dataclass(frozen=True)
class Plans:
    """The plan of each schema by name, refused ones among them, and why its back end was chosen."""

    by_name: Mapping[str, DecodingPlan]
    trials: Mapping[str, Trial]
    reasons: Mapping[str, str]


def plans_of(job: JobConfig, names: Iterable[str]) -> Plans:
    """The plans of the schemas that an input names.

    Raises:
        SchemaError: not one of them can be used; the message has the reason of each.
        EngineError: the model whose tokenizer the grammars need is missing.
    """
    schemas: dict[str, DocumentSchema] = {}
    refused: dict[str, SchemaError] = {}
    for name in sorted(names):
        try:
            schemas[name] = load_schema(job.schemas, name)
        except SchemaError as error:
            refused[name] = error
    plans = {name: refused_plan(name, "", error.message) for name, error in refused.items()}
    trials, reasons = _chosen(job, schemas)
    for name, schema in schemas.items():
        try:
            plans[name] = _plan(job, schema, trials.get(name))
        except SchemaError as error:
            refused[name] = error
            plans[name] = refused_plan(name, schema.digest, error.message)
    if plans and len(refused) == len(plans):
        first, *others = refused.values()
        raise SchemaError("\n".join(error.message for error in (first, *others)), first.code)
    return Plans(dict(sorted(plans.items())), trials, reasons)


def policy_of(job: JobConfig) -> Policy:
    """What a job's config says about the transport language."""
    narrow = job.sampling.narrow
    return Policy(job.policy.abstain, narrow.max_items, narrow.max_length)


def _chosen(job: JobConfig, schemas: Mapping[str, DocumentSchema]) -> tuple[dict[str, Trial], dict[str, str]]:
    """The trial of the chosen back end of each schema, and why. A recording has no tokenizer to try anything with."""
    if isinstance(job.engine, RecordedConfig) or not schemas:
        return {}, {}
    engine, backends = job.engine, backends_of(job.engine.backend)
    found = check(list(schemas.values()), backends, engine.model, compact=engine.compact_json, policy=policy_of(job))
    best = {name: choose(found[name, backend] for backend in backends) for name in schemas}
    return {name: trial for name, (trial, _) in best.items()}, {name: why for name, (_, why) in best.items()}


def _plan(job: JobConfig, schema: DocumentSchema, trial: Trial | None) -> DecodingPlan:
    """The plan of one schema.

    Raises:
        SchemaError: no back end that the job allows can decode under it.
    """
    prefix = system_prompt(schema, job.policy.abstain)
    compact, policy = job.engine.compact_json, policy_of(job)
    if trial is None:
        return build_plan(schema, prefix, backend=job.engine.backend, compact_json=compact, policy=policy)
    if not trial.usable:
        raise SchemaError(
            f"schema {schema.name} cannot be decoded under: {trial.kind}, {trial.words}. `gristmill check "
            f"{schema.name}` says more.",
            trial.kind,
        )
    transport = Transport(trial.transport, trial.left, trial.narrowed)
    return build_plan(schema, prefix, backend=trial.backend, compact_json=compact, policy=policy, transport=transport)
