"""The public metrics by hand, and on their own data against a scorer that shares no code."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import recomputed_scores as other

from pipeline.evaluate.intervals import Bootstrap
from pipeline.evaluate.published import published_counts
from pipeline.evaluate.scores import published_of

SHARED = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).resolve().parents[4] / "shared") / "data" / "docs"


def test_sroie_counts_texts_that_are_equal_in_their_category() -> None:
    gold = {"company": "A SDN BHD", "date": "1/2/18", "address": None, "total": "9.00"}
    counts = published_counts(gold, {"company": "A SDN BHD", "date": "9.00", "address": "X", "total": "RM9.00"})
    assert counts is not None and counts["sroie"] == (1, 4, 3)
    nothing = published_counts(gold, None)
    assert nothing is not None and nothing["sroie"] == (0, 0, 3)


def test_kleister_compares_words_in_upper_case_with_blanks_and_colons_as_underscores() -> None:
    gold = {"party": ["Acme Inc.", "B C"], "term": "2 years", "jurisdiction": None}
    found = {"party": ["ACME INC.", "Acme inc.", "b:c"], "term": "2 Years", "jurisdiction": "Utah"}
    counts = published_counts(gold, found)
    assert counts is not None
    assert counts["kleister_uncased"] == (3, 5, 3)  # of a value that is given twice one is right
    assert counts["kleister_cased"] == (0, 5, 3)


def test_a_value_with_a_line_break_is_two_words_as_in_a_file_of_words() -> None:
    counts = published_counts({"a": "x y"}, {"a": "x\ny"})
    assert counts is not None and counts["kleister_uncased"] == (0, 2, 1)


def test_neither_speaks_of_nested_records() -> None:
    assert published_counts({"a": [{"b": 1}]}, {"a": []}) is None


def noisy(record: dict[str, Any], chance: random.Random) -> dict[str, Any] | None:
    """What a poor model might make of it."""
    if chance.random() < 0.1:
        return None
    made: dict[str, Any] = {}
    for key, value in record.items():
        items = [
            text.swapcase() if chance.random() < 0.3 else text
            for text in (value if isinstance(value, list) else [value])
            if text
        ]
        items = [text for text in items if chance.random() < 0.8] + (["MADE: UP"] if chance.random() < 0.3 else [])
        made[key] = items + items[:1] if isinstance(value, list) else next(iter(items), None)
    return made


@pytest.mark.parametrize("folder", ["receipts_sroie", "contracts_nda"])
def test_on_their_own_data_both_scorers_agree(folder: str) -> None:
    path = SHARED / folder / "docs.jsonl"
    if not path.is_file():
        pytest.skip(f"{folder} is not here: set GRISTMILL_SHARED")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    gold = {row["id"]: row["ground_truth"] for row in rows}
    chance = random.Random(7)
    run = {key: noisy(record, chance) for key, record in gold.items()}
    boot = Bootstrap(100)
    for key, record in gold.items():
        counts = published_counts(record, run[key])
        assert counts is not None
        names = ("right", "extracted", "expected")
        values = {
            (("all",), f"{m}_{n}"): float(v) for m, three in counts.items() for n, v in zip(names, three, strict=True)
        }
        boot.add(key, {**values, (("all",), "documents"): 1.0})
    found = published_of(boot)
    assert found is not None
    for metric, words in (("sroie", other.sroie), ("kleister_uncased", other.kleister)):
        expected = other.micro(run, gold, words)
        assert 0.2 < expected["f1"] < 0.95
        for part, value in expected.items():
            assert found[metric][part].value == pytest.approx(value)
