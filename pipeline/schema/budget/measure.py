"""Measure: the token budget of one schema, from its shapes, the model's tokenizer and records if there are some."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.budget.ceiling import ceiling
from pipeline.schema.budget.floor import candidates
from pipeline.schema.budget.meter import Count, answer_tokens
from pipeline.schema.budget.policy import (
    DRAWING_SECONDS,
    HEADROOM,
    MAX_DRAWN,
    MAX_DRAWN_CHARACTERS,
    MAX_SAMPLES,
    NUMBER_CHARACTERS,
)
from pipeline.schema.probe.draw import LEAN, RICH, SMALL, Drawer
from pipeline.schema.probe.minimal import TooLargeError
from pipeline.schema.reading import exchanged
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.shapes import Shapes
from pipeline.schema.shape.source import Source
from pipeline.schema.validator import PatternTimeout

CalibratedBy = Literal["samples", "examples", "drawn"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens of answers in canonical form; the end token is one of them. See docs/budget.md.

    `shortest_tokens` belongs to `shortest_text`, the record of fewest tokens that was found. Decoders allow it;
    where the validator refuses it the shortest legal record is longer. `typical_tokens` (P50) and `p99_tokens` are of
    the records that `calibrated_by` names, `sample_tokens` in rising order; `skipped_samples` were not legal. Without
    a legal record both are `shortest_tokens`. `worst_tokens` is None where `unbounded_at`, pointers into the schema,
    names something; `worst_bytes` bounds the answer however the model cuts it into tokens.
    """

    shortest_text: str
    shortest_tokens: int
    typical_tokens: int
    p99_tokens: int
    recommended_tokens: int
    worst_tokens: int | None
    worst_bytes: int | None
    unbounded_at: tuple[str, ...]
    calibrated_by: CalibratedBy
    sample_tokens: tuple[int, ...]
    skipped_samples: int

    @property
    def sample_count(self) -> int:
        """Records that the percentiles come from."""
        return len(self.sample_tokens)

    def to_json(self) -> dict[str, Any]:
        """The numbers for a report or a lock file, without the single samples."""
        return {
            "shortest_text": self.shortest_text,
            "shortest_tokens": self.shortest_tokens,
            "typical_tokens": self.typical_tokens,
            "p99_tokens": self.p99_tokens,
            "recommended_tokens": self.recommended_tokens,
            "worst_tokens": self.worst_tokens,
            "worst_bytes": self.worst_bytes,
            "unbounded_at": list(self.unbounded_at),
            "number_characters_assumed": NUMBER_CHARACTERS,
            "calibrated_by": self.calibrated_by,
            "sample_count": self.sample_count,
            "skipped_samples": self.skipped_samples,
        }


def budget(
    shapes: Shapes,
    source: Source | Mapping[str, Any],
    count: Count,
    samples: Sequence[JsonValue] = (),
    examples: Sequence[JsonValue] = (),
) -> Budget:
    """The budget of a loaded body (or its `Source`) whose shapes went through the policy that engines get.

    `count` gives the tokens of a text, without special tokens. `samples` are records of real documents, `examples`
    those of the few-shot pairs; both count together. Illegal ones are skipped. Without legal ones records are drawn.

    Raises:
        TooLargeError: the smallest record has over MAX_SHORTEST characters or 150 levels, or there is none.
    """
    source = source if isinstance(source, Source) else Source(source)
    smallest = [canonical_text(source, value) for value in candidates(shapes, count)]
    calibrated_by, texts, skipped = _records(source, samples, examples)
    if not texts and len(smallest[0]) <= MAX_DRAWN_CHARACTERS:
        texts = list(_drawn(shapes, source))
    sizes = sorted((answer_tokens(count, text), text) for text in texts)
    least, text = min([(answer_tokens(count, text), text) for text in smallest] + sizes[:1])
    tokens = tuple(size for size, _ in sizes)
    p99 = _percentile(tokens or (least,), 0.99)
    highest = ceiling(shapes, count)
    return Budget(
        shortest_text=text,
        shortest_tokens=least,
        typical_tokens=_percentile(tokens or (least,), 0.5),
        p99_tokens=p99,
        recommended_tokens=HEADROOM * p99,
        worst_tokens=highest.tokens,
        worst_bytes=highest.bytes,
        unbounded_at=highest.unbounded_at,
        calibrated_by=calibrated_by,
        sample_tokens=tokens,
        skipped_samples=skipped,
    )


def _records(
    source: Source, samples: Sequence[JsonValue], examples: Sequence[JsonValue]
) -> tuple[CalibratedBy, list[str], int]:
    """(what there is to calibrate by, canonical texts of the legal records, how many were skipped)."""
    sampled, skipped = _legal_texts(source, samples)
    shown, skipped_examples = _legal_texts(source, examples)
    by: CalibratedBy = "samples" if sampled else "examples" if shown else "drawn"
    return by, sampled + shown, skipped + skipped_examples


def _legal_texts(source: Source, records: Sequence[JsonValue]) -> tuple[list[str], int]:
    """(canonical texts of the legal ones, how many were none)."""
    step = max(1, math.ceil(len(records) / MAX_SAMPLES))
    judged = [_legal_text(source, record) for record in records[::step]]
    texts = [text for text in judged if text is not None]
    return texts, len(judged) - len(texts)


def _legal_text(source: Source, record: JsonValue) -> str | None:
    try:
        value = exchanged(record)
        return canonical_text(source, value) if source.accepts("", value) else None
    except (SchemaError, PatternTimeout, RecursionError):
        return None


def _drawn(shapes: Shapes, source: Source) -> Iterator[str]:
    """Random legal records of all sizes, the same for the same shapes unless time runs out."""
    rng = random.Random(0)
    drawer = Drawer(shapes, rng)
    end = time.monotonic() + DRAWING_SECONDS
    for _ in range(MAX_DRAWN):
        if time.monotonic() > end:
            return
        try:
            value = drawer.draw(spare=rng.choice((SMALL, LEAN, LEAN, RICH)), keys=rng.random()).value
        except (TooLargeError, RecursionError):
            return
        text = _legal_text(source, value)
        if text is not None:
            yield text


def _percentile(rising: Sequence[int], share: float) -> int:
    """Nearest rank: the least value that no less than this share is at or below."""
    return rising[math.ceil(share * len(rising)) - 1]
