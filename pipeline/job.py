"""What a user writes, as models: the keys of a job file and of an engine config, with their defaults and bounds.
Every value has a default that is right on a laptop. `jobfile.py` reads YAML into these."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from pipeline.jobcanary import CanaryConfig
from pipeline.jobhttp import HttpConfig, check_patience
from pipeline.jobplacement import (
    AuditConfig,
    EventsConfig,
    PilotConfig,
    PlacementConfig,
    SafetyConfig,
    StopConfig,
    Strict,
)
from pipeline.jobpolicy import LookupConfig, NarrowConfig, disagreements, with_attempts, with_policy

EMBEDDED_MODEL = "embedded"
"""The model name that stands for the small model carried by the environment (see engines/models.py)."""


class InputConfig(Strict):
    """Where documents come from. Formats are told by suffix unless `format` says otherwise. `columns` are what business
    rules see of the row as `input`. `since: last` leaves out what the job's last committed run holds already."""

    path: str
    format: Literal["auto", "parquet", "jsonl", "csv", "text"] = "auto"
    text_column: str = "text"
    id_column: str | None = "id"
    schema_name: str | None = Field(None, alias="schema")
    schema_column: str | None = None
    columns: tuple[str, ...] = ()
    limit: int | None = Field(None, ge=1)
    since: Literal["last"] | None = None

    @model_validator(mode="after")
    def _one_schema_source(self) -> InputConfig:
        if (self.schema_name is None) == (self.schema_column is None):
            raise ValueError("give exactly one of `schema` (one for all) and `schema_column` (one per row)")
        return self


class RungConfig(Strict):
    """How another attempt differs from the first. After an answer that was cut for want of tokens, it is given `room`
    times as many as that one had, as far as the token budget and the engine's context go. `engine` names one of the
    job's `engines`; null: the main one."""

    temperature: float | None = Field(None, ge=0, le=2)
    room: float = Field(2.0, ge=1, le=16)
    engine: str | None = None


class RetryConfig(Strict):
    """Hard budgets of one document. `max_output_tokens` is for all its attempts together. `ladder` says how the second
    attempt differs, the third and so on; the last rung serves all further ones. `max_engine_failures` and
    `backoff_seconds` (doubled each time, with jitter) are the infrastructure's own and are not the document's."""

    max_attempts: int = Field(2, ge=1, le=10)
    max_output_tokens: int | None = Field(None, ge=1)
    deadline_seconds: float = Field(600.0, gt=0)
    ladder: tuple[RungConfig, ...] = ()
    max_engine_failures: int = Field(2, ge=0, le=10)
    backoff_seconds: float = Field(0.5, ge=0, le=60)


class SamplingConfig(Strict):
    """How to decode. `max_tokens` bounds one answer, `narrow` its arrays and strings."""

    max_tokens: int = Field(512, ge=1)
    temperature: float = Field(0.0, ge=0, le=2)
    seed: int = Field(0, ge=0, lt=2**63)
    constrained: bool = True
    narrow: NarrowConfig = NarrowConfig()


class PolicyConfig(Strict):
    """What a document may become. Without `degraded`, whatever is not valid is rejected. `preset` fills in what is not
    given, `retry.max_attempts` included, by what a wrong record costs (`jobpolicy.py`).

    `abstain` lets a model say that it does not know: `nullable` lets it answer null for required leaves (the record is
    degraded then), `document` lets it answer `{"not_applicable": true}` for the record (the document is rejected as
    such).
    """

    preset: Literal["extraction", "classification", "tool_call", "sql", "configuration", "synthetic"] = "extraction"
    degraded: bool = True
    abstain: Literal["none", "nullable", "document"] = "none"
    ground: Literal["off", "observe", "degrade", "retry", "block"] = "observe"
    confidence: bool = False

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, data: Any) -> Any:
        return with_policy(data)


class Fault(Strict):
    """One failure that the `sampler` shows on a share of the documents, picked by seed and prompt."""

    kind: Literal["truncate", "abort", "stall", "loop", "empty", "prose", "late_mask", "die", "stick"]
    share: float = Field(ge=0, le=1)
    seconds: float = Field(0.0, ge=0)
    attempts: int | None = Field(None, ge=1)


class VllmConfig(Strict):
    """vLLM inside the actor. `model` is `embedded`, a directory, or a name on the model hub. `backend: auto` takes for
    each schema the grammar back end that `gristmill check` chooses."""

    engine: Literal["vllm"]
    model: str = EMBEDDED_MODEL
    backend: Literal["auto", "xgrammar", "guidance"] = "auto"
    compact_json: bool = True
    max_model_len: int = Field(8192, ge=128)
    max_num_seqs: int = Field(32, ge=1)
    dtype: str = "auto"
    num_gpus: float = Field(0, ge=0)
    tensor_parallel: int = Field(1, ge=1)
    pipeline_parallel: int = Field(1, ge=1)
    engine_args: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)

    @property
    def tokenizer_model(self) -> str:
        """Whose tokenizer tokens are counted with before a run."""
        return self.model


class SamplerConfig(Strict):
    """No model: seeded random legal tokens from the real tokenizer through the real grammar matcher."""

    engine: Literal["sampler"]
    model: str = EMBEDDED_MODEL
    backend: Literal["auto", "xgrammar", "guidance"] = "auto"
    compact_json: bool = True
    max_model_len: int = Field(8192, ge=128)
    max_num_seqs: int = Field(32, ge=1)
    seed: int = 0
    token_seconds: float = Field(0.0, ge=0)
    faults: tuple[Fault, ...] = ()
    num_gpus: float = Field(0, ge=0)
    tensor_parallel: int = Field(1, ge=1)
    pipeline_parallel: int = Field(1, ge=1)

    @property
    def tokenizer_model(self) -> str:
        """Whose tokenizer tokens are counted with before a run."""
        return self.model


class RecordedConfig(Strict):
    """Plays completions that `gristmill run --record` saved. `compact_json` is the recorded engine's; so is `backend`,
    and `auto` finds it out."""

    engine: Literal["recorded"]
    recording: str
    backend: Literal["auto", "xgrammar", "guidance"] = "auto"
    compact_json: bool = True
    max_num_seqs: int = Field(256, ge=1)
    num_gpus: float = Field(0, ge=0)

    @property
    def tokenizer_model(self) -> str:
        """Whose tokenizer tokens are counted with before a run."""
        return EMBEDDED_MODEL


EngineConfig = Annotated[VllmConfig | SamplerConfig | RecordedConfig | HttpConfig, Field(discriminator="engine")]
EngineName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class ExtractConfig(Strict):
    """The part of a job that one document's extraction depends on.

    `clean` names what is done to a document's text before the model sees it, `cite` gives its lines or paragraphs ids
    to cite, `params` is what business rules see under that name.
    """

    sampling: SamplingConfig = SamplingConfig()
    retry: RetryConfig = RetryConfig()
    policy: PolicyConfig = PolicyConfig()
    clean: tuple[Literal["invisible", "whitespace", "ocr"], ...] = ()
    cite: Literal["none", "lines", "paragraphs"] = "none"
    params: dict[str, JsonValue] = Field(default_factory=dict)
    lookups: tuple[LookupConfig, ...] = ()
    audit: AuditConfig = AuditConfig()

    @model_validator(mode="before")
    @classmethod
    def _attempts(cls, data: Any) -> Any:
        return with_attempts(data)


class WorkConfig(ExtractConfig):
    """What documents are extracted with, in a job or behind an endpoint. `engines` are those that the ladder of `retry`
    names besides the main one; one that no rung names is not started."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    schemas: str = "schemas"
    engine: EngineConfig
    engines: dict[EngineName, EngineConfig] = Field(default_factory=dict)
    events: EventsConfig = EventsConfig()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if found := list(disagreements(self.engine, self.engines, self.retry, self.sampling.max_tokens)):
            raise ValueError("; ".join(found))
        return self

    def other_engines(self) -> dict[str, Any]:
        """The configs of the engines that rungs of the ladder name, by name."""
        return {rung.engine: self.engines[rung.engine] for rung in self.retry.ladder if rung.engine is not None}

    def context_of(self, engine: str) -> int | None:
        """The context in tokens of the engine of this name ("" is the main one), None if it is not known."""
        return getattr(self.engines.get(engine, self.engine), "max_model_len", None)


class JobConfig(WorkConfig):
    """One extraction job. `slot` names a scheduled run, such as a date: another slot is another run. `canary` is a
    candidate that is tried on a share of the documents afterwards, and judged; it changes nothing of the job's run."""

    input: InputConfig
    output: str
    placement: PlacementConfig = PlacementConfig()
    safety: SafetyConfig = SafetyConfig()
    pilot: PilotConfig = PilotConfig()
    stop_if: StopConfig = StopConfig()
    slot: str = ""
    canary: CanaryConfig | None = None

    @model_validator(mode="after")
    def _tells_slow_from_stuck(self) -> Self:
        engines = (self.engine, *self.other_engines().values())
        check_patience(engines, self.safety.engine_stall_seconds, "safety.engine_stall_seconds")
        return self

    @model_validator(mode="after")
    def _has_a_candidate_that_can_run(self) -> Self:
        if self.canary is not None:
            self.canary.check(self)
        return self
