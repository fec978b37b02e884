"""The endpoint deployment: `extract` for online callers, in this process, with the engines of the pool."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.engines.serve import ServeEngine
from pipeline.observe.events.log import Log
from pipeline.runtime.lookups import load_lookups
from pipeline.runtime.served import HandlePool
from pipeline.schema.plan import DecodingPlan
from pipeline.serve_app.inline import InlineSchemas, target_of
from pipeline.serve_app.service import Service
from pipeline.serve_app.settings import AppConfig
from pipeline.serve_app.web import build_web

if TYPE_CHECKING:
    from fastapi import FastAPI


_LOG = logging.getLogger(__name__)


class EndpointDeployment:
    """See the module. Serve calls what has no single underscore."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, config: AppConfig, plans: Sequence[DecodingPlan], engine: Any
    ) -> None:
        """`plans` with the refused ones, `engine` is the handle of the engine deployment.

        Raises:
            GristmillError: a lookup or the token is missing, or the sandbox does not start.
        """
        pool = HandlePool(config.name, engine)
        inline = None
        if config.online.inline is not None:
            inline = InlineSchemas(config.online.inline, target_of(config.engine, config))
            await inline.start()
        by_name = {plan.name: plan for plan in plans}
        lookups = load_lookups(config)
        self._service = Service(ServeEngine(pool, online=True), by_name, config, config.online, inline, lookups)
        self._service.events = events_of(config)
        self._exporting = asyncio.create_task(self._service.counts.export(), name="exporting metrics")

    def __serve_build_asgi_app__(self) -> FastAPI:
        return build_web(self._service)


def events_of(config: AppConfig) -> Log:
    """Where the endpoint in this process writes events: those of documents."""
    origin = {"job": config.name, "run": "", "process": f"endpoint-{os.getpid()}"}
    return Log(config.events, origin, tell=_LOG.warning)
