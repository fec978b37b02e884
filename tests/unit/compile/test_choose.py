"""Which back end a schema is decoded with: the same answer every day, and the reason in words."""

from __future__ import annotations

from typing import Any

from pipeline.compile.check import HEAVY_BYTES, Trial, choose
from pipeline.schema.shape.shapes import Left

ONE = (Left("/a", "maxLength", "why"),)


def trials(xgrammar: dict[str, Any], guidance: dict[str, Any]) -> list[Trial]:
    return [Trial("guidance", **{"kind": "ok", **guidance}), Trial("xgrammar", **{"kind": "ok", **xgrammar})]


def chosen(xgrammar: dict[str, Any], guidance: dict[str, Any]) -> str:
    best, why = choose(trials(xgrammar, guidance))
    assert why
    return best.backend


def test_the_order_of_reasons() -> None:
    assert chosen({}, {}) == "xgrammar"  # all alike: it keeps its grammars
    assert chosen({"left": ONE}, {}) == "guidance"
    assert chosen({"left": ONE}, {"lost": ("1",)}) == "xgrammar"  # a legal answer out of reach is worse than one let by
    assert chosen({"grammar_bytes": HEAVY_BYTES + 1}, {}) == "guidance"
    assert chosen({"grammar_bytes": HEAVY_BYTES + 1}, {"left": ONE}) == "xgrammar"
    assert chosen({}, {"narrowed": ("/a",)}) == "guidance"


def test_what_cannot_be_used_is_not_chosen_whatever_it_would_hold() -> None:
    for kind in ("refused", "timeout", "crash", "memory", "error"):
        assert chosen({"kind": kind}, {"left": ONE, "lost": ("1",)}) == "guidance"
        best, why = choose(trials({"kind": kind}, {}))
        assert kind in why
        assert best.usable


def test_neither_times_nor_what_a_trial_happened_to_find_decide() -> None:
    slow = {"compile_seconds": 60.0, "seconds": 90.0, "mask_seconds": {"p99": 1.0}}
    assert chosen(slow, {}) == chosen({}, slow) == "xgrammar"
    found = {"left": ONE, "surprises": (("/a", "maxLength"),)}
    assert chosen(found, {}) == "xgrammar"


def test_one_back_end_is_no_choice() -> None:
    (_, only) = trials({}, {})
    best, why = choose([only])
    assert (best, why) == (only, "it is the only back end asked for")
