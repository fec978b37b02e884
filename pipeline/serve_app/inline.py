"""Inline schemas: plans of schemas that come with a request, made in the sandbox and kept apart from the registered.

A few are tried at a time and a few more wait; each has a bounded time. What came of one is kept, a refusal as well, the
oldest is forgotten first, and neither can push a registered schema out: those are not kept here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.compile.check import LIMITS, Trial, choose, trial_of
from pipeline.compile.sandbox import Job, Limits, Result, Sandbox
from pipeline.compile.trial import backends_of
from pipeline.errors import SchemaError
from pipeline.job import ExtractConfig
from pipeline.records import JsonValue
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.shape.policy import Policy
from pipeline.schema.shape.shapes import Left
from pipeline.serve_app.online import InlineConfig
from pipeline.steps.judge import judge_of

_BROKEN_OFF = frozenset({"timeout", "crash", "memory", "error"})
_FORGIVEN_SECONDS = 300.0
"""How long a schema is refused because trying it was broken off: perhaps the machine was busy."""
_MIN_SECONDS = 0.2


class CompilerBusyError(Exception):
    """As many schemas wait to be tried as may. `retry_after`: whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the sandbox is busy; try again in {retry_after} s")
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Target:
    """What plans are for. `model` has the tokenizer; None: nobody knows the engine's, and nothing is compiled.
    `context` in tokens, if it is known."""

    model: str | None
    backends: tuple[str, ...]
    compact: bool
    policy: Policy
    max_tokens: int
    context: int | None = None


def target_of(engine: Any, config: ExtractConfig) -> Target:
    """The target of an engine config. Its `backend` should be that of the engine which runs: `auto` chooses per schema.

    Only engines whose tokenizer is at hand have their schemas tried.
    """
    narrow, sampling = config.sampling.narrow, config.sampling
    return Target(
        model=engine.model if engine.engine in ("vllm", "sampler") else None,
        backends=backends_of(engine.backend),
        compact=engine.compact_json,
        policy=Policy(config.policy.abstain, narrow.max_items, narrow.max_length),
        max_tokens=min(sampling.max_tokens, config.retry.max_output_tokens or sampling.max_tokens),
        context=getattr(engine, "max_model_len", None),
    )


@dataclass(frozen=True, slots=True)
class _Refusal:
    code: str
    words: str
    until: float = math.inf

    def error(self) -> SchemaError:
        return SchemaError(self.words, self.code)


class InlineSchemas:
    """Belongs to one event loop. A document that is under way may still use a plan that is no longer kept."""

    def __init__(self, config: InlineConfig, target: Target, sandbox: Sandbox | None = None) -> None:
        modules = ("pipeline.compile.trial", "pipeline.serve_app.inline_job")
        self._config, self._target = config, target
        self._sandbox = sandbox or Sandbox(target.model, config.at_once, modules)
        self._threads = ThreadPoolExecutor(config.at_once, "inline-schemas")
        self._plans: OrderedDict[str, DecodingPlan] = OrderedDict()
        self._refusals: OrderedDict[str, _Refusal] = OrderedDict()
        self._running: dict[str, asyncio.Task[DecodingPlan | _Refusal]] = {}

    async def start(self) -> None:
        """Have the sandbox ready (some ten seconds), which the first schema would wait for otherwise.

        Raises:
            EngineError: it does not start.
        """
        await asyncio.get_running_loop().run_in_executor(self._threads, self._sandbox.start)

    async def close(self) -> None:
        """End the sandbox and whatever runs in it."""
        await asyncio.to_thread(self._sandbox.close)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def plan(self, source: dict[str, JsonValue]) -> DecodingPlan:
        """The plan of a schema, made now or kept.

        Raises:
            SchemaError: it is refused, now or before; a code of `registry.REFUSALS`, `refused`, `unsatisfiable`,
                `budget`, `tangled`, `slow`, `slow_pattern`, or `timeout`, `crash`, `memory`, `error` for a trial that
                was broken off.
            CompilerBusyError: too many others wait.
            EngineError: the sandbox cannot be started.
        """
        key = self._key(source)
        if (kept := self._kept(key)) is None:
            task = self._running.get(key)
            if task is None:
                self._check_room()
                task = self._running[key] = asyncio.create_task(self._made(key, source))
                task.add_done_callback(_noticed)
            kept = await asyncio.shield(task)  # others may wait for the same, and it is kept
        if isinstance(kept, _Refusal):
            raise kept.error()
        return kept

    def _key(self, source: dict[str, JsonValue]) -> str:
        """Raises SchemaError. The order of keys is part of a schema."""
        try:
            text = json.dumps(source, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError) as error:
            raise SchemaError(f"the schema holds what JSON cannot exchange: {error}", "not_json") from error
        if len(text) > self._config.max_bytes:
            raise SchemaError(
                f"the schema has {len(text)} bytes; at most {self._config.max_bytes} may come with a request.",
                "too_large",
            )
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _kept(self, key: str) -> DecodingPlan | _Refusal | None:
        if (plan := self._plans.get(key)) is not None:
            self._plans.move_to_end(key)
            return plan
        if (refusal := self._refusals.get(key)) is not None:
            if time.monotonic() < refusal.until:
                self._refusals.move_to_end(key)
                return refusal
            del self._refusals[key]
        return None

    def _check_room(self) -> None:
        config, under_way = self._config, len(self._running)
        if under_way >= config.at_once + config.waiting:
            raise CompilerBusyError(max(1, math.ceil(config.seconds * config.waiting / config.at_once / 2)))

    async def _made(self, key: str, source: dict[str, JsonValue]) -> DecodingPlan | _Refusal:
        try:
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(self._threads, self._compiled, f"inline@{key}", source)
            self._keep(key, made)
            return made
        finally:
            del self._running[key]

    def _keep(self, key: str, made: DecodingPlan | _Refusal) -> None:
        if isinstance(made, _Refusal):
            self._refusals[key] = made
            if len(self._refusals) > self._config.kept:
                self._refusals.popitem(last=False)
            return
        self._plans[key] = made
        if len(self._plans) > self._config.kept:
            self._plans.popitem(last=False)

    def _compiled(self, name: str, source: dict[str, JsonValue]) -> DecodingPlan | _Refusal:
        """In a thread: what the sandbox makes of a schema under each back end, and the better one's plan."""
        target, deadline = self._target, time.monotonic() + self._config.seconds
        payload = {"source": source, "name": name, "compact": target.compact, "policy": asdict(target.policy)}
        payload |= {"max_tokens": target.max_tokens, "context": target.context, "max_bytes": self._config.max_bytes}
        self._sandbox.start()  # its start is not the schema's fault
        answers: dict[str, Mapping[str, Any]] = {}
        for backend in target.backends:
            seconds = max(_MIN_SECONDS, deadline - time.monotonic())
            limits = Limits(seconds, LIMITS.memory_mib, math.ceil(seconds))
            answers[backend] = _answer(self._sandbox.call(Job("inline", {**payload, "backend": backend}, limits)))
        best, _why = choose(_trial(backend, answer) for backend, answer in answers.items())
        if not best.usable:
            until = time.monotonic() + _FORGIVEN_SECONDS if best.kind in _BROKEN_OFF else math.inf
            return _Refusal(best.kind, _words(best, self._config.seconds), until)
        plan = _plan(answers[best.backend]["plan"])
        judge_of(plan)  # here, and not while the first document of it holds up all others
        return plan


def _noticed(task: asyncio.Task[Any]) -> None:
    """All who waited for it may be gone when it fails."""
    if not task.cancelled():
        task.exception()


def _answer(result: Result) -> Mapping[str, Any]:
    value: Mapping[str, Any] = result.value if result.kind == "ok" else {"kind": result.kind, "words": result.words}
    return value


def _trial(backend: str, answer: Mapping[str, Any]) -> Trial:
    return trial_of(backend, {key: value for key, value in answer.items() if key != "plan"})


def _words(trial: Trial, seconds: float) -> str:
    if trial.kind in _BROKEN_OFF:
        said = {"timeout": f"it took longer than the {seconds:g} s that a schema has here"}
        return f"trying the schema was broken off ({trial.kind}): {said.get(trial.kind, 'it broke the compiler')}."
    return trial.words


def _plan(fields: Mapping[str, Any]) -> DecodingPlan:
    return DecodingPlan(**{**fields, "left": tuple(Left(**site) for site in fields["left"])})
