"""Keys of a job about where it runs, when it stops, what is observed. No record depends on them: they are not in a
run's identity."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class Strict(BaseModel):
    """Frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_STRANGERS = {
    "local": ("application", "cpu_actors", "max_engines", "min_engines"),
    "actors": ("actors", "application"),
    "serve": ("actors", "min_engines"),
}
"""Keys that mean nothing under a kind of placement."""


class PlacementConfig(Strict):
    """Where engines run. `local`: each of `actors` processes owns an engine and all else of its documents. `actors`:
    `min_engines` to `max_engines` engines in processes of their own, called by `cpu_actors` that do the rest. `serve`:
    the engine pool of a Serve `application` on the same cluster, which others use, too; `cpu_actors` keep as many
    requests under way there as `max_engines` of its engines can use.

    A job starts when `min_engines` are up; the others join when the cluster has room, and one that is idle for
    `idle_seconds` leaves. `cpu_actors`: null for one an engine. `unit_documents` is how much is written and committed
    at once; null lets units grow with the input.
    """

    kind: Literal["local", "actors", "serve"] = "local"
    application: str = "gristmill"
    actors: int = Field(1, ge=1)
    min_engines: int = Field(1, ge=1)
    max_engines: int = Field(1, ge=1)
    cpu_actors: int | None = Field(None, ge=1)
    unit_documents: int | None = Field(None, ge=1, le=10_000)
    idle_seconds: float = Field(60.0, gt=0)
    start_seconds: float = Field(1800.0, gt=0)

    @model_validator(mode="after")
    def _agrees(self) -> PlacementConfig:
        if self.min_engines > self.max_engines:
            raise ValueError(f"min_engines ({self.min_engines}) is more than max_engines ({self.max_engines})")
        meant = {name for name in _STRANGERS[self.kind] if getattr(self, name) != type(self).model_fields[name].default}
        if strangers := sorted(meant):  # a job that was written out names every key
            raise ValueError(f"`{strangers[0]}` means nothing under `kind: {self.kind}`")
        return self


class SafetyConfig(Strict):
    """What a kill may cost, and how long nothing may happen, in seconds.

    Finished documents of a unit that is not committed yet are saved after `save_seconds`, and before `save_documents`
    of a process, with those that it is working on, could be lost. An engine that gives no sign for
    `engine_stall_seconds` with requests open is taken for stuck; a job in which no document finishes for
    `stall_seconds` ends. Ctrl-C and SIGTERM leave documents in flight `drain_seconds` to finish.
    """

    save_seconds: float = Field(60.0, gt=0)
    save_documents: int = Field(500, ge=1)
    engine_stall_seconds: float = Field(300.0, gt=0)
    stall_seconds: float = Field(1800.0, gt=0)
    drain_seconds: float = Field(30.0, ge=0)


class PilotConfig(Strict):
    """How many documents of each schema are tried before the mass, picked by `seed`. 0: none. A schema with fewer
    than four times as many has no pilot."""

    documents: int = Field(32, ge=0, le=1000)
    seed: int = 0


class AuditConfig(Strict):
    """Of which `fraction` of the documents of each schema, picked by `seed`, the engine is asked what the model would
    have written without its constraint (docs/clipped-mass.md). Prompts that have more than `max_tokens` with their
    answers are left out."""

    fraction: float = Field(0.0, ge=0, le=1)
    seed: int = 0
    max_tokens: int = Field(4096, ge=1)


class StopConfig(Strict):
    """When the documents of a schema are given up for this run, resumably. Shares are of the documents that an engine
    was asked about, judged when there are `after` of them; null switches one off.

    `truncation`: more than this share was cut. `first_pass`: the first answers of fewer are JSON as they came.
    `semantic`: the first answers of fewer pass the schema, its rules and grounding. `rejection`: more are rejected.
    """

    truncation: float | None = Field(0.5, ge=0, le=1)
    first_pass: float | None = Field(0.3, ge=0, le=1)
    semantic: float | None = Field(None, ge=0, le=1)
    rejection: float | None = Field(0.5, ge=0, le=1)
    after: int = Field(32, ge=1)


class EventsConfig(Strict):
    """Where what is notable is written, as JSON lines (docs/events.md): a directory on each machine of the run; null:
    nowhere. `text: true` adds what documents and models say. What a regular expression of `redact` finds in any string
    is replaced. A process keeps `keep` files of `max_bytes`; the oldest go first."""

    path: str | None = Field(None, min_length=1)
    text: bool = False
    redact: tuple[str, ...] = Field((), max_length=100)
    max_bytes: int = Field(10_000_000, ge=10_000, le=10**9)
    keep: int = Field(5, ge=1, le=1000)

    @field_validator("path")
    @classmethod
    def _is_a_directory(cls, path: str | None) -> str | None:
        if path is not None and "://" in path:
            raise ValueError("events are appended to files of a directory; a URI cannot be appended to")
        return path

    @field_validator("redact")
    @classmethod
    def _finds_something(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        import regex  # type: ignore[import-untyped]

        for number, pattern in enumerate(patterns):
            try:
                found = regex.compile(pattern).search("")
            except regex.error as error:
                raise ValueError(f"pattern {number} is no regular expression: {error}") from error
            if found:
                raise ValueError(f"pattern {number} finds the empty text: it would be everywhere")
        return patterns
