"""The engine seam: one async method that the rest of the pipeline calls.

`extract` knows engines by `Engine.generate` alone. `start` and `close` belong to whoever owns the engine (an actor,
a test); they are never called per document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pipeline.records import Completion, Prompt, Sampling

if TYPE_CHECKING:
    from pipeline.job import EngineConfig
    from pipeline.schema.plan import DecodingPlan


class Engine(Protocol):
    """Anything that can decode under a schema constraint."""

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer one prompt. A document's trouble is told in the Completion, never raised.

        Raises:
            EngineError: the engine is gone and no other request can succeed.
        """
        ...

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Get ready for these plans: prove that the constraint is in force, warm each grammar and prefix.

        Raises:
            EngineError: the constraint is not in force, or the engine cannot serve.
            SchemaError: the engine refuses one of the plans.
        """
        ...

    async def close(self) -> None:
        """Free what the engine holds. Safe to call twice."""
        ...


def build(config: EngineConfig, *, constrained: bool = True) -> Engine:
    """The engine that a config names, not yet started. Heavy imports happen here and nowhere earlier. One that is not
    to be asked under a constraint need not prove any: it serves although its constraint is broken."""
    if config.engine == "vllm":
        from pipeline.engines.vllm import VllmEngine

        return VllmEngine(config, constrained=constrained)
    if config.engine == "sampler":
        from pipeline.engines.sampler import SamplerEngine

        return SamplerEngine(config, constrained=constrained)
    if config.engine == "http":
        from pipeline.engines.http import HttpEngine

        return HttpEngine(config)
    from pipeline.engines.recorded import RecordedEngine

    return RecordedEngine(config)
