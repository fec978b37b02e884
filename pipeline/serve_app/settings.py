"""What the `args` of a Serve application hold: what documents are extracted with, the engine pool, the endpoint."""

from __future__ import annotations

from pydantic import Field, model_validator

from pipeline.job import WorkConfig
from pipeline.jobhttp import check_patience
from pipeline.jobplacement import Strict
from pipeline.serve_app.online import OnlineConfig


class PoolConfig(Strict):
    """`min_replicas` to `max_replicas` engines: one more when, for `grow_seconds`, more requests are under way than the
    engines decode at a time, one less when it was not needed for `idle_seconds`.

    Of the requests that an engine decodes at a time, jobs hold at most `job_share`; at most `waiting` more wait there,
    of jobs and of online callers each. An engine without a sign of life for `stall_seconds`, with requests open, is
    taken for stuck and replaced; one that is to go gets `drain_seconds` to finish.
    """

    min_replicas: int = Field(1, ge=1)
    max_replicas: int = Field(1, ge=1)
    job_share: float = Field(0.5, ge=0, le=1)
    waiting: int = Field(32, ge=1)
    grow_seconds: float = Field(30.0, gt=0)
    idle_seconds: float = Field(600.0, gt=0)
    stall_seconds: float = Field(120.0, gt=0)
    drain_seconds: float = Field(120.0, ge=0)

    @model_validator(mode="after")
    def _agrees(self) -> PoolConfig:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas ({self.min_replicas}) is more than max_replicas ({self.max_replicas})")
        return self


class AppConfig(WorkConfig):
    """One application: an engine pool, and the endpoint before it. `serve` names the schemas that are ready from the
    start; empty: all of `schemas`."""

    serve: tuple[str, ...] = ()
    pool: PoolConfig = PoolConfig()
    online: OnlineConfig = OnlineConfig()

    @model_validator(mode="after")
    def _one_engine(self) -> AppConfig:
        engine = self.engine
        if engine.backend == "auto":
            raise ValueError(
                "engine.backend: an application has one grammar back end for all schemas; name xgrammar or guidance "
                "(`gristmill check` shows what each holds)"
            )
        if engine.engine == "recorded":
            raise ValueError("engine: a recording answers only what it was asked before")
        if self.other_engines():
            raise ValueError("retry.ladder: an application has one engine; leave `engine` out of its rungs")
        if engine.engine == "http" and (engine.constraint == "none" or not self.sampling.constrained):
            raise ValueError("engine: whether a server is healthy is told by its constraint: send schemas to it")
        check_patience([engine], self.pool.stall_seconds, "pool.stall_seconds")
        return self
