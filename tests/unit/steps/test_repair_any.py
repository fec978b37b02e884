"""Repair on any text: it never raises, never differs from what was damaged, and takes no time to speak of."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import codes, completion, plan_of, schema_and_record
from test_repair import repaired

from pipeline.steps.parse import parse
from pipeline.steps.repair import MAX_REPAIRABLE_CHARACTERS, repair
from tests.bounds import processor_seconds


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.text(alphabet="ab", min_size=1, max_size=3),
        st.text(alphabet="ab \"'\\,:{}[]“１1-", max_size=8)
        | st.integers()
        | st.booleans()
        | st.none()
        | st.floats(-9, 9),
        max_size=4,
    ),
    st.data(),
)
def test_a_repaired_value_never_differs_from_the_one_that_was_damaged(record: dict[str, Any], data: Any) -> None:
    text = json.dumps(record, ensure_ascii=data.draw(st.booleans()))
    place = data.draw(st.integers(0, len(text) - 1))
    scalars = re.compile(r'"(?:[^"\\]|\\.)*"|[-+\w.]+')
    inside = [(m.start() + (m[0][0] == '"'), m.end() - (m[0][0] == '"')) for m in scalars.finditer(text)]
    if any(start <= place < end for start, end in inside):
        return  # inside a scalar anything may have been meant
    draft = repaired(text[:place] + data.draw(st.sampled_from(["", ",", " ", "\n"])) + text[place + 1 :])
    if draft.parsed and not draft.problems:
        assert draft.value == record
    for value in draft.value.values() if isinstance(draft.value, dict) else ():
        assert isinstance(value, str | list | dict) or value in list(record.values())


def test_a_long_log_of_changes_is_told_once_for_each_kind_and_counted() -> None:
    draft = repaired("{" + ", ".join(f"k{i}: v{i}" for i in range(40)) + "}")
    assert draft.value == {f"k{i}": f"v{i}" for i in range(40)}
    assert 0 < len(draft.repairs) == len(set(draft.repairs)) <= 21
    changes = int(draft.problems[0].message.split()[0])
    assert changes >= 40  # one for each text at least


@settings(max_examples=80)
@given(st.text(alphabet="{}[]\"',:\\abn01-. \n/*#`“N", max_size=60) | st.text(max_size=30))
def test_repair_never_raises_and_never_calls_its_work_valid(text: str) -> None:
    draft = repaired(text)
    assert not draft.parsed or draft.repairs or parse(completion(text), 1).parsed
    if {item.kind for item in draft.repairs} - {"wrapper_removed", "closed", "repair_refused", "repair_failed"}:
        assert {"json_repaired", "json_in_string"} & set(codes(draft))
    json.dumps(draft.value, allow_nan=False)


@settings(max_examples=60)
@given(st.data(), schema_and_record())
def test_any_prefix_of_json_keeps_only_what_the_text_says(data: st.DataObject, pair: Any) -> None:
    text = json.dumps(pair[1], ensure_ascii=False)
    text = text[: data.draw(st.integers(0, len(text) - 1))]
    draft = repaired(text)
    if draft.parsed:
        assert set(draft.value) <= set(pair[1])


def test_time_is_bounded_whatever_the_text() -> None:
    rng = random.Random(5)
    pieces = ['"', "“", "}", "]", "\\", "a", "null", ",", ":", "'", "/*", "\\u", "1 ", '"a":', "```", "#\n", "("]
    texts = ['{"a":' + ("".join(rng.choices(pieces, k=4)) * 2000)[: MAX_REPAIRABLE_CHARACTERS - 5] for _ in range(15)]
    texts.append(('{"a":' + "“\\u}" * 2000)[:MAX_REPAIRABLE_CHARACTERS])
    slowest = 0.0
    texts += ["```\n" * 100_000, "`" * 500_000, '"' * 500_000, "{" * 60 + " " * 900_000]
    texts += [mark * 1_000_000 + rest for mark in " \n\u3000" for rest in ("x", "{'a': 1}")]
    for text in texts:
        started = time.process_time()
        repaired(text)
        slowest = max(slowest, time.process_time() - started)
    assert slowest < 4


def test_looking_for_json_in_strings_takes_one_validation_and_no_pointers_of_other_leaves() -> None:
    plan = plan_of({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}, "l@1")
    for value in ({"l": ['{"a": 1}'] * 20_000}, {"k" * 500_000: ["x"] * 50_000}):
        answer = completion(value)
        parsed = parse(answer, 1)
        with processor_seconds(2):
            assert repair(parsed, answer, 1, plan) == parsed
