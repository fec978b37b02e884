"""The lock file: committed ones are what the compiler makes now, and a difference is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.compile import lock
from pipeline.compile.check import Trial
from pipeline.errors import OutputError, SchemaError
from pipeline.schema.registry import DocumentSchema, available, document_schema, load_schema
from pipeline.schema.shape.policy import Policy

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "schemas"
OPTIONS = lock.Options(("guidance", "xgrammar"), "embedded", True, Policy())
BODY = {
    "type": "object",
    "properties": {"zeta": {"type": "string", "maxLength": 5}, "alpha": {"type": "integer"}},
    "required": ["zeta"],
    "additionalProperties": False,
}
SITE = ("/properties/zeta", "maxLength")
NUMBERS = {"calibrated_by": "drawn", "typical_tokens": 7, "worst_tokens": 20, "worst_bytes": 9, "unbounded_at": []}


def schema(body: Any = BODY, instructions: str = "") -> DocumentSchema:
    return document_schema(body, "thing@1", instructions=instructions)


def found(kind: str = "enforced", **values: Any) -> lock.Found:
    trials = {name: Trial(name, "ok", verdicts={SITE: (kind, "")}, **values) for name in OPTIONS.backends}
    return lock.Found(trials, "guidance", {**NUMBERS, "prompt_tokens": 30}, "abc")


def as_read(value: Any) -> Any:
    return json.loads(lock.text(value))


@pytest.mark.parametrize("name", available(SCHEMAS))
def test_committed_locks_say_what_the_compiler_makes_now(name: str) -> None:
    kept = lock.read(SCHEMAS / name.replace("@", "/"))
    assert kept is not None, f"write it: gristmill check {name} --write-lock"
    changes = lock.verify(kept, load_schema(SCHEMAS, name))
    assert not changes, "if that is meant: gristmill check " + " ".join(available(SCHEMAS)) + " --write-lock"


@pytest.mark.parametrize("name", available(SCHEMAS))
def test_committed_locks_are_as_they_were_written_and_hold_nothing_of_a_machine(name: str) -> None:
    text = (SCHEMAS / name.replace("@", "/") / lock.FILE).read_text(encoding="utf-8")
    assert text == lock.text(json.loads(text))
    assert "seconds" not in text
    assert not re.search(r'"/(?:home|root|tmp|usr|work)/', text)


def test_the_order_of_properties_is_kept_and_all_else_is_sorted() -> None:
    text = lock.text(lock.lock_of(schema(), OPTIONS, found()))
    made = json.loads(text)
    assert list(made["backends"]["guidance"]["transport"]["properties"]) == ["zeta", "alpha"]
    assert list(made) == sorted(made)
    assert text == lock.text(lock.lock_of(schema(), replace(OPTIONS), found()))


def test_nothing_changed_is_nothing_said() -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    assert lock.verify(kept, schema()) == ()
    assert lock.verify(kept, schema(), found()) == ()


def _put(path: str, value: Any) -> Callable[[Any], None]:
    def put(kept: Any) -> None:
        *way, last = path.split(".")
        for step in way:
            kept = kept[step]
        kept[last] = value

    return put


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (_put("schema.digest", "0"), "schema"),
        (_put("schema.closed", ["/x"]), "schema"),
        (_put("versions.xgrammar", "0.0.1"), "versions"),
        (_put("tokenizer", "0"), "tokenizer"),
        (_put("chosen", "xgrammar"), "chosen"),
        (_put("backends.guidance.left", [{"pointer": "", "keyword": "type"}]), "left"),
        (_put("backends.guidance.narrowed", ["/x"]), "narrowed"),
        (_put("backends.xgrammar.grammar_digest", "0"), "digests"),
        (_put("backends.xgrammar.transport", {}), "transport"),
        (_put("backends.guidance.verdicts", {}), "verdicts"),
        (_put("backends.guidance.kind", "refused"), "verdicts"),
        (_put("backends.guidance.lost", 3), "verdicts"),
        (_put("budget.worst_tokens", 19), "budget"),
    ],
)
def test_each_difference_is_named(edit: Callable[[Any], None], kind: str) -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    edit(kept)
    assert {change.kind for change in lock.verify(kept, schema(), found())} == {kind}


def test_another_order_of_properties_is_another_transport() -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    swapped = {**BODY, "properties": dict(reversed(BODY["properties"].items()))}  # type: ignore[attr-defined]
    assert "transport" in {change.kind for change in lock.verify(kept, schema(swapped))}


def test_other_instructions_are_another_plan_and_the_same_grammar() -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    changes = lock.verify(kept, schema(instructions="Read twice."))
    assert {(change.kind, change.where.split()[-1]) for change in changes} == {("digests", "plan_digest")}


def test_what_a_trial_had_no_time_for_is_not_held_against_the_lock() -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    assert lock.verify(kept, schema(), found("unproven", complete=False)) == ()
    assert lock.verify(kept, schema(), found("unproven"))
    assert lock.verify(kept, schema(), found("dropped", complete=False))


def test_percentiles_of_other_records_are_not_compared() -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    kept["budget"] |= {"calibrated_by": "samples", "typical_tokens": 900}
    assert lock.verify(kept, schema(), found()) == ()


def test_an_unsatisfiable_schema_has_a_lock_that_can_be_verified() -> None:
    nobody = schema({"type": "object", "properties": {"a": False}, "required": ["a"]})
    kept = as_read(lock.computed(nobody, OPTIONS))
    assert kept["backends"]["guidance"]["transport"] is False
    assert lock.verify(kept, nobody) == ()


_VALUES = st.sampled_from([None, 0, -1, "x", "\x1b[2J", [], [1], {}, {"a": 1}, [[[]]], True])


@settings(max_examples=150)
@given(st.data())
def test_an_edited_lock_is_refused_or_differs_and_never_breaks(data: st.DataObject) -> None:
    kept = as_read(lock.lock_of(schema(), OPTIONS, found()))
    node: Any = kept
    while True:
        step = data.draw(st.sampled_from(sorted(node)))
        if isinstance(node[step], dict) and node[step] and data.draw(st.booleans()):
            node = node[step]
            continue
        node[step] = data.draw(_VALUES)
        break
    try:
        changes = lock.verify(kept, schema(), found())
    except SchemaError as error:
        assert error.code == "bad_lock"
    else:
        assert all(isinstance(change.was, str) and len(change.was) < 200 for change in changes)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 5000])
def test_what_is_no_lock_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / lock.FILE).write_text(text)
    with pytest.raises(SchemaError):
        lock.read(tmp_path)


def test_absent_and_unwritable(tmp_path: Path) -> None:
    assert lock.read(tmp_path) is None
    with pytest.raises(OutputError, match="cannot write"):
        lock.write(tmp_path / "no such folder", {})
