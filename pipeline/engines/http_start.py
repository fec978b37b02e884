"""What is proven of a server before its first document, from outside: it has no matcher that could be asked.

1. An answer of one token is cut after it: the bound on answers is in force.
2. The one record of a one-record language comes back, although the prompt asks for a poem: three times, with constants
   drawn anew, so that nothing was kept or guessed. JSON that is not that record is JSON mode.
3. Each plan is taken.

A server that only puts the schema into the prompt may pass, if its model is obedient: `http_probe` tells more.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Literal

from pipeline.engines import Engine
from pipeline.engines.http_reply import cleaned
from pipeline.engines.startup import warm
from pipeline.errors import EngineError
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, literal_plan

PROOFS = 3
_PROOF_TOKENS = 1024
"""A reasoning model may need hundreds before it answers."""
_ONE_TOKEN = 64
"""Characters that no single token has."""
_POEM = "Write a poem of four lines about the sea. Write nothing but the poem, and no JSON."
_FREE = (
    "Use a server that decodes under schemas, or write `constraint: none` in the engine config: then no schema is "
    "sent, and answers are repaired and validated as those of an unconstrained model."
)

Mode = Literal["schema", "json", "text"]
"""What a server does with a schema: decodes under it, writes some JSON or other, or ignores it."""


async def check_server(engine: Engine, plans: Sequence[DecodingPlan], *, constrained: bool) -> None:
    """The three steps of the module; without a constraint, the first and the last.

    Raises:
        EngineError: the server ignores the bound or the constraint, knows JSON mode only, or cannot serve.
        SchemaError: it refuses one of the plans.
    """
    for _ in range(2):  # twice the same, so that the engine sees how the server counts what it has cached
        await _prove_bound(engine)
    if constrained:
        for number in range(PROOFS):
            await _prove_schema(engine, number)
    await warm(engine, plans)


def mode_of(completion: Completion, constant: str) -> Mode:
    """What a completion shows of the server, of which the record `{"answer": constant}` was asked by schema alone."""
    try:
        value = json.loads(completion.text)
    except (ValueError, RecursionError):
        # JSON mode under a prompt that asks for something else often runs until it is cut.
        begun = completion.text.lstrip()[:1] in ("{", "[") or (completion.text != "" and not completion.text.strip())
        return "json" if completion.finish_reason == "length" and begun else "text"
    if completion.finish_reason == "stop" and value == {"answer": constant}:
        return "schema"
    return "json" if isinstance(value, dict | list) else "text"


async def _prove_bound(engine: Engine) -> None:
    plan = literal_plan("bound", "")
    asked = Sampling(max_tokens=1, seed=0, constrained=False)
    completion = await engine.generate(Prompt(plan.prefix, _POEM), plan, asked)
    _require_answer(completion)
    if len(completion.text) > _ONE_TOKEN:
        raise EngineError(
            f"the server ignores the bound on its answers: asked for one token, it wrote {len(completion.text)} "
            "characters. Write `max_tokens_field: max_tokens` in the engine config, or the other way round."
        )


async def _prove_schema(engine: Engine, number: int) -> None:
    constant = f"quartz {secrets.token_hex(8)} vellum"
    plan = literal_plan(f"startup{number}", constant)
    asked = Sampling(max_tokens=_PROOF_TOKENS, temperature=0.0, seed=number)
    completion = await engine.generate(Prompt(plan.prefix, _POEM), plan, asked)
    if completion.error == "schema_refused":
        raise EngineError(f"the server refuses a schema of one constant: {completion.detail}. Try `dialect`. {_FREE}")
    _require_answer(completion)
    mode = "text" if completion.refusal else mode_of(completion, constant)
    if mode == "schema":
        return
    if completion.finish_reason == "length" and completion.reasoning.strip() and not completion.text.strip():
        raise EngineError(
            f"the model wrote {_PROOF_TOKENS} tokens of reasoning and no answer. Ask for less by `extra_body`, such as "
            "`reasoning_effort: low`, or switch reasoning off."
        )
    shown = f"{cleaned(completion.text or completion.refusal)!r} and finish reason `{completion.finish_reason}`"
    if mode == "json":
        raise EngineError(
            f"the server knows JSON mode only: it writes JSON, but not of the schema that it was given. Expected "
            f'{{"answer": "{constant}"}}, got {shown}. `dialect: vllm` is what vLLM\'s own server wants. {_FREE}'
        )
    raise EngineError(
        f'the server does not obey its schema constraint: expected {{"answer": "{constant}"}}, got {shown}. Look at '
        f"`dialect`, and whether structured outputs are switched on. {_FREE}"
    )


def _require_answer(completion: Completion) -> None:
    if completion.error or completion.finish_reason in ("error", "abort"):
        raise EngineError(
            f"the server cannot be used: {completion.detail or completion.finish_reason}. `omit`, `extra_body` and "
            "`max_tokens_field` of the engine config fit requests to servers that know other fields."
        )
