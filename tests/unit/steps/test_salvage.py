"""Layer 3 keeps what is certain, names what is not, and invents nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saving import saved
from support import GOOD, RECEIPT, Answers, attempt, completion, extracted, plan_of, schema_and_record

from pipeline.steps.parse import parse
from pipeline.steps.repair import repair
from pipeline.steps.retry import Step
from pipeline.steps.route import status_of
from pipeline.steps.salvage import salvage
from pipeline.steps.salvaging.certain import certain


def holds(whole: Any, part: Any) -> bool:
    """Whether a part is the whole but for members and the ends of lists."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and holds(whole[name], child) for name, child in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(map(holds, whole, part))
    return json.dumps(whole) == json.dumps(part)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.lists(schema_and_record(), min_size=45, max_size=45), st.booleans())
def test_whatever_is_kept_of_any_prefix_stands_in_the_whole_output(pairs: Any, ascii: bool) -> None:
    spent = []
    for body, record in pairs:
        text = json.dumps(record, ensure_ascii=ascii)
        plan = plan_of(body)
        for cut in range(0, len(text) + 1, max(1, len(text) // 12)):
            answer = completion(text[:cut], "length")
            started = time.process_time()
            draft = repair(parse(answer, 1), answer, 1, plan)
            kept = salvage(Step(attempt(text=text[:cut], finish_reason="length"), draft), plan)
            spent.append(time.process_time() - started)
            assert status_of(draft) == "rejected"
            assert kept is None or (status_of(kept) == "degraded" and holds(record, kept.value))
    assert sorted(spent)[len(spent) * 9 // 10] < 0.005  # the first of each schema builds its validator


def test_a_cut_member_is_dropped_and_named() -> None:
    draft = saved('{"vendor": "Ann & Co", "total": 5, "lines": ["tea"], "date": "2024-02')
    assert draft is not None
    assert draft.value == {"vendor": "Ann & Co", "total": 5, "lines": ["tea"]}
    assert [(repair.kind, repair.pointer) for repair in draft.repairs] == [("salvaged", "/date"), ("rest_left_out", "")]
    assert draft.salvaged


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": 12 ', {}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": ["x", "y"', {"a": ["x", "y"]}),
        ('{"a": ["x", 5', {"a": ["x"]}),
        ('{"a": ["x", tru', {"a": ["x"]}),
        ('{"a": ["x", "y"]', {"a": ["x", "y"]}),
        ('{"a": [[1], [2, 3', {"a": [[1]]}),
        ('{"a": [', {}),
        ('{"a": {"b": {"c": 1, "d"', {"a": {"b": {"c": 1}}}),
        ('{"a": {"b": 1', {}),
        ('{"z": 1, "a": "he said ", and left", "b": 1}', {"z": 1}),
        ('{"z": 1, "a": ["he said ", and left"]}', {"z": 1}),
        ('```json\n{"a": 1, "b', {"a": 1}),
        ('{"a": ["x", "y"]}', {"a": ["x", "y"]}),
        ('{"a": 1, "b": {"c": 1}, "d"', {"a": 1, "b": {"c": 1}}),
        ('{"a": 1, "a": 2, "b": 3', {}),
        ('{"a": 1, "b": {"c": 1, "c": 2}, "d": 1', {"a": 1}),
        ('{"a": 1, "b": NaN, "c": 1', {"a": 1}),
        ('{"a": 1, "b": 1e999, "c": 1', {"a": 1}),
        ('{"a": 1} {"a": 2', {}),
        ('{"a": 1} trailing', {}),
        ('Sure: {"a": 1, "b', {}),
        ('[{"a": 1}, {"b"', [{"a": 1}]),
        ("[1, 2", [1]),
        ('{"a": ' + "[" * 3000, {}),
        ('{a: 1, "b": 2', {}),
        ("", {}),
    ],
)
def test_only_members_that_the_text_shows_to_be_finished_count(text: str, members: Any) -> None:
    found = certain(text)
    assert (found.value if found else {}) == members


def test_what_is_missing_of_the_required_members_is_named() -> None:
    draft = saved('{"vendor": "Ann", "tot')
    assert draft is not None
    assert [(p.code, p.pointer) for p in draft.problems[1:]] == [("required_missing", "/total")]


def test_a_member_that_loses_all_it_held_goes_too() -> None:
    body = {**RECEIPT, "properties": {**RECEIPT["properties"], "place": {"properties": {"zip": {"type": "integer"}}}}}
    outcome = extracted(Answers({**GOOD, "place": {"zip": "x"}}), plan_of(body, "nested@1"), max_attempts=1)
    assert (outcome.status, outcome.layer) == ("degraded", 3)
    assert outcome.record == GOOD
    assert ("field_dropped", "/place/zip") in [(p.code, p.pointer) for p in outcome.problems]


@pytest.mark.parametrize("closed", ["additionalProperties", "unevaluatedProperties"])
def test_an_undeclared_key_is_dropped_and_named_and_costs_nothing_else(closed: str) -> None:
    place = {"type": "object", "properties": {"zip": {"type": "string"}}, closed: False}
    schema = {**RECEIPT, "properties": {**RECEIPT["properties"], "place": place}, closed: False}
    answer = {**GOOD, "tip": 1, "place": {"zip": "9", "no/de": 2}}
    outcome = extracted(Answers(answer), plan_of(schema), max_attempts=1)
    assert (outcome.status, outcome.record) == ("degraded", {**GOOD, "place": {"zip": "9"}})
    assert {p.pointer for p in outcome.problems if p.code == "field_dropped"} == {"/tip", "/place/no~1de"}


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_root_that_is_a_list_keeps_its_complete_items(reason: str) -> None:
    draft = saved('["a", "b"', {"type": "array", "items": {"type": "string"}}, reason)
    assert draft is not None and draft.value == ["a", "b"]
    assert ("list_incomplete", "") in [(p.code, p.pointer) for p in draft.problems]


def test_a_root_that_is_a_scalar_gives_nothing() -> None:
    assert saved('"abc', {"type": "string"}) is None
