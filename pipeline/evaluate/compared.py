"""Compared: two committed runs, paired by document (docs/compare.md has the statistics)."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.evaluate.comparison import RunComparison
from pipeline.records import JsonValue
from pipeline.runtime.store import Store

ALPHA = 0.01
"""Chance at most that anything is called changed where nothing is."""
MAX_DOCUMENTS = 20_000

Score = Callable[[str, str, JsonValue | None], float | None]
"""How well a record agrees with gold, 0 to 1, by (schema, document id, record; None if there is none); None: no gold."""


def compare_runs(
    a: Store, b: Store, *, alpha: float = ALPHA, most: int = MAX_DOCUMENTS, score: Score | None = None
) -> RunComparison:
    """Run B held against run A on the documents of both, at most about `most` of them.

    Raises:
        OutputError: a run is not committed, or cannot be read; or they have no document in common.
    """
    raise NotImplementedError
