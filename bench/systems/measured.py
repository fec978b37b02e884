"""What one system reports of one round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

FROM, TO = 0.1, 0.9
"""The steady window: from the completion of the first 10 % of the documents to that of 90 %."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`start_seconds`: from the start of the process to the last answer of the warm-up. `total_seconds`: from the
    first document handed over to the last result. `steady_rate` is documents a second in the steady window.
    """

    system: str
    documents: int
    start_seconds: float
    total_seconds: float
    steady_rate: float
    prompt_tokens: int
    output_tokens: int
    texts: dict[str, str]
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Documents a second, first submission to last result."""
        return self.documents / self.total_seconds

    def print(self) -> None:
        print(json.dumps(asdict(self)), flush=True)

    @classmethod
    def find(cls, output: str) -> Measured | None:
        """The report in a process's output, which vLLM and Ray may have written to, too."""
        lines = [line for line in output.splitlines() if line.startswith('{"system"')]
        return cls(**json.loads(lines[-1])) if lines else None


def steady_rate(finished: Sequence[float]) -> float:
    """Documents a second between the completions that bound the steady window; 0 with too few documents."""
    times = sorted(finished)
    first, last = round(FROM * len(times)), round(TO * len(times)) - 1
    if last <= first or times[last] <= times[first]:
        return 0.0
    return (last - first) / (times[last] - times[first])
