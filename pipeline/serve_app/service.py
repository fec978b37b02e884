"""Service: one engine, the plans that it serves, and what a request about a document comes to. Knows no HTTP server."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pipeline.engines import Engine
from pipeline.engines.busy import EngineBusyError
from pipeline.errors import EngineError, JobFileError, SchemaError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, InputConfig, WorkConfig
from pipeline.observe.events.log import OFF
from pipeline.records import Document, JsonValue
from pipeline.runtime.input.documents import document
from pipeline.runtime.input.formats import MISSING, Row
from pipeline.schema.plan import DecodingPlan
from pipeline.serve_app.admission import Admission, FullError
from pipeline.serve_app.answers import RETRY_AFTER_ENGINE, Answer, Fault, FaultError
from pipeline.serve_app.counts import Counts
from pipeline.serve_app.inline import CompilerBusyError, InlineSchemas
from pipeline.serve_app.online import OnlineConfig
from pipeline.steps.route import blames_engine
from pipeline.steps.rules import NO_LOOKUPS, Lookups

SOURCE = "online"
_SICK_SECONDS = 10.0
"""How long an engine that was gone counts as unhealthy, unless it answers before: then somebody has to try it again."""
_SHOWN = 80
_MAX_WORDS = 1000
_GONE = "the engine is gone; it is started again, or somebody has to look at it"
_BY_ID = InputConfig(path=SOURCE, schema=SOURCE)
_BY_TEXT = InputConfig(path=SOURCE, schema=SOURCE, id_column=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """One document of a request. `schema` is the name of a registered one, or a JSON Schema. Without an `id` it is
    known by a digest of its text."""

    text: str
    schema: str | dict[str, JsonValue]
    id: str | None = None


class Service:
    """Belongs to one event loop. The engine is started, and closed, by whoever made it."""

    def __init__(
        self,
        engine: Engine,
        plans: Mapping[str, DecodingPlan],
        config: ExtractConfig,
        online: OnlineConfig,
        inline: InlineSchemas | None = None,
        lookups: Lookups = NO_LOOKUPS,
    ) -> None:
        """`plans` by schema name, refused ones among them. Without `inline`, only these are served.

        Raises:
            JobFileError: `deadline_seconds` was given and is beyond `retry.deadline_seconds`.
        """
        retry = config.retry
        if "deadline_seconds" in online.model_fields_set and online.deadline_seconds > retry.deadline_seconds:
            raise JobFileError(
                f"online: deadline_seconds ({online.deadline_seconds:g}) is beyond retry.deadline_seconds "
                f"({retry.deadline_seconds:g}). Raise the latter, or lower the former."
            )
        seconds = min(online.deadline_seconds, retry.deadline_seconds)
        self.online = online
        self.plans = dict(plans)
        self.admission = Admission(online.in_flight)
        self.counts = Counts(config.name if isinstance(config, WorkConfig) else SOURCE, self.plans)
        self.events = OFF
        self._config = config.model_copy(update={"retry": retry.model_copy(update={"deadline_seconds": seconds})})
        self._engine, self._inline, self._lookups, self._seconds = engine, inline, lookups, seconds
        self._sick_until = 0.0

    @property
    def healthy(self) -> bool:
        """Whether the engine was not gone just now."""
        return time.monotonic() >= self._sick_until

    async def extract(self, asked: Asked) -> Answer:
        """One document. Being cancelled cancels the engine's work on it."""
        return self._counted(await self._alone(asked))

    async def batch(self, asked: Sequence[Asked]) -> list[Answer]:
        """Documents side by side as places are free, in their order.

        Raises:
            FaultError: not even one of them has a place.
        """
        try:
            self.admission.begin_batch()
        except FullError as error:
            self.counts.answer(429, len(asked))
            raise FaultError(too_many(error.retry_after)) from error
        with ExitStack() as first:  # closed when its document is done, and at the latest here
            first.enter_context(self.admission.held_for_batch())
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._of_batch(asked[0], first))]
                tasks += [group.create_task(self._of_batch(one)) for one in asked[1:]]
        return [self._counted(task.result()) for task in tasks]

    def schema_rows(self) -> list[dict[str, JsonValue]]:
        """What is known of each registered schema, by name."""
        return [_row(plan) for _, plan in sorted(self.plans.items())]

    def _counted(self, answer: Answer) -> Answer:
        self.counts.answer(answer.http)
        return answer

    async def _alone(self, asked: Asked) -> Answer:
        try:
            plan = await self._plan(asked)
            with self.admission.place():
                return await self._extracted(asked, plan)
        except FaultError as error:
            return Answer(fault=error.fault)
        except FullError as error:
            return Answer(fault=too_many(error.retry_after))

    async def _of_batch(self, asked: Asked, place: ExitStack | None = None) -> Answer:
        """One document of a batch, which holds its place already or waits for one."""
        try:
            if place is not None:
                with place:
                    return await self._extracted(asked, await self._plan(asked))
            plan = await self._plan(asked)
            await self.admission.next_of_batch(self._seconds)
            with self.admission.held_for_batch():
                return await self._extracted(asked, plan)
        except FaultError as error:
            return Answer(fault=error.fault)
        except FullError as error:
            return Answer(fault=too_many(error.retry_after))

    async def _extracted(self, asked: Asked, plan: DecodingPlan) -> Answer:
        document = _document(asked, plan.name)
        try:
            outcome = await extract(document, plan, self._engine, self._config, lookups=self._lookups)
        except EngineBusyError as busy:
            return Answer(fault=too_many(max(1, math.ceil(busy.retry_after))))
        except EngineError:
            self._sick_until = time.monotonic() + _SICK_SECONDS
            return Answer(fault=Fault(503, "engine_gone", _GONE, RETRY_AFTER_ENGINE))
        if outcome.attempts and not blames_engine(outcome):
            self._sick_until = 0.0
        self.counts.outcome(outcome, plan, inline=not isinstance(asked.schema, str))
        self.events.outcome(outcome)
        return Answer(outcome)

    async def _plan(self, asked: Asked) -> DecodingPlan:
        """What a document is extracted under.

        Raises:
            FaultError: it is too long, there is no such schema, it is refused, or the sandbox is busy or gone.
        """
        schema, most = asked.schema, self.online.max_text
        if len(asked.text) > most:
            words = f"the text has {len(asked.text)} characters; at most {most} are taken. Cut it into documents"
            raise FaultError(Fault(413, "text_too_long", words))
        if isinstance(schema, str):
            if (plan := self.plans.get(schema)) is None:
                raise FaultError(_unknown(schema))
            return plan
        if self._inline is None:
            words = "this endpoint serves registered schemas only: give the name of one, see GET /v1/schemas"
            raise FaultError(Fault(422, "inline_off", words))
        try:
            return await self._inline.plan(schema)
        except SchemaError as error:
            raise FaultError(Fault(422, f"schema_{error.code or 'refused'}", _cut(error.message))) from error
        except CompilerBusyError as error:
            words = f"other schemas that came with requests are being tried; try again in {error.retry_after} s"
            raise FaultError(Fault(429, "compiler_busy", words, error.retry_after)) from error
        except EngineError as error:
            words = "the sandbox in which schemas are tried is gone; registered schemas are served"
            raise FaultError(Fault(503, "compiler_gone", words, RETRY_AFTER_ENGINE)) from error


def too_many(retry_after: int) -> Fault:
    """That there is no place."""
    return Fault(429, "too_many", f"as many documents are at work as may; try again in {retry_after} s", retry_after)


def _document(asked: Asked, schema: str) -> Document:
    """As a job reads it: NUL and half surrogate pairs are replaced, a text that shows nothing is coded."""
    row = Row(0, 0, 0, text=asked.text, id=MISSING if asked.id is None else asked.id)
    config = _BY_TEXT if asked.id is None else _BY_ID
    return dataclasses.replace(document(row, SOURCE, SOURCE, config, duplicate=False), schema=schema)


def _row(plan: DecodingPlan) -> dict[str, JsonValue]:
    left = [dataclasses.asdict(site) for site in plan.left]
    return {
        "name": plan.name,
        "digest": plan.schema_digest,
        "schema": plan.acceptance if not plan.refused else None,
        "backend": plan.backend,
        "left": left,
        "refused": plan.refused,
    }


def _unknown(name: str) -> Fault:
    shown = ascii(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!a}…"
    return Fault(404, "unknown_schema", f"there is no schema {shown}; GET /v1/schemas lists those that are served")


def _cut(words: str) -> str:
    return words if len(words) <= _MAX_WORDS else f"{words[: _MAX_WORDS - 1]}…"
