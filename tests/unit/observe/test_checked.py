"""What a person sees of a report: the grave things first, the held ones folded, nothing of a schema acts."""

from __future__ import annotations

import copy
import io
import re
from typing import Any

import pytest

from pipeline.observe.checked import MAX_ROWS, line, rendered
from pipeline.observe.checked_numbers import safe
from pipeline.observe.visible import console_on

EVIL = "a\x1b[2J\x9b\u202e\n[red]x[/red]\t[/b]\ud800"


def trial(**values: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kind": "ok",
        "words": "",
        "admission": "admitted",
        "verdicts": {"enforced": 2, "dropped": 1},
        "left": [],
        "narrowed": [],
        "surprises": [],
        "lost": [],
        "complete": True,
        "compile_seconds": 0.0123,
        "grammar_bytes": 2048,
        "peak_mib": 3.0,
        "seconds": 1.5,
        "valid": 9,
        "mask_seconds": {"p50": 1e-6, "p99": 2e-6, "p999": 3e-6},
        "walks": {"finished": 8},
        "raw": None,
    }
    return base | values


def site(keyword: str, who: str = "grammar", pointer: str = "/properties/a", **verdicts: str) -> dict[str, Any]:
    told = {"xgrammar": "enforced", "guidance": "enforced", **verdicts}
    backends = {name: {"verdict": verdict, "evidence": "", "left": ""} for name, verdict in told.items()}
    return {"pointer": pointer, "keyword": keyword, "caught_by": who, "backends": backends}


def report(**values: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "name": "thing@1",
        "refused": None,
        "chosen": {"backend": "guidance", "why": "it holds more"},
        "sites": [site("type"), site("type", pointer=""), site("pattern", xgrammar="dropped")],
        "backends": {"xgrammar": trial(), "guidance": trial(grammar_bytes=None)},
        "closed": [],
        "printed": [],
        "lint": {"findings": [], "counts": {}},
        "budget": None,
        "columns": [{"path": "a", "type": "string", "nullable": True, "note": "kept as JSON text"}],
        "drift": None,
        "lock": None,
        "strict": [],
    }
    return base | values


def printed(one: dict[str, Any], *, everything: bool = False) -> str:
    console = console_on()
    console.file, console.width = io.StringIO(), 1000
    for part in rendered(one, everything=everything):
        console.print(part)
    return console.file.getvalue()


def test_what_every_back_end_holds_is_folded_into_counts() -> None:
    shown = printed(report())
    assert "held by every back end in use: 2 sites: 2 type" in shown
    assert len(re.findall(r"\btype\b.*enforced", shown)) == 0
    assert len(re.findall(r"\btype\b.*enforced.*enforced.*grammar", printed(report(), everything=True))) == 2


def test_the_gravest_sites_come_first() -> None:
    rows = [site("minimum", "grammar", xgrammar="dropped"), site("maximum", "validator"), site("format", "nobody")]
    shown = printed(report(sites=rows))
    assert shown.index("format") < shown.index("maximum") < shown.index("minimum")


def test_a_back_end_that_cannot_be_used_hides_no_site_and_is_told() -> None:
    rows = [site("type", xgrammar="refused")]
    shown = printed(
        report(sites=rows, backends={"xgrammar": trial(kind="crash", words="signal 11"), "guidance": trial()})
    )
    assert "xgrammar cannot be used: crash: signal 11" in shown
    assert "held by every back end in use: 1 sites" in shown


def test_surprises_and_losses_are_loud() -> None:
    faulty = trial(surprises=[{"pointer": "", "keyword": "required"}], lost=["{}", "[]", "1", "2", "3"])
    shown = printed(report(backends={"guidance": faulty}, sites=[]))
    assert "SURPRISE: guidance does not hold required at /" in shown
    assert "LOST: guidance cannot produce the legal answer {}" in shown
    assert "2 more legal answers" in shown


def test_what_is_asked_for_as_printed_is_told() -> None:
    assert "as text as printed" in printed(report(printed=["/properties/total"]))
    assert "/properties/total" in printed(report(printed=["/properties/total"]))


def test_the_costs_and_the_raw_comparison() -> None:
    raw = {"refused": "vLLM: no", "verdicts": {"refused": 3}, "lost": 0}
    shown = printed(report(backends={"xgrammar": trial(raw=raw), "guidance": trial(grammar_bytes=None)}))
    assert "12.3 ms" in shown
    assert "1 / 2 / 3 µs" in shown
    assert "not told by the library" in shown
    assert "as written: refused: vLLM: no" in shown


def test_the_budget_in_words() -> None:
    numbers = {"shortest_tokens": 3, "typical_tokens": 5, "p99_tokens": 8, "sample_count": 2, "recommended_tokens": 16}
    numbers |= {"calibrated_by": "examples", "worst_tokens": None, "unbounded_at": ["/properties/a"]}
    finding = {"code": "below_shortest", "severity": "refuse", "message": "max_tokens is 2"}
    budget = {"numbers": numbers, "prompt_tokens": 70, "system_tokens": 50, "findings": [finding]}
    shown = printed(report(budget=budget))
    assert "unbounded at /properties/a" in shown
    assert "70 with an empty document, 50 of them" in shown
    assert "refused (below_shortest): max_tokens is 2" in shown


@pytest.mark.parametrize("state", ["absent", "fresh", "stale", "other", "written"])
def test_the_lock_is_told(state: str) -> None:
    changes = [{"kind": "versions", "where": "xgrammar", "was": "1", "now": "2"}] if state == "stale" else []
    shown = printed(report(lock={"state": state, "changes": changes}))
    assert "lock: " in shown
    assert ("versions" in shown) == bool(changes)


def test_long_tables_are_cut_and_say_so() -> None:
    rows = [site("minimum", "validator", f"/properties/p{number}") for number in range(MAX_ROWS + 5)]
    assert "… and 5 more (--all)" in printed(report(sites=rows))
    assert "more (--all)" not in printed(report(sites=rows), everything=True)


def test_a_refused_schema_is_short() -> None:
    one = report(refused={"code": "malformed", "words": "no schema"}, chosen=None, backends={}, sites=[], columns=[])
    assert printed(one).split() == ["thing@1", "refused", "(malformed):", "no", "schema"]


def _poisoned(value: Any) -> Any:
    """The value with hostile text in place of every text that a schema can choose."""
    if isinstance(value, dict):
        fixed = {"caught_by", "backend", "kind", "verdict", "state"}
        return {key: item if key in fixed else _poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item) for item in value]
    return EVIL if isinstance(value, str) else value


def hostile() -> dict[str, Any]:
    raw = {"refused": "x", "verdicts": {}, "lost": 1}
    faulty = trial(surprises=[{"pointer": "x", "keyword": "x"}], lost=["x"], narrowed=["x"], raw=raw, complete=False)
    faulty |= {"left": [{"pointer": "x", "keyword": "x", "why": "x"}]}
    finding = {"severity": "warning", "code": "x", "pointer": "x", "why": "x", "fix": "x"}
    keys = ("pointer", "kind", "before", "after", "language", "readers", "model")
    drift = {"against": "x", "worst": "x", "language": "x", "readers": "x", "model": "x"}
    lock = {"state": "stale", "changes": [{"kind": "x", "where": "x", "was": "x", "now": "x"}]}
    return report(
        refused={"code": "x", "words": "x"},
        sites=[site("x", "validator", "x"), site("x", pointer="x")],
        backends={"guidance": faulty, "xgrammar": trial(kind="refused", words="x")},
        closed=["x"],
        lint={"findings": [finding], "counts": {}},
        budget={
            "numbers": None,
            "words": "x",
            "prompt_tokens": None,
            "findings": [{"code": "x", "severity": "warn", "message": "x"}],
        },
        drift=drift | {"changes": [dict.fromkeys(keys, "x")]},
        lock=lock,
        strict=[{"code": "x", "words": "x"}],
    )


@pytest.mark.parametrize("everything", [False, True])
def test_hostile_text_is_shown_and_never_acts(everything: bool) -> None:
    plain = printed(hostile(), everything=everything)
    poisoned = printed(_poisoned(copy.deepcopy(hostile())), everything=everything)
    assert not set(poisoned) & set("\x1b\x9b\u202e\ud800\t")
    assert "[red]x[/red]" in poisoned
    assert "\\x1b[2J" in poisoned
    # A newline in a name must not forge a line of the report.
    assert len(poisoned.splitlines()) == len(plain.splitlines())
    poisoned.encode()


def test_safe_text_is_cut_after_so_many_characters() -> None:
    assert safe("x" * 500, 10) == "xxxxxxxxx…"
    assert safe("\n\t\r") == "\\n\\t\\x0d"


BRIEF = {"name": "thing@1", "backend": "xgrammar", "why": "more", "sites": 9, "enforced": 8, "left": [], "refused": ""}


def test_the_short_form_of_a_run() -> None:
    assert str(line(BRIEF)) == "thing@1: xgrammar (more); 8 of 9 sites enforced"
    many = line(BRIEF | {"left": ["/ a", "/ b", "/ c", "/ d", "/ e"]})
    assert str(many).endswith("left to the validator: / a, / b, / c and 2 more")
    assert "nothing was tried" in str(line(BRIEF | {"sites": None, "enforced": None}))
    refused = line(BRIEF | {"refused": EVIL})
    assert "refused" in str(refused)
    assert refused.style == "red"
    assert not set(str(refused)) & set("\x1b\x9b\u202e\n\ud800")
