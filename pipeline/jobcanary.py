"""The key `canary` of a job: what a candidate does otherwise, on which share of the documents, and how it is judged.

It decides no record of the job and is not in its run's identity.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from pipeline.jobgate import GateConfig
from pipeline.jobhttp import check_patience
from pipeline.jobplacement import Strict
from pipeline.jobpolicy import disagreements


class CandidateSampling(Strict):
    """What the candidate decodes otherwise; null: as the job."""

    constrained: bool | None = None
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    seed: int | None = Field(None, ge=0, lt=2**63)


class CanaryConfig(Strict):
    """A candidate: the job with another `engine` (one of its `engines`), another folder of `schemas` (with their
    instructions and examples, under the same names), another `sampling`, or several of these.

    It extracts a `share` of the documents that the job's run has, picked by `seed` and the document's id, after that
    run is committed; a share of 1 is a shadow of the whole run. `gate` are the rules by which it is judged.
    """

    engine: str | None = None
    schemas: str | None = None
    sampling: CandidateSampling = CandidateSampling()
    share: float = Field(0.05, gt=0, le=1)
    seed: int = 0
    gate: GateConfig = GateConfig()

    @model_validator(mode="after")
    def _is_another(self) -> Self:
        if self.engine is None and self.schemas is None and not self.sampling_changes():
            raise ValueError("the candidate is the job itself: give `engine`, `schemas` or a key of `sampling`")
        return self

    def sampling_changes(self) -> dict[str, Any]:
        """The keys of the job's `sampling` that the candidate has otherwise."""
        return self.sampling.model_dump(exclude_none=True)

    def check(self, job: Any) -> None:
        """Whether the candidate could be run as the job (a `JobConfig`) is.

        Raises:
            ValueError: it could not; the message has a line for each reason.
        """
        if found := list(self._complaints(job)):
            raise ValueError("; ".join(f"canary.{line}" for line in found))

    def _complaints(self, job: Any) -> Iterator[str]:
        engines: Mapping[str, Any] = job.engines
        if self.engine is not None and self.engine not in engines:
            nearest = difflib.get_close_matches(self.engine, engines, n=1, cutoff=0.4)
            known = f"known there: {', '.join(sorted(engines))}" if engines else "which names none"
            hint = f"did you mean `{nearest[0]}`?" if nearest else known
            yield f"engine: `{self.engine}` is not in `engines`; {hint}"
            return
        if self.engine is not None and job.placement.kind == "serve":
            yield "engine: under `placement.kind: serve` the application's engine answers, whatever is named here"
        engine = job.engine if self.engine is None else engines[self.engine]
        max_tokens = self.sampling.max_tokens or job.sampling.max_tokens
        yield from (f"engine: {line}" for line in disagreements(engine, engines, job.retry, max_tokens))
        try:
            check_patience((engine,), job.safety.engine_stall_seconds, "safety.engine_stall_seconds")
        except ValueError as error:
            yield f"engine: {error}"
