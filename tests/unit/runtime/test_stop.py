"""The stop rule: what counts, at which number, and that its words say what to do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobplacement import StopConfig
from pipeline.observe.tally import Tally
from pipeline.runtime.supervise.stop import Counts, describe, finding, stop_message


def counts(documents: int, asked: int | None = None, *, rejected: int = 0, **more: Any) -> Counts:
    """Of `documents`, of which the unasked are rejected, too."""
    asked = documents if asked is None else asked
    tally = Tally(documents=documents, asked=asked, first_pass_format=asked, first_pass_semantic=asked)
    tally.statuses.update({"rejected": rejected + documents - asked, "valid": asked - rejected})
    for name, value in more.items():
        setattr(tally, name, value)
    found = Counts()
    found.add(tally.to_json())
    return found


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (counts(50, rejected=41), "of 50 documents that an engine was asked about, 41 were rejected (`stop_if.rejec"),
        (counts(32, truncated=17), "17 were cut (`stop_if.truncation` is 0.5)"),
        (counts(40, first_pass_format=11), "11 had JSON as their first answer (`stop_if.first_pass` is 0.3)"),
        (counts(40, first_pass_semantic=19), "19 had a first answer that passes schema, rules and grounding"),
    ],
)
def test_a_rate_beyond_its_bound_is_told_with_its_numbers(found: Counts, words: str) -> None:
    assert words in finding(found, StopConfig(semantic=0.5))


@pytest.mark.parametrize(
    "found",
    [
        counts(31, rejected=31, truncated=31),
        counts(32, rejected=16, truncated=16),
        counts(40, first_pass_format=12, first_pass_semantic=0),
        counts(0),
        counts(1000, asked=0),
        counts(100, asked=40, rejected=20),
    ],
    ids=[
        "too few",
        "half is not more than half",
        "three tenths are not fewer",
        "none",
        "unasked",
        "of the asked",
    ],
)
def test_what_stops_nothing(found: Counts) -> None:
    assert not finding(found, StopConfig())


def test_null_switches_a_rate_off() -> None:
    bad = counts(50, rejected=50, truncated=50, first_pass_format=0)
    assert not finding(bad, StopConfig(truncation=None, first_pass=None, rejection=None))


@given(st.integers(0, 200), st.integers(0, 20), st.integers(0, 20))
def test_a_share_that_is_exactly_the_bound_stops_nothing(asked: int, tenth: int, unasked: int) -> None:
    """Whatever 0.1 × 30 is in binary."""
    config = StopConfig(truncation=None, first_pass=tenth / 20, rejection=tenth / 20, after=1)
    exact, left = divmod(asked * tenth, 20)
    at = counts(asked + unasked, asked, rejected=exact, first_pass_format=exact + (left > 0))
    assert not finding(at, config)
    if asked and exact < asked and tenth < 20:
        assert finding(counts(asked, rejected=exact + 1), config)


def test_a_job_that_stops_says_which_problems_and_what_to_do() -> None:
    found = counts(50, rejected=41, codes={"truncated": 30, "required": 12, "rule_broken": 2, "no_json": 1})
    reason = describe("receipt@1", finding(found, StopConfig()), found)
    assert reason.startswith("receipt@1: of 50 documents")
    assert "truncated (30), required (12), rule_broken (2)." in reason
    message = stop_message({"receipt@1": reason, "invoice@1": "invoice@1: so."})
    for words in (reason, "invoice@1: so.", "raise `stop_if`", "--fresh", "docs/troubleshooting.md"):
        assert words in message
