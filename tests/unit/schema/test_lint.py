"""The lint as a whole: order, limits, time, silence where a remark would be wrong, and the page that lists it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.schema.lint import RULES, Finding, examine, lint
from pipeline.schema.lint.page import page
from pipeline.schema.lint.policy import MAX_FINDINGS
from pipeline.schema.registry import DocumentSchema, Example, available, document_schema, load_schema
from pipeline.schema.walk import resolve
from tests.support import schemas

ROOT = Path(__file__).resolve().parents[3]
TEXT = {"type": "string", "maxLength": 20}


def codes(properties: dict[str, Any], *required: str, **more: Any) -> set[str]:
    body = {"type": "object", "properties": properties, "required": list(required), **more}
    return set(examine(document_schema(body, "s@1")).counts)


def check_findings(schema: DocumentSchema) -> tuple[Finding, ...]:
    """What holds for every report."""
    report = examine(schema)
    findings = report.findings
    assert list(findings) == sorted(findings, key=lambda f: (f.pointer, f.code))
    assert len(findings) <= MAX_FINDINGS
    assert {f.code for f in findings} == set(report.counts)
    for finding in findings:
        assert RULES[finding.code].severity == finding.severity
        assert finding.why and finding.fix and finding.why.isprintable()
        assert len(finding.why) < 1_000
        resolve(schema.body, "#" + finding.pointer)
    assert examine(schema) == report
    return findings


@given(schemas())
def test_any_schema_gives_a_stable_report_whose_pointers_lead_somewhere(sample: Any) -> None:
    check_findings(document_schema(sample[0], "s@1"))


_KEYS = """type properties items required enum const default examples description anyOf oneOf allOf minimum maximum
pattern format $ref $defs if then not minItems maxLength nullable a date total_no"""
_VALUES = ["string", "object", "array", "integer", "#", "#/$defs/a", "^(a+)+$"]
_PLAIN = st.none() | st.booleans() | st.integers(-3, 2**60) | st.floats(allow_nan=False, allow_infinity=False)
_WILD = st.recursive(
    _PLAIN | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS.split()) | st.text(max_size=4), inner | st.sampled_from(_VALUES), max_size=4
        )
    ),
    max_leaves=25,
)


@given(_WILD)
def test_whatever_loads_can_be_linted(body: Any) -> None:
    try:
        schema = document_schema(body, "s@1")
    except SchemaError:
        return
    check_findings(schema)


AWKWARD: dict[str, dict[str, Any]] = {
    "a pattern of parentheses": {"pattern": "(" * 300 + "a" + ")" * 300, "default": "a"},
    "a pattern with line breaks": {"pattern": "^\n\x1b[01]$", "default": "b", "examples": ["c"]},
    "numbers no float can hold": {"type": "integer", "minimum": 10**400, "maximum": 1.5, "enum": [10**400, 1.5]},
    "bounds on each side of every float": {"type": "integer", "minimum": -(10**400), "maximum": 10**400},
    "texts that no terminal should see": {"enum": ["\x1b[2J", "a\u202eb", "\u200b"], "format": "\n"},
    "names of control characters": {"properties": {"\n": {"$ref": "#"}, "\u0000": True}},
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_values_are_shown_in_one_line(name: str) -> None:
    body = {"type": "object", "properties": {"a": AWKWARD[name]}}
    check_findings(DocumentSchema("s@1", body, "", (), (), ""))


def test_a_noisy_code_hides_no_other() -> None:
    noisy = {f"list {i}": {"type": "array", "items": TEXT} for i in range(150)}
    report = examine(
        document_schema({"type": "object", "properties": {**noisy, "zz_val": {"type": ["string", "integer"]}}}, "s@1")
    )
    assert report.counts["unbounded_array"] == 150
    assert len(report.findings) == MAX_FINDINGS
    assert "mixed_types" in {finding.code for finding in report.findings}


SILENT: dict[str, tuple[dict[str, Any], str]] = {
    "numbered codes are not spellings of each other": (
        {"a": {"enum": ["IAB1-1", "IAB11", "1-1", "11"]}},
        "lookalike_values",
    ),
    "short codes differ by their letters": ({"a": {"enum": ["it", "lt", "si", "sl"]}}, "lookalike_values"),
    "operators differ by their signs": ({"a": {"enum": ["-", "-=", "=", "_"]}}, "lookalike_values"),
    "x and y offsets": ({"xoffset_max": TEXT, "yoffset_max": TEXT}, "lookalike_names"),
    "point a and point b": ({"position_a": TEXT, "position_b": TEXT}, "lookalike_names"),
    "keywords put aside on purpose": ({"a": {**TEXT, "_format": "date", "@type": "x"}}, "misspelt_keyword"),
    "exactly one of two": (
        {"a": {"type": "string", "description": "Exactly one of `a` or `b` is set"}},
        "prose_constraint",
    ),
    "a version is no number": ({"ver": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}}, "number_as_string"),
    "an account number keeps its zeros": (
        {"account_number": {"type": "string", "pattern": "^[0-9]+$"}},
        "number_as_string",
    ),
    "words inside words": ({"discount_code": TEXT, "candidate": TEXT, "totally": TEXT}, "number_as_string"),
    "candidates are no dates": ({"candidate": TEXT, "update": TEXT}, "date_as_string"),
    "a lone reference repeats nothing": ({"a": {"$ref": "#/$defs/v"}, "b": {"$ref": "#/$defs/v"}}, "unused_definition"),
    "a score that no reason is about": ({"apgar_score": TEXT, "visit_reason": TEXT}, "label_before_rationale"),
    "the first key tells": (
        {"u": {"anyOf": [{"type": "object", "properties": {k: TEXT}, "required": [k]} for k in ("pay", "refund")]}},
        "untold_union",
    ),
    "an empty answer is an answer": ({"a": {"enum": ["left", "right", ""]}}, "no_unknown"),
    "separators keep repetitions apart": ({"a": {"type": "string", "pattern": r"^([a-z]+\.)+com$"}}, "slow_pattern"),
    "every alternative is anchored": ({"a": {"type": "string", "pattern": "(^a$)|(^b$)"}}, "loose_pattern"),
}


@pytest.mark.parametrize("why", SILENT)
def test_silent_where_a_remark_would_be_wrong(why: str) -> None:
    properties, code = SILENT[why]
    more = {"$defs": {"v": TEXT}} if "reference" in why else {}
    assert code not in codes(properties, *properties, **more)


def test_a_reference_is_judged_where_it_leads_and_once() -> None:
    body = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/v"}, "b": {"$ref": "#/$defs/v"}},
        "$defs": {"v": {"type": ["string", "integer"]}},
    }
    found = [f.pointer for f in lint(document_schema(body, "s@1")) if f.code == "mixed_types"]
    assert found == ["/$defs/v"]


def test_parts_that_only_test_are_not_descriptions() -> None:
    held = {"kind": {"enum": ["a", "b"]}, "day": {"type": ["string", "null"], "format": "date"}}
    condition = {
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["day"], "properties": {"day": {"type": "string"}}},
    }
    assert codes(held, "kind", **condition) & {
        "unbounded_string",
        "missing_type",
        "undeclared_required",
        "no_unknown",
    } == {"no_unknown"}


def test_few_shot_records_betray_numbers_and_days() -> None:
    body = {"type": "object", "properties": {"when": TEXT, "worth": TEXT}}
    examples = [
        Example("…", {"when": "2024-02-01", "worth": "12.50"}),
        Example("…", {"when": "2023-12-24", "worth": "7"}),
    ]
    found = {(f.code, f.pointer) for f in lint(document_schema(body, "s@1", examples=examples))}
    assert {("date_as_string", "/properties/when"), ("number_as_string", "/properties/worth")} <= found


def _large() -> Iterator[tuple[str, dict[str, Any]]]:
    members = [f"value {i}" for i in range(5_000)]
    names = [f"p{i}" for i in range(2_000)]
    chain: dict[str, Any] = {
        f"d{i}": {"properties": {k: {"$ref": f"#/$defs/d{i + 1}"} for k in "ab"}} for i in range(1_000)
    }
    unions: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
    yield (
        "one enum, many uses",
        {"required": names, "properties": {n: {"$ref": "#/$defs/e"} for n in names}, "$defs": {"e": {"enum": members}}},
    )
    yield "two ways at every step", {"$defs": {**chain, "d1000": TEXT}, "properties": {"a": {"$ref": "#/$defs/d0"}}}
    yield (
        "branches of branches",
        {"$defs": {**unions, "d60": TEXT}, "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"]},
    )
    yield (
        "many branches",
        {"properties": {"a": {"oneOf": [{"type": "object", "properties": {n: TEXT}} for n in names]}}},
    )
    for pattern in ("^(a+)+$", "^(a|aa)*$", "^(a?){30}a{30}$", "^(.*)(.*)(.*)(.*)(.*)(.*)x$"):
        yield (
            pattern,
            {
                "properties": {
                    "a": {"type": "string", "pattern": pattern, "default": "a" * 29 + "b", "enum": ["a" * 900 + "b"]}
                }
            },
        )


@pytest.mark.parametrize(("name", "body"), list(_large()), ids=lambda value: value if isinstance(value, str) else "")
def test_large_and_hostile_schemas_take_bounded_time(name: str, body: dict[str, Any]) -> None:
    schema = DocumentSchema("s@1", {"type": "object", **body}, "", (), (), "")
    start = time.process_time()
    examine(schema)
    assert time.process_time() - start < 10, name


def test_the_page_is_the_table_in_the_code() -> None:
    text = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    assert text == page(), "write it anew: python -m pipeline.schema.lint.page > docs/lint.md"
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(RULES)


def test_the_schemas_of_this_repository_can_be_linted() -> None:
    for name in available(ROOT / "schemas"):
        check_findings(load_schema(ROOT / "schemas", name))


def test_real_schemas_neither_crash_nor_take_long(shared: Path) -> None:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = []
    for line in lines[::3]:
        try:
            schema = document_schema(json.loads(line)["schema"], "s@1")
        except SchemaError:
            continue
        start = time.process_time()
        lint(schema)
        seconds.append(time.process_time() - start)
        check_findings(schema)
    assert len(seconds) > 50
    assert sorted(seconds)[len(seconds) // 2] < 0.05
