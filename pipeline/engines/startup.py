"""What every engine does before its first document: warm each schema, and prove that constraints hold.

An engine that silently ignores its constraint still answers, and its answers parse often enough to go
unnoticed. So before anything else a request with a one-record language must come back as that record,
although the prompt asks for something else. Only `Engine.generate` is used here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipeline.engines import Engine
from pipeline.errors import EngineError, SchemaError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, literal_plan

# No model says this by itself, and the prompt does not hold it.
_CONSTANT = "quartz vellum 4917-kx"
_INDUCEMENT = "Write a poem of four lines about the sea. Write nothing but the poem, and no JSON."
_PROOF_TOKENS = 64
_SHOWN = 200


async def prove_and_warm(engine: Engine, plans: Sequence[DecodingPlan], *, constrained: bool = True) -> None:
    """Warm the engine for these plans, then prove its constraint, unless nothing is to be decoded under one.

    Raises:
        EngineError: the constraint is not in force, or the engine cannot serve.
        SchemaError: the engine refuses one of the plans.
    """
    await warm(engine, plans, constrained=constrained)
    if constrained:
        await prove_constraint(engine)


async def prove_constraint(engine: Engine) -> None:
    """Require the one record of a one-record language from a prompt that asks for a poem.

    Blanks around JSON tokens are let pass: an engine may allow them.

    Raises:
        EngineError: anything else came back.
    """
    plan = literal_plan("startup", _CONSTANT)
    prompt = Prompt(system=plan.prefix, user=_INDUCEMENT)
    completion = await engine.generate(prompt, plan, Sampling(max_tokens=_PROOF_TOKENS, temperature=0.0))
    if completion.finish_reason == "stop" and not completion.error and _is_proof(completion.text):
        return
    raise EngineError(
        f"the engine does not obey its schema constraint: expected {json.dumps({'answer': _CONSTANT})} and "
        f"finish reason `stop`, got {_shown(completion)}. Check that structured outputs are switched on for "
        "this engine, that its back end is the one that the config names, and that max_model_len is not tiny."
    )


async def warm(engine: Engine, plans: Sequence[DecodingPlan], *, constrained: bool = True) -> None:
    """Compile each plan's grammar and fill the prefix cache with its system message: one output token each.

    Raises:
        EngineError: the engine cannot answer even an empty document of a plan.
        SchemaError: the engine refuses a plan's schema.
    """
    for plan in plans:
        sampling = Sampling(max_tokens=1, constrained=constrained)
        completion = await engine.generate(Prompt(system=plan.prefix, user=""), plan, sampling)
        if completion.error == "schema_refused":
            raise SchemaError(
                f"schema {plan.name} cannot be decoded under by this engine: {completion.detail}. "
                "Change the schema, or name the other grammar back end in the engine config."
            )
        if completion.error == "prompt_too_long":
            raise EngineError(
                f"the prompt of schema {plan.name} is too long without any document: {completion.detail}. "
                "Raise max_model_len, or shorten the schema's instructions and examples."
            )
        if completion.error or completion.finish_reason in ("error", "abort"):
            raise EngineError(f"the engine cannot serve schema {plan.name}: got {_shown(completion)}.")


def _is_proof(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"answer": _CONSTANT})
    except ValueError:
        return False


def _shown(completion: Completion) -> str:
    cut = completion.text[:_SHOWN] + ("…" if len(completion.text) > _SHOWN else "")
    trouble = f", error {completion.error}: {completion.detail}" if completion.error else ""
    return f"{cut!r} and finish reason `{completion.finish_reason}`{trouble}"
