"""The published failure cases that can be told at the level of one document: none may end better than it should.

Each case goes through `extract` as it would in a job. What a case expects beyond that stands in `EXPECTED`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import Answers, codes, completion, document, plan_of
from support import extracted as run_document

from pipeline.errors import SchemaError
from pipeline.records import Outcome
from pipeline.schema.registry import check_schema

LAYERS = ("parse", "repair:json_repair", "retry", "arrow", "engine:vllm", "extraction_practice", "grammar", "validate")
ANY: dict[str, Any] = {"type": ["object", "array"]}


def text_of(recipe: Any) -> str:
    if isinstance(recipe, str):
        return recipe
    if "$repeat" in recipe:
        return text_of(recipe["$repeat"][0]) * int(recipe["$repeat"][1])
    return "".join(map(text_of, recipe["$concat"]))


@cache
def cases(shared: Path) -> dict[str, Any]:
    lines = (shared / "cases/failures.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return {case["id"]: case for case in map(json.loads, lines)}


def outcome_of(case: Any, **values: Any) -> Outcome:
    given = case["input"]
    event = given.get("engine_event", {})
    answer = completion(
        text_of(given.get("model_output", "")),
        event.get("finish_reason", "stop"),
        reasoning=event.get("reasoning_content", ""),
    )
    body = given.get("schema", ANY)
    doc = document(text_of(given.get("document", "a document")))
    return run_document(Answers(answer), plan_of(body, f"{case['id']}@1"), doc, **values)


def expressible(case: Any) -> bool:
    return case["layer"].split(":")[0] in {layer.split(":")[0] for layer in LAYERS} and "model_output" in case["input"]


# id: (statuses that are allowed, a code that must be named or "")
EXPECTED: dict[str, tuple[set[str], str]] = {
    "F006": ({"rejected"}, "truncated"),
    "F007": ({"rejected"}, "engine_abort"),
    "F009": ({"rejected"}, "empty_output"),
    "F030": ({"rejected"}, "truncated"),
    "F032": ({"rejected"}, "truncated"),
    "F033": ({"valid"}, ""),
    "F035": ({"rejected"}, "truncated"),
    "F036": ({"rejected"}, "duplicate_key"),
    "F037": ({"rejected"}, "duplicate_key"),
    "F039": ({"rejected"}, "json_too_large"),
    "F040": ({"rejected"}, "not_json"),
    "F041": ({"rejected"}, "not_json"),
    "F043": ({"rejected"}, "number_not_finite"),
    "F045": ({"degraded"}, "json_repaired"),
    "F046": ({"rejected"}, "lone_surrogate"),
    "F048": ({"rejected"}, "schema_violation"),
    "F049": ({"valid"}, ""),
    "F051": ({"rejected"}, "schema_violation"),
    "F053": ({"rejected"}, "json_too_large"),
    "F054": ({"rejected"}, "schema_violation"),
    "F058": ({"valid"}, ""),
    "F061": ({"rejected"}, "schema_violation"),
    "F094": ({"rejected"}, "truncated"),
    "F097": ({"rejected"}, "schema_violation"),
    "F100": ({"valid"}, ""),
}


@pytest.mark.parametrize("number", sorted(EXPECTED))
def test_a_case_ends_as_it_should(shared: Path, number: str) -> None:
    statuses, code = EXPECTED[number]
    outcome = outcome_of(cases(shared)[number])
    assert outcome.status in statuses
    assert code in codes(outcome) if code else outcome.problems == ()
    json.dumps(outcome.record, allow_nan=False).encode()


def test_no_expressible_case_raises_or_spends_more_than_its_budget(shared: Path) -> None:
    tried = 0
    for case in filter(expressible, cases(shared).values()):
        try:
            check_schema(case["input"].get("schema", ANY), case["id"])
            plan_of(case["input"].get("schema", ANY), case["id"])
        except SchemaError:
            continue
        for reason in ("length", "abort", "error", "repetition"):
            event = {**case["input"].get("engine_event", {}), "finish_reason": reason}
            cut = outcome_of({**case, "input": {**case["input"], "engine_event": event}})
            assert cut.status != "valid"
        assert len(outcome_of(case, max_attempts=3).attempts) <= 3
        tried += 1
    assert tried >= 25


def test_schemas_that_no_validator_can_use_are_refused(shared: Path) -> None:
    for number in ("F016", "F025"):
        with pytest.raises(SchemaError, match=number):
            check_schema(cases(shared)[number]["input"]["schema"], number)


@pytest.mark.parametrize("number", ["F024", "F098"])
def test_schemas_that_no_document_can_satisfy_cost_no_call(shared: Path, number: str) -> None:
    with pytest.raises(SchemaError, match=number) as caught:
        plan_of(cases(shared)[number]["input"]["schema"], number)
    assert caught.value.code == "unsatisfiable"


def test_f026_f052_what_libraries_trip_over_is_judged_right(shared: Path) -> None:
    """A single dynamic anchor is a plain reference; Unicode properties are known to validator and grammar."""
    assert outcome_of(cases(shared)["F026"]).status == "rejected"
    assert outcome_of(cases(shared)["F052"]).status == "valid"


def test_f001_the_bad_one_of_two_schemas_is_refused_alone(shared: Path) -> None:
    good, bad = cases(shared)["F001"]["input"]["schema"]
    check_schema(good, "good")
    with pytest.raises(SchemaError, match="bad"):
        check_schema(bad, "bad")


def test_f004_schemas_that_differ_in_prose_share_one_grammar(shared: Path) -> None:
    recipe = cases(shared)["F004"]["input"]["schema"]
    plans = [plan_of({**recipe["base"], recipe["key"]: f"variant {n}"}) for n in range(50)]
    assert len({plan.grammar_digest for plan in plans}) == 1


def test_f007_an_abort_is_retried_without_a_word_to_the_model(shared: Path) -> None:
    case = cases(shared)["F007"]
    engine = Answers(completion(case["input"]["model_output"], "abort"), {"vendor": "Example", "total": 5})
    outcome = run_document(engine, plan_of(case["input"]["schema"], "F007@1"), max_attempts=1)
    assert outcome.status == "valid"
    assert engine.prompts[0] == engine.prompts[1]


def test_f054_the_pointer_in_the_feedback_is_escaped(shared: Path) -> None:
    assert "/a~1b/c~0d" in {problem.pointer for problem in outcome_of(cases(shared)["F054"]).problems}


def test_f094_an_empty_list_that_stopped_is_valid_and_nothing_at_all_is_not(shared: Path) -> None:
    schema = cases(shared)["F094"]["input"]["schema"]
    assert run_document(Answers("[]"), plan_of(schema, "F094@1")).status == "valid"
    assert codes(run_document(Answers(""), plan_of(schema, "F094@1")))[0] == "empty_output"


def test_f097_model_output_does_not_come_back_as_an_instruction(shared: Path) -> None:
    case = cases(shared)["F097"]
    engine = Answers(case["input"]["model_output"])
    run_document(engine, plan_of(case["input"]["schema"], "F097@1"))
    assert len(engine.prompts) == 2
    assert "New instruction" not in engine.prompts[1].user


def test_f098_the_same_errors_end_the_loop(shared: Path) -> None:
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^y"}}, "required": ["s"]}
    case = cases(shared)["F098"]
    again = {**case, "input": {**case["input"], "schema": schema}}
    assert len(outcome_of(again, max_attempts=9).attempts) == 2
