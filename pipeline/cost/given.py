"""Given: what a person says about a job that no file says."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import JobFileError


@dataclass(frozen=True, slots=True)
class Given:
    """Options of `gristmill plan`. Rates are tokens per second of one engine that is fully used; `tokens_per_second`
    are output tokens, within which prompts are read unless `prompt_tokens_per_second` says how fast those are.
    `success` is the chance that an answer needs no other one; `run` is a committed run of the job. Without
    `start_minutes` the start of engines is as the run measured it, or is left out."""

    run: str | None = None
    sample: int = 200
    seed: int = 0
    success: float | None = None
    output_tokens: float | None = None
    tokens_per_second: float | None = None
    prompt_tokens_per_second: float | None = None
    price_per_gpu_hour: float | None = None
    deadline_hours: float | None = None
    reserve: float = 0.25
    start_minutes: float | None = None

    def check(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            JobFileError: a figure is out of its bounds, or asks for another one.
        """
        rates = ("output_tokens", "tokens_per_second", "prompt_tokens_per_second", "deadline_hours")
        for name in rates:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise JobFileError(f"{option(name)} must be a number above 0, found {value:g}.")
        if self.sample < 2:
            raise JobFileError(f"--sample must be 2 or more, found {self.sample}: one document shows no spread.")
        if self.success is not None and not 0 <= self.success <= 1:
            raise JobFileError(f"--success is a chance from 0 to 1, found {self.success:g}.")
        for name in ("reserve", "start_minutes", "price_per_gpu_hour"):
            if not 0 <= (getattr(self, name) or 0) < float("inf"):
                raise JobFileError(f"{option(name)} must be 0 or more, found {getattr(self, name):g}.")
        if self.tokens_per_second is None and self.run is None:
            wanting = next((n for n in (*rates[2:], "price_per_gpu_hour") if getattr(self, n) is not None), None)
            if wanting:
                raise JobFileError(
                    f"{option(wanting)} asks for hours: give --tokens-per-second, or --run to measure it."
                )
        if self.prompt_tokens_per_second is not None and self.tokens_per_second is None:
            raise JobFileError(
                "--prompt-tokens-per-second needs --tokens-per-second beside it: in what a run measured, prompts are "
                "read already."
            )
        self.check_start(self.start_minutes or 0.0)

    def check_start(self, minutes: float) -> None:
        """Refuse a start that leaves no time.

        Raises:
            JobFileError: engines start after the deadline.
        """
        if self.deadline_hours is not None and self.deadline_hours * 60 <= minutes:
            raise JobFileError(
                f"--deadline ({self.deadline_hours:g} hours) leaves no time after the start of engines "
                f"({minutes:.3g} minutes, --start-minutes)."
            )


def option(name: str) -> str:
    """The option of a field, as it is written."""
    return "--deadline" if name == "deadline_hours" else f"--{name.replace('_', '-')}"
