"""Gold score: how well each side of a pair agrees with gold, as one number a document (docs/evaluate.md: mean F1)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.evaluate.gold import GoldConfig, GoldRow, fault_of, read_gold, without_nulls
from pipeline.evaluate.judged import EXPECTED, FOUND
from pipeline.evaluate.kept import KeptGold
from pipeline.evaluate.match import RIGHT, match, match_nothing
from pipeline.records import JsonValue
from pipeline.schema.validator import validator_of


class GoldScore:
    """Scores records by schema and document. `counts` has `scored` and, of gold that its schema refuses, `invalid`."""

    def __init__(self, kept: KeptGold, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        self.counts: Counter[str] = Counter()
        self._kept, self._bodies = kept, bodies
        self._validators = {name: validator_of(body) for name, body in bodies.items()}

    def __call__(self, schema: str, document_id: str, record: JsonValue | None) -> float | None:
        """F1 of the record's leaves, normalised; 0 without a record, None without gold that can be used."""
        gold = self._kept.take(document_id, schema)
        if gold is None or (gold := self._usable(gold, schema)) is None:
            return None
        body = self._bodies.get(schema, {})
        if record is None:
            matched = match_nothing(gold.record, body)
        else:
            matched = match(gold.record, record, body, gold.acceptable)
        self.counts["scored"] += 1
        verdicts = Counter[str](one.verdict for one in matched.fields)
        sizes = sum(verdicts[name] for name in (*EXPECTED, *FOUND)) + matched.left_out
        return 2 * sum(verdicts[name] for name in RIGHT) / sizes if sizes else float(record is not None)

    def _usable(self, gold: GoldRow, schema: str) -> GoldRow | None:
        validator = self._validators.get(schema)
        if validator is None:
            return gold
        for record in (gold.record, without_nulls(gold.record)):
            if not fault_of(record, validator):
                return dataclasses.replace(gold, record=record)
        self.counts["invalid"] += 1
        return None


@contextmanager
def scoring(config: GoldConfig, bodies: Mapping[str, Mapping[str, Any]]) -> Iterator[GoldScore]:
    """Scores against gold, which is kept on disk meanwhile. `bodies` are schemas by name.

    Raises:
        InputError: the gold cannot be read.
    """
    with KeptGold() as kept:
        kept.fill(read_gold(config))
        yield GoldScore(kept, bodies)
