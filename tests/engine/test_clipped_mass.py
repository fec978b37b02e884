"""Clipped mass of real vLLM, held against a forward pass of the same model by another library and the real matcher."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support import plan_of

from pipeline.engines import build, models
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import Grammar, backend_of
from pipeline.engines.vllm import VllmEngine
from pipeline.engines.vllm_scores import forced, read
from pipeline.flow import extract
from pipeline.job import ExtractConfig, VllmConfig
from pipeline.jobfile import load_engine
from pipeline.records import Completion, Document, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.clipped import clipped

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string", "maxLength": 30},
        "currency": {"enum": ["EUR", "USD", None]},
        "lines": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 2},
        "total": {"type": ["number", "null"]},
    },
    "required": ["vendor", "currency", "lines", "total"],
}
TEXTS = ["Ann & Co, two cups of tea, total 19.90 RM", "Büro 粥 GmbH\n3 pens 4,50\nSumme EUR 4,50", "nothing at all"]


def plan_for(engine: VllmEngine, schema: Any, name: str = "receipt@1") -> DecodingPlan:
    return plan_of(schema, name, backend="guidance" if "guidance" in engine.fingerprint else "xgrammar")


async def audited(engine: VllmEngine, plan: DecodingPlan, text: str) -> tuple[Completion, list[int]]:
    prompt = Prompt(plan.prefix, text)
    completion = await engine.generate(prompt, plan, Sampling(120, audit=4096))
    assert completion.audit == "done", completion
    return completion, engine._chat.encode(prompt)


def clips(completion: Completion) -> list[float]:
    masked = [row[token] for token, row in zip(completion.token_ids, completion.logprobs, strict=True)]
    return [1 - math.exp(raw - under) for (raw, _), under in zip(completion.unmasked, masked, strict=True)]


def by_another_way(prompt: list[int], completion: Completion, plan: DecodingPlan, dtype: str) -> list[float]:
    """1 minus what the model gives to the tokens that the matcher allows, at every place: no mask, no ratio."""
    import torch
    from transformers import AutoModelForCausalLM

    path = models.resolve("embedded")
    model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype)).eval()
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *completion.token_ids]])).logits[0]
    shares = logits[len(prompt) - 1 : -1].float().softmax(-1)
    size = models.vocabulary_size(path)
    matcher = Grammar(ChatTokenizer(path).tokenizer, backend_of(plan.backend), True, size).matcher(plan.transport)
    found = []
    for token, row in zip(completion.token_ids, shares, strict=True):
        found.append(1 - float(row[torch.from_numpy(matcher.allowed())].sum()))
        matcher.accept(token)
    return found


async def test_the_figures_are_those_of_a_forward_pass_but_for_rounding_to_16_bits(engine: VllmEngine) -> None:
    plan = plan_for(engine, SCHEMA)
    completion, prompt = await audited(engine, plan, TEXTS[0])
    mine, other = clips(completion), by_another_way(prompt, completion, plan, "bfloat16")
    differences = [abs(one - two) for one, two in zip(mine, other, strict=True)]
    assert sum(differences) / len(differences) < 0.03, list(zip(mine, other, strict=True))
    assert max(other) > 0.2  # there is something to find


async def test_an_enum_that_lacks_what_the_model_wants_shows_at_its_field(engine: VllmEngine) -> None:
    user = 'The colour of grass is green. Answer with JSON: {"colour": "green"}'

    async def lost(*colours: str) -> float:
        schema = {"type": "object", "properties": {"colour": {"enum": list(colours)}}, "required": ["colour"]}
        completion, _ = await audited(engine, plan_for(engine, schema, "grass@1"), user)
        return sum(
            place.mass for place in clipped(completion) or () if (place.pointer, place.part) == ("/colour", "value")
        )

    enough, tight = await asyncio.gather(lost("red", "green", "blue"), lost("red", "blue"))
    assert tight - enough > 0.4, (tight, enough)


async def test_an_audit_changes_no_outcome(engine: VllmEngine) -> None:
    plan = plan_for(engine, SCHEMA)
    document = Document("d", TEXTS[1], "s", plan.name)
    config = ExtractConfig.model_validate({"sampling": {"max_tokens": 120}})
    with_it = await extract(
        document, plan, engine, config.model_copy(update={"audit": config.audit.model_copy(update={"fraction": 1.0})})
    )
    without = await extract(document, plan, engine, config)
    assert with_it.audit == "done" and len(with_it.clipped) > 4
    assert (with_it.record, with_it.status, with_it.problems) == (without.record, without.status, without.problems)


async def test_an_answer_that_was_cut_is_audited_too_and_its_blanks_are_told_apart(engine: VllmEngine) -> None:
    plan = plan_for(engine, SCHEMA)
    completion = await engine.generate(Prompt(plan.prefix, TEXTS[0]), plan, Sampling(12, audit=4096))
    assert (completion.finish_reason, completion.audit, len(completion.unmasked)) == ("length", "done", 12)
    places = clipped(completion)
    assert places is not None
    assert sum(place.tokens for place in places if place.part != "blank") == 12
    assert any(place.part == "blank" and place.mass > 0.001 for place in places), places


async def test_as_a_part_of_a_prompt_the_answer_is_scored_alike(engine: VllmEngine) -> None:
    """The way of engines that are not on a CPU."""
    plan = plan_for(engine, SCHEMA)
    completion, prompt = await audited(engine, plan, TEXTS[0])
    ids = list(completion.token_ids)
    said, scored = await forced(engine._llm, prompt, ids), await read(engine._llm, prompt, ids)
    assert said is not None and scored is not None
    differences = [abs(math.exp(a[id_]) - math.exp(b[id_])) for id_, a, b in zip(ids, said, scored, strict=True)]
    assert sum(differences) / len(differences) < 0.03


# --- with 32 bits, to four digits


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["xgrammar", "guidance"])
async def exact(request: pytest.FixtureRequest) -> AsyncIterator[VllmEngine]:
    config: VllmConfig = load_engine(ROOT / "serve_configs" / "cpu_embedded.yaml")
    changes = {"backend": request.param, "dtype": "float32", "environment": {"VLLM_CPU_KVCACHE_SPACE": "1"}}
    engine = build(config.model_copy(update=changes))
    assert isinstance(engine, VllmEngine)
    await engine.start([])
    yield engine
    await engine.close()


@pytest.mark.slow  # an engine of its own for each back end
@pytest.mark.parametrize("text", TEXTS)
async def test_with_32_bits_every_token_s_figure_is_that_of_a_forward_pass(exact: VllmEngine, text: str) -> None:
    plan = plan_for(exact, SCHEMA)
    completion, prompt = await audited(exact, plan, text)
    other = by_another_way(prompt, completion, plan, "float32")
    assert clips(completion) == pytest.approx(other, abs=1e-3)
    read_instead = await read(exact._llm, prompt, list(completion.token_ids))
    assert read_instead is not None
    scores = tuple((row[id_], 0.0) for id_, row in zip(completion.token_ids, read_instead, strict=True))
    assert clips(dataclasses.replace(completion, unmasked=scores)) == pytest.approx(other, abs=1e-3)
