"""What `bench.grouping` is made of: schemas, documents, engines in this process, and a model of their prefix caches."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.sampler import SamplerEngine
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.closing import close_objects
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import DocumentSchema
from pipeline.steps.prompt import render, system_prompt

Item = tuple[Prompt, DecodingPlan]

BLOCK = 16
"""Tokens of one block of vLLM's cache; only whole ones are found again."""
NOUNS = (
    "vendor",
    "buyer",
    "total",
    "tax",
    "date",
    "place",
    "status",
    "owner",
    "currency",
    "version",
    "author",
    "grade",
)
INSTRUCTIONS = (
    "The text describes one record of the kind named below. Take every value from the text, do not compute or guess. "
    "Write dates as year, month and day. Write amounts without signs of currency. Where the text gives a thing twice, "
    "the later one counts. Leave names as they are written there, titles and legal forms included."
)
TEXT = "No. {n} of kind {schema}: {words}."


def plans(count: int, mark: str) -> list[DecodingPlan]:
    """Plans of `count` schemas. They are the same for each `mark`, but for it, so their grammars are others."""
    made = []
    for number in range(count):
        draw = random.Random(number)
        name = f"kind-{number:02d}-{mark}@1"
        keys = [f"{noun}_{mark}" for noun in draw.sample(NOUNS, 5)]
        body = {"type": "object", "properties": {key: _leaf(draw) for key in keys}, "required": keys}
        closed, pointers = close_objects(body)
        schema = DocumentSchema(name, closed, INSTRUCTIONS, (), pointers, digest(body))
        made.append(build_plan(schema, system_prompt(schema), backend="xgrammar", compact_json=True))
    return made


def documents(of: Sequence[DecodingPlan], count: int) -> list[Item]:
    """`count` documents, schema by schema, as units come; every text another one."""
    made = []
    for number in range(count):
        plan = of[number * len(of) // count]
        words = " ".join(random.Random(number).choices(NOUNS, k=40))
        made.append((render(TEXT.format(n=number, schema=plan.name, words=words), plan), plan))
    return made


def _leaf(draw: random.Random) -> dict[str, Any]:
    return draw.choice(
        [
            {"type": "string", "maxLength": draw.randint(6, 12)},
            {"type": "integer", "minimum": 0, "maximum": 10 ** draw.randint(2, 6)},
            {"enum": draw.sample(NOUNS, 4)},
            {"type": "string", "format": "date"},
            {"type": ["string", "null"], "pattern": "^[A-Z]{2}[0-9]{4}$"},
        ]
    )


class PrefixCache:
    """A model of an engine's prefix cache that holds so many tokens; None: without bound.

    As in vLLM, what running requests use stays, and of the rest the longest unused goes first. Not as there: a prefix
    goes as a whole and not block by block; one that is just being computed counts as there; and requests that do not
    fit run all the same.
    """

    def __init__(self, tokens: int | None) -> None:
        self.tokens = tokens
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._used: Counter[str] = Counter()
        self._running = 0
        self._size = 0

    def begin(self, plan: str, prefix: int, rest: int) -> int:
        """A request starts, with a prefix that its plan shares and so many other tokens: how many are found."""
        found = self._kept.get(plan, 0)
        if not found:
            self._keep(plan, prefix)
        self._kept.move_to_end(plan)
        self._used[plan] += 1
        self._running += rest
        self._evict()
        return found

    def end(self, plan: str, key: str, rest: int) -> None:
        """It ends. What it leaves is of no use to others, but stands in their way until it is old."""
        self._running -= rest
        self._used[plan] -= 1
        self._keep(key, rest)
        self._kept.move_to_end(plan)
        self._evict()

    def _keep(self, key: str, tokens: int) -> None:
        self._size += tokens - self._kept.get(key, 0)
        self._kept[key] = tokens

    def _evict(self) -> None:
        if self.tokens is None:
            return
        for key in list(self._kept):
            if self._size + self._running <= self.tokens:
                return
            if not self._used[key]:
                self._size -= self._kept.pop(key)


@dataclass(slots=True)
class Counts:
    """What one engine did in one run. `cached_tokens` as the sampler tells it: all but the first request of a plan find
    the shared prefix. `modelled` are those of caches of bounded size, by size."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    compiles: int = 0
    compile_seconds: float = 0.0
    modelled: Counter[int | None] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Run:
    """What all engines of a run have to know: plans by digest, tokens of the prefixes and of the prompts."""

    plans: dict[str, DecodingPlan]
    prefixes: dict[str, int]
    prompts: dict[str, int]

    @classmethod
    def of(cls, items: list[Item], chat: ChatTokenizer) -> Run:
        """Counted before the clock runs."""
        plans = {plan.digest: plan for _, plan in items}
        prompts = {prompt.user: len(chat.encode(prompt)) for prompt, _ in items}
        return cls(plans, {key: _shared_tokens(plan.prefix, chat) for key, plan in plans.items()}, prompts)


class Measured:
    """A sampler in this process that counts, as a replica for a PoolEngine. It cannot die."""

    def __init__(self, name: str, engine: SamplerEngine, run: Run, caches: Sequence[int | None]) -> None:
        self.name = name
        self.counts = Counts()
        self.in_flight = 0
        self._engine = engine
        self._run = run
        self._caches = [PrefixCache(tokens) for tokens in caches]
        self._compiling: dict[str, asyncio.Task[None]] = {}

    async def ready(self) -> bool:
        """It is there."""
        return False

    async def missed(self, key: str) -> None:
        """Nothing is ever lost."""

    async def generate(self, key: str, prompt: Prompt, plan: str, sampling: Sampling) -> tuple[Completion, int]:
        """Answer, and count."""
        self.in_flight += 1
        try:
            await self._compiled(self._run.plans[plan])
            completion = await self._answer(key, prompt, self._run.plans[plan], sampling)
        finally:
            self.in_flight -= 1
        return completion, self.in_flight

    async def _answer(self, key: str, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        prefix = self._run.prefixes[plan.digest]
        rest = self._run.prompts[prompt.user] - prefix + sampling.max_tokens
        for cache in self._caches:
            self.counts.modelled[cache.tokens] += cache.begin(plan.digest, prefix, rest)
        completion = await self._engine.generate(prompt, plan, sampling)
        for cache in self._caches:
            cache.end(plan.digest, key, rest)
        self.counts.requests += 1
        self.counts.prompt_tokens += completion.prompt_tokens
        self.counts.cached_tokens += completion.cached_tokens
        return completion

    async def _compiled(self, plan: DecodingPlan) -> None:
        """Compile a grammar that the engine does not know, once, as the engine would do with its first request."""
        if self._engine._grammar.knows(plan.transport):
            return
        if plan.digest not in self._compiling:
            self._compiling[plan.digest] = asyncio.create_task(self._compile(plan))
        await self._compiling[plan.digest]

    async def _compile(self, plan: DecodingPlan) -> None:
        began = time.perf_counter()
        await asyncio.to_thread(self._engine._grammar.matcher, plan.transport)
        self.counts.compiles += 1
        self.counts.compile_seconds += time.perf_counter() - began


class LeastLoaded:
    """The choice that knows no affinity: the engine with the fewest requests in flight, any of them if several."""

    def __init__(self, replicas: Sequence[Measured]) -> None:
        self._replicas = replicas
        self._draw = random.Random(0)

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """As an engine does."""
        least = min(replica.in_flight for replica in self._replicas)
        chosen = self._draw.choice([replica for replica in self._replicas if replica.in_flight == least])
        return (await chosen.generate(prompt.user, prompt, plan.digest, sampling))[0]


def _shared_tokens(prefix: str, chat: ChatTokenizer) -> int:
    """Tokens that all prompts of a plan begin with, in whole blocks."""
    one, other = (chat.encode(Prompt(prefix, user)) for user in ("", "x"))
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), 0) // BLOCK * BLOCK
