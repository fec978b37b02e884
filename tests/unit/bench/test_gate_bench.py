"""The draws of `bench.gate`: what makes its numbers mean something."""

from __future__ import annotations

import random
import zlib
from collections import Counter

from bench.gate import alarms, compared, drawn, rings
from pipeline.evaluate.gate import gate
from pipeline.evaluate.measured import Seen
from pipeline.jobgate import GateConfig

RECORD = zlib.compress(b'{"kind":"a"}')


def pool(status: str, documents: int = 30) -> dict[str, Seen]:
    values = {"valid": float(status == "valid"), "usable": 1.0}
    return {f"d{n}": Seen(f"d{n}", "s@1", status, values, frozenset(), 0.0, status, RECORD) for n in range(documents)}


def test_every_document_is_drawn_once_before_any_comes_again_and_the_sides_differ() -> None:
    found = {"base 0": pool("valid"), "base 1": pool("degraded"), "worse": pool("rejected")}
    pairs = list(drawn(found, "", 0.0, 75, random.Random(3)))
    assert len({one.document_id for one, _ in pairs}) == 75, "each draw is a document of its own"
    assert Counter({one.status, two.status} == {"valid", "degraded"} for one, two in pairs) == {True: 75}
    assert 20 < sum(one.status == "valid" for one, _ in pairs) < 55, "which seed is A is a coin's throw"
    planted = list(drawn(found, "worse", 0.5, 400, random.Random(3)))
    assert 150 < sum(two.status == "rejected" for _, two in planted) < 250
    assert not any(one.status == "rejected" for one, _ in planted)


def test_a_gate_that_only_wants_more_documents_does_not_ring() -> None:
    same = compared(list(drawn({"base 0": pool("valid"), "base 1": pool("valid")}, "", 0.0, 30, random.Random(1))))
    held = gate(same, GateConfig())
    assert held.decision == "hold"
    assert not alarms(same) and not rings(held)
    worse = {"base 0": pool("valid"), "base 1": pool("valid"), "worse": pool("degraded")}
    found = compared(list(drawn(worse, "worse", 1.0, 30, random.Random(1))))
    assert alarms(found)
    assert "max_valid_drop" in rings(gate(found, GateConfig()))
