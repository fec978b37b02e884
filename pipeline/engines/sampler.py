"""The engine without a model: seeded random legal tokens, through the real tokenizer and the real grammar.

A completion depends on the prompt, the plan, the sampling and the config's seed, and on nothing else, so
that runs can be compared byte by byte whatever the order or the concurrency. (Times differ, and
`cached_tokens` is 0 for the first request of a plan that `start` did not warm.) It fails on demand, see
`faults.py`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from pipeline.engines.alignment import token_ends
from pipeline.engines.blanks import Blanks
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.draw import Draw, Vocabulary, legal_count
from pipeline.engines.faults import FaultPicker, LateMask
from pipeline.engines.grammar import Grammar, backend_of
from pipeline.engines.models import resolve, vocabulary_size
from pipeline.engines.startup import prove_and_warm
from pipeline.errors import EngineError, SchemaError
from pipeline.job import Fault, SamplerConfig
from pipeline.records import Completion, FinishReason, Prompt, Sampling
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan

_YIELD_EVERY = 32
_PROSE = "Sure! Here is the record that you asked for:\n\n```json\n{}\n```\n\nLet me know if you need more."
_FRAGMENT = ", and so on"


@dataclass(frozen=True, slots=True)
class _Answer:
    """Drawn tokens (with the end token, if it was drawn) and how many tokens were legal at each place."""

    ids: list[int]
    legal: list[int]
    finish: FinishReason
    constrained: bool = True
    error: str = ""
    detail: str = ""


class SamplerEngine:
    """See the module. `proven`: the start-up check passed; completions carry it as `constrained`."""

    def __init__(self, config: SamplerConfig, *, constrained: bool = True) -> None:
        """Load the tokenizer and the matcher (a few seconds).

        Raises:
            EngineError: the config's model is not found or has no usable tokenizer.
        """
        path = resolve(config.model)
        size = vocabulary_size(path)
        self._config = config
        self._chat = ChatTokenizer(path)
        backend = backend_of(config.backend)
        self._grammar = Grammar(self._chat.tokenizer, backend, config.compact_json, size)
        self._vocabulary = Vocabulary(self._chat.tokenizer, size, self._chat.control_ids)
        self._compact = config.compact_json
        self._blanks: Blanks | None = None
        self._faults = FaultPicker(config.faults, config.seed)
        self._slots = asyncio.Semaphore(config.max_num_seqs)
        self._prefix_tokens: dict[tuple[str, str], int] = {}
        self._starting = False
        self._dead = ""
        self._is_stuck = False
        self._constrained = constrained
        self.proven = False
        self.fingerprint = f"sampler:{Path(path).name}:{backend}@{self._grammar.version}"

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Warm the plans and prove the constraint, if one is used. Faults are for documents and do not happen here."""
        self._starting = True
        try:
            await prove_and_warm(self, plans, constrained=self._constrained)
        finally:
            self._starting = False
        self.proven = self._constrained

    async def close(self) -> None:
        self._prefix_tokens.clear()

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt; never, if the fault `stick` struck, now or before.

        Raises:
            EngineError: the fault `die` struck, now or before.
        """
        self._require_alive()
        asked = perf_counter()
        async with self._slots:
            self._require_alive()
            began = perf_counter()
            completion = await self._serve(prompt, plan, sampling)
            # Requests in flight go down with a real engine, too.
            self._require_alive()
            if self._is_stuck:
                await asyncio.get_running_loop().create_future()
        return replace(completion, queue_seconds=began - asked, seconds=perf_counter() - began)

    async def _serve(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        ids = self._chat.encode(prompt)
        base = Completion("", "error", False, engine=self.fingerprint, plan_digest=plan.digest, prompt_tokens=len(ids))
        if len(ids) + sampling.max_tokens > self._config.max_model_len:
            numbers = f"{len(ids)} prompt tokens + {sampling.max_tokens} output tokens"
            detail = f"{numbers} > max_model_len {self._config.max_model_len}"
            return replace(base, error="prompt_too_long", detail=detail)
        fault = None if self._starting else self._faults.pick(prompt.user)
        if fault and fault.kind == "die":
            self._dead = "the sampler died, as its config's faults ask for"
            raise EngineError(self._dead)
        self._is_stuck = self._is_stuck or (fault is not None and fault.kind == "stick")
        if fault and fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
        base = replace(base, cached_tokens=self._cached_tokens(prompt.system, plan))
        try:
            drawn = await self._draw(prompt, plan, sampling, is_late=fault is not None and fault.kind == "late_mask")
        except SchemaError as error:
            return replace(base, error="schema_refused", detail=str(error))
        answer = self._misbehave(drawn, fault, sampling)
        await asyncio.sleep(self._config.token_seconds * len(answer.ids))
        return self._completion(base, answer, sampling)

    async def _draw(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling, *, is_late: bool) -> _Answer:
        if not self._grammar.knows(plan.transport):
            # A slow compile must not hold up the other requests. The matcher it makes is cheap to throw away.
            await asyncio.to_thread(self._grammar.matcher, plan.transport)
        real = self._grammar.matcher(plan.transport)
        matcher = LateMask(real) if is_late else real
        draw = Draw(self._vocabulary, self._seed(prompt, plan, sampling))
        ids: list[int] = []
        legal: list[int] = []
        while len(ids) < sampling.max_tokens:
            mask = matcher.mask()
            token = draw.choose(mask)
            if token is None:
                return _Answer(ids, legal, "error", error="engine_failed", detail="no token is legal")
            ids.append(token)
            legal.append(legal_count(mask))
            if token in self._vocabulary.end_ids:
                # As in vLLM, a matcher that broke on the way shows as an early end.
                return _Answer(ids, legal, "stop", detail=matcher.error())
            if not matcher.accept(token):
                detail = f"the matcher refused token {token}, which it had allowed. {matcher.error()}"
                return _Answer(ids, legal, "error", error="engine_failed", detail=detail)
            if len(ids) % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return _Answer(ids, legal, "length", detail=matcher.error())

    def _misbehave(self, answer: _Answer, fault: Fault | None, sampling: Sampling) -> _Answer:
        """The answer as the fault leaves it; faults that are no matter of text are dealt with elsewhere."""
        kind = fault.kind if fault else ""
        half = max(1, len(answer.ids) // 2)
        if kind == "empty":
            return replace(answer, ids=[], legal=[], finish="stop")
        if kind in ("truncate", "abort"):
            finish: FinishReason = "length" if kind == "truncate" else "abort"
            return replace(answer, ids=answer.ids[:half], legal=answer.legal[:half], finish=finish)
        if kind == "loop":
            fragment = self._chat.text_ids(_FRAGMENT)
            ids = [*answer.ids[:half], *(fragment * sampling.max_tokens)][: sampling.max_tokens]
            return _Answer(ids, self._all_legal(ids), "repetition")
        if kind == "prose" or not sampling.constrained:
            return self._chatter(answer, sampling)
        return answer

    def _chatter(self, answer: _Answer, sampling: Sampling) -> _Answer:
        """The answer as a model without a constraint gives it: fenced, and with words around."""
        ids = self._chat.text_ids(_PROSE.replace("{}", self._chat.decode(answer.ids)))
        cut = ids[: sampling.max_tokens]
        finish: FinishReason = "stop" if answer.finish == "stop" and len(cut) == len(ids) else "length"
        return _Answer(cut, self._all_legal(cut), finish, constrained=False)

    def _completion(self, base: Completion, answer: _Answer, sampling: Sampling) -> Completion:
        audit = sampling.audit > 0 and not answer.error
        scores = zip(answer.ids, answer.legal, strict=True) if audit or sampling.logprobs is not None else ()
        text = self._chat.decode(answer.ids)
        aligned = audit or sampling.token_ids or sampling.logprobs is not None
        completion = replace(
            base,
            text=text,
            finish_reason=answer.finish,
            constrained=answer.constrained and sampling.constrained and self.proven,
            output_tokens=len(answer.ids),
            error=answer.error,
            detail=answer.detail,
            token_ids=tuple(answer.ids) if audit or sampling.token_ids else (),
            logprobs=tuple({token: -math.log(legal)} for token, legal in scores),
            token_ends=token_ends(self._chat.tokenizer, answer.ids, text) if aligned else (),
        )
        return self._audited(completion, sampling.audit) if audit else completion

    def _audited(self, completion: Completion, most: int) -> Completion:
        """Without a constraint every token is as likely as any other, so that all is known without asking again."""
        if completion.prompt_tokens + completion.output_tokens > most:
            return replace(completion, audit="too_long")
        if self._blanks is None:
            control = self._chat.control_ids
            texts = self._vocabulary.texts
            self._blanks = Blanks([b"" if id_ in control else text for id_, text in enumerate(texts)])
        size = self._vocabulary.size
        counts = self._blanks.counts(completion.token_ids) if self._compact else [0] * len(completion.token_ids)
        return replace(completion, audit="done", unmasked=tuple((-math.log(size), count / size) for count in counts))

    def _all_legal(self, ids: list[int]) -> list[int]:
        return [self._vocabulary.size] * len(ids)

    def _seed(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> int:
        return int(digest([self._config.seed, sampling.seed, plan.digest, prompt.system, prompt.user]), 16)

    def _cached_tokens(self, system: str, plan: DecodingPlan) -> int:
        """Tokens that all prompts of the plan share, if one was served before."""
        key = (plan.digest, system)
        if key in self._prefix_tokens:
            return self._prefix_tokens[key]
        two = (self._chat.encode(Prompt(system, user)) for user in ("", "x"))
        differing = (index for index, (one, other) in enumerate(zip(*two, strict=False)) if one != other)
        self._prefix_tokens[key] = next(differing, 0)
        return 0

    def _require_alive(self) -> None:
        if self._dead:
            raise EngineError(self._dead)
