"""Any bytes that an engine could give: no exception, bounded time, and nothing broken that passes in silence."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import attempt, codes, completion, plan_of

from pipeline.records import Draft
from pipeline.steps.codes import CODES
from pipeline.steps.parse import parse
from pipeline.steps.repair import repair
from pipeline.steps.retry import Step
from pipeline.steps.salvage import salvage

ANY = {"type": "object", "additionalProperties": True, "properties": {"a": {}}}
STRICTER = {"duplicate_key", "json_too_large"}
DECODINGS = ("replace", "surrogateescape")


def judged(text: str, reason: str = "stop") -> Draft:
    answer = completion(text, reason)
    plan = plan_of(ANY)
    draft = repair(parse(answer, 1), answer, 1, plan)
    salvage(Step(attempt(text=text, finish_reason=reason), draft), plan)
    assert {problem.code for problem in draft.problems} <= CODES.keys()
    return draft


@pytest.mark.parametrize("errors", DECODINGS)
def test_the_json_parsing_suite_is_judged_as_expected(shared: Path, errors: str) -> None:
    lines = (shared / "data/schemas/json_parsing_nst.jsonl").read_text(encoding="utf-8").strip().split("\n")
    wrong = []
    for case in map(json.loads, lines):
        draft = judged(base64.b64decode(case["bytes_b64"]).decode("utf-8", errors))
        silent = draft.parsed and not draft.problems and not draft.repairs
        if case["expect"] == "reject" and silent:
            wrong.append(case["id"])
        if case["expect"] == "accept" and not draft.parsed and not STRICTER & set(codes(draft)):
            wrong.append(case["id"])
    assert len(lines) > 150
    assert not wrong


@settings(max_examples=200)
@given(
    st.binary(max_size=80)
    | st.text(alphabet="[]{}\":,\\0123456789.eE+-truefalsn '/*#“”：｛\ud800", max_size=60).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    ),
    st.sampled_from(DECODINGS),
    st.sampled_from(["stop", "length", "repetition"]),
)
def test_no_bytes_raise(data: bytes, errors: str, reason: str) -> None:
    draft = judged(data.decode("utf-8", errors), reason)
    assert reason == "stop" or not draft.parsed


MEGABYTE = 1 << 20
HOSTILE = [
    *(mark * MEGABYTE for mark in "[{\"\\9 -'`\u200b"),
    *(unit * (MEGABYTE // len(unit)) for unit in ["[]", '{"a":', '"\\', "[1,", "```\n", "'a':", "x{}", "“ ", "//\n"]),
    "[" + "1," * (MEGABYTE // 2 - 1),
    "[" + "1 " * (MEGABYTE // 2 - 1),
    "{" + "'a':1," * (MEGABYTE // 6 - 1),
    "[" + "\u00a0" * (MEGABYTE - 4) + "1]",
    "[" + "12345678901234567," * 58_000 + "1]",
    "[" + '{"a":1},' * 60 + '"\\u0' * 100_000,
    "{" + '\\"' * 400_000 + "}",
    "[0." + "1" * 900_000 + "]",
    '"' + "\u200b" * (MEGABYTE - 2) + '"',
]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_hostile_megabytes_take_no_time_to_speak_of(reason: str) -> None:
    slow = []
    for text in HOSTILE:
        started = time.process_time()
        judged(text, reason)
        if time.process_time() - started > 3:  # two tests at a time slow each other down
            slow.append((text[:12], time.process_time() - started))
    assert not slow
