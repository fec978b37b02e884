"""Several engines behind the one seam: `Sampling.engine` says which one answers.

They live in one process and start together, so that one that cannot serve is found before the first document and not
by the first retry. Engines of equal config are one engine: a recording of several is played in its own order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipeline.engines import Engine, build
from pipeline.errors import EngineError, GristmillError
from pipeline.job import EngineConfig, WorkConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan


class SeveralEngines:
    """Hands each request to the engine that its sampling names; "" is the main one. Owns them all."""

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self._engines = dict(engines)
        self._apart: dict[int, tuple[str, Engine]] = {}
        for name, engine in engines.items():
            self._apart.setdefault(id(engine), (name, engine))

    def each(self, wrap: Callable[[Engine], Engine]) -> SeveralEngines:
        """These engines, each one wrapped."""
        wrapped = {key: wrap(engine) for key, (_, engine) in self._apart.items()}
        return SeveralEngines({name: wrapped[id(engine)] for name, engine in self._engines.items()})

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt.

        Raises:
            EngineError: from the engine, or there is none of this name. One that died stops the job even if it is not
                the main one: a rerun continues, while answers without it would be other answers.
        """
        engine = self._engines.get(sampling.engine)
        if engine is None:
            raise EngineError(f"no engine is called {sampling.engine!r}. Name it under `engines` of the job.")
        return await engine.generate(prompt, plan, sampling)

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Start each engine: prove its constraint, warm the plans.

        Raises:
            GristmillError: as the engine has it, with its name in front. No engine is left running.
        """
        for name, engine in self._apart.values():
            try:
                await engine.start(plans)
            except BaseException as error:
                await self.close()
                if isinstance(error, GristmillError) and name:
                    error.message = f"engines.{name}: {error.message}"
                raise

    async def close(self) -> None:
        """Close every engine.

        Raises:
            Exception: what closing one of them raised, after all were closed.
        """
        failures: list[Exception] = []
        for _, engine in self._apart.values():
            try:
                await engine.close()
            except Exception as error:  # the others are closed first
                failures.append(error)
        if failures:
            raise failures[0]


def build_all(job: WorkConfig, backend: str, *, shared: bool = False) -> Engine:
    """The job's main engine, and with it those that its ladder names, all for one grammar back end; not yet started.
    One that is `shared` with others proves its constraint when it starts, though this work may not use it.

    Raises:
        GristmillError: one of them cannot be built; its name stands in front if it is not the main one.
    """
    others = job.other_engines()
    configs = {"": job.engine, **dict(sorted(others.items()))}
    built: list[tuple[object, Engine]] = []
    named: dict[str, Engine] = {}
    for name, config in configs.items():
        wanted = config.model_copy(update={"backend": backend, **_unproven(config, job)})
        engine = next((engine for known, engine in built if known == wanted), None)
        if engine is None:
            try:
                engine = build(wanted, constrained=shared or job.sampling.constrained)
            except GristmillError as error:
                if name:
                    error.message = f"engines.{name}: {error.message}"
                raise
            built.append((wanted, engine))
        named[name] = engine
    return SeveralEngines(named) if others else named[""]


def _unproven(config: EngineConfig, job: WorkConfig) -> dict[str, str]:
    """A server that is not to be sent any schema proves none."""
    return {"constraint": "none"} if config.engine == "http" and not job.sampling.constrained else {}
