"""The gate: promote only what is shown to be no worse, roll back only what is shown to be worse, else hold."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.evaluate.comparison import Pairing, RunComparison, Side
from pipeline.evaluate.gate import Gated, Rule, gate
from pipeline.evaluate.measured import Seen
from pipeline.evaluate.paired import About, Pair, compare_pairs
from pipeline.jobgate import GateConfig

VALUES = {
    **dict.fromkeys(("valid", "usable", "first_format", "first_json", "first_schema", "first_semantic"), 1.0),
    **dict.fromkeys(("unsupported", "truncated", "retried", "salvaged"), 0.0),
    "constrained": 1.0,
    "attempts": 1.0,
    "prompt_tokens": 100.0,
    "output_tokens": 50.0,
    "tokens": 150.0,
}
SIDE = Side("", "", "", "", 0)


def seen(number: int, record: Any = None, schema: str = "s@1", **values: float) -> Seen:
    packed = zlib.compress(json.dumps(record if record is not None else {"kind": "a", "n": number}).encode())
    status = "valid" if values.get("valid", 1.0) else "degraded"
    return Seen(f"d{number:05}", schema, status, VALUES | values, frozenset(), 1.0, status, packed)


def compared(pairs: Sequence[Pair]) -> RunComparison:
    return compare_pairs(pairs, About(SIDE, SIDE, Pairing(len(pairs))), alpha=0.01)


def changed(documents: int, worse: int, better: int = 0, **values: float) -> RunComparison:
    """Run B has these values in so many documents, and A has them in so many others."""
    pairs = []
    for n in range(documents):
        one, two = seen(n), seen(n)
        if n < worse:
            two = seen(n, **values)
        elif n < worse + better:
            one = seen(n, **values)
        pairs.append((one, two))
    return compared(pairs)


def rule(found: Gated, name: str) -> Rule:
    (one,) = [one for one in found.rules if one.name == name]
    return one


def test_equal_runs_are_promoted_when_there_are_enough_documents_to_say_so() -> None:
    assert gate(changed(120, 0), GateConfig()).decision == "hold"
    found = gate(changed(400, 0), GateConfig())
    assert found.decision == "promote"
    assert not found.reasons
    needed = rule(gate(changed(120, 0), GateConfig()), "max_valid_drop").needed
    assert gate(changed(needed, 0), GateConfig()).decision == "promote"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_valid_drop", {"valid": 0.0}),
        ("max_format_drop", {"first_format": 0.0}),
        ("max_semantic_drop", {"first_semantic": 0.0}),
        ("max_truncation_rise", {"truncated": 1.0}),
        ("max_unsupported_rise", {"unsupported": 1.0}),
        ("max_cost_rise", {"tokens": 1500.0}),
    ],
)
def test_each_rule_rolls_back_what_is_proven_worse_and_not_what_is_better(name: str, values: dict[str, float]) -> None:
    worse = gate(changed(400, 60, **values), GateConfig())
    assert worse.decision == "roll_back"
    assert rule(worse, name).state == "broken"
    assert rule(worse, name).alarm
    assert any(name in words for words in worse.reasons)
    off = GateConfig(**{name: None})
    assert not [one for one in gate(changed(400, 60, **values), off).rules if one.name == name]
    assert gate(changed(400, 0, 60, **values), GateConfig()).decision == "promote"


def test_a_drop_that_may_be_within_the_margin_or_beyond_holds() -> None:
    found = gate(changed(400, 10, valid=0.0), GateConfig())
    one = rule(found, "max_valid_drop")
    assert found.decision == "hold"
    assert one.state == "open" and one.low < 0.02 < one.high
    assert one.alarm, "ten of ten one way are beyond chance"
    assert gate(changed(4000, 10, valid=0.0), GateConfig()).decision == "promote"


def test_as_many_better_as_worse_is_no_drop_but_takes_more_documents_to_say_so() -> None:
    found = gate(changed(400, 20, 20, valid=0.0), GateConfig())
    assert rule(found, "max_valid_drop").state == "open"
    assert not rule(found, "max_valid_drop").alarm
    assert rule(gate(changed(4000, 200, 200, valid=0.0), GateConfig()), "max_valid_drop").state == "kept"


def test_one_schema_that_broke_is_not_outvoted_by_the_others() -> None:
    pairs = [(seen(n), seen(n)) for n in range(5000)]
    pairs += [(seen(n, schema="rare@1"), seen(n, schema="rare@1", valid=0.0)) for n in range(5000, 5030)]
    found = gate(compared(pairs), GateConfig())
    assert rule(found, "max_valid_drop").state == "kept"
    assert rule(found, "max_valid_drop of rare@1").alarm
    assert found.decision == "hold"


def test_fields_that_move_hold_roll_back_or_are_ignored_as_the_rules_say() -> None:
    pairs = [(seen(n, {"kind": "ab"[n % 2]}), seen(n, {"kind": "b"})) for n in range(400)]
    found = compared(pairs)
    assert gate(found, GateConfig()).decision == "hold"
    assert "/kind" in " ".join(gate(found, GateConfig()).reasons)
    assert gate(found, GateConfig(on_field_shift="roll_back")).decision == "roll_back"
    assert gate(found, GateConfig(on_field_shift="ignore")).decision == "promote"
    assert gate(found, GateConfig(on_field_shift="ignore", max_field_change=0.6)).decision == "promote"
    assert gate(found, GateConfig(on_field_shift="ignore", max_field_change=0.3)).decision == "roll_back"


def test_values_that_trade_places_move_no_field_but_change_it() -> None:
    pairs = [(seen(n, {"kind": "ab"[n % 2]}), seen(n, {"kind": "ba"[n % 2]})) for n in range(400)]
    found = compared(pairs)
    assert found.fields[0].changed == 400
    assert rule(gate(found, GateConfig()), "field_shift").state == "kept"
    assert gate(found, GateConfig(max_field_change=0.05)).decision == "roll_back"


def test_seconds_of_a_busy_machine_are_no_finding() -> None:
    pairs = [
        (seen(n), Seen(*[getattr(seen(n), name) for name in Seen.__slots__[:5]], 90.0, "", seen(n).packed))
        for n in range(400)
    ]
    found = compared([(one, two) for one, two in pairs])
    assert found.seconds == (400.0, 36_000.0)
    assert not [one for one in found.measures if one.verdict == "changed"]


def test_gold_counts_where_it_is_given() -> None:
    pairs = [(seen(n), seen(n)) for n in range(400)]

    def score(schema: str, document_id: str, record: Any) -> float | None:
        return None if document_id < "d00100" else 0.5

    about = About(SIDE, SIDE, Pairing(400))
    found = compare_pairs(pairs, about, alpha=0.01, score=score)
    one = found.measure("gold")
    assert one is not None and (one.documents, one.a, one.b) == (300, 0.5, 0.5)
    assert rule(gate(found, GateConfig()), "max_gold_drop").state == "kept"
    assert not [one for one in gate(compared(pairs), GateConfig()).rules if one.name == "max_gold_drop"]


def test_shares_of_a_document_are_judged_as_cautiously_as_yes_and_no() -> None:
    half = gate(changed(400, 80, unsupported=0.5), GateConfig())
    whole = gate(changed(400, 40, unsupported=1.0), GateConfig())
    one, two = (rule(found, "max_unsupported_rise") for found in (half, whole))
    assert (one.change, one.low, one.high) == pytest.approx((two.change, two.low, two.high))


@pytest.mark.parametrize("wrong", [{"alpha": 0}, {"max_valid_drop": 0}, {"field_shift": 2}, {"on_field_shift": "x"}])
def test_rules_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GateConfig(**wrong)
