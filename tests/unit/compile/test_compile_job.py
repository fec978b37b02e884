"""The real compilers in the sandbox: what hangs, crashes or refuses in one schema leaves the next one untouched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.compile.sandbox import Job, Limits, Result, Sandbox

BACKENDS = ("xgrammar", "guidance")
BOTH = pytest.mark.parametrize("backend", BACKENDS)
GOOD = {"type": "object", "properties": {"vendor": {"type": "string"}}, "required": ["vendor"]}
LIMITS = Limits(seconds=30.0, memory_mib=1024)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("embedded", workers=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def cases(shared: Path) -> dict[str, Any]:
    lines = (shared / "cases/failures.jsonl").read_text(encoding="utf-8").strip().split("\n")
    return {case["id"]: case["input"]["schema"] for case in map(json.loads, lines) if "schema" in case["input"]}


def compiling(schema: Any, backend: str, limits: Limits = LIMITS) -> Job:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Job("compile", {"schema_json": text, "backend": backend, "compact": True}, limits)


def compiled(sandbox: Sandbox, schema: Any, backend: str, limits: Limits = LIMITS) -> Result:
    """The result of one schema; the sandbox must serve the next one as if nothing had been."""
    result = sandbox.call(compiling(schema, backend, limits))
    after = sandbox.call(compiling(GOOD, backend))
    assert (after.kind, after.value["error"]) == ("ok", "")
    assert result.seconds < limits.seconds + 20
    return result


def nested_one_of(depth: int) -> Any:
    """Both alternatives hold the same child, so every level doubles the text."""
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"oneOf": [{"type": "object", "properties": {name: schema}} for name in "ab"]}
    return schema


def test_nothing_has_started_a_thread_before_the_first_fork(sandbox: Sandbox) -> None:
    assert sandbox.start().threads in (0, 1)


@BOTH
def test_fifty_forks_compile_each(sandbox: Sandbox, backend: str) -> None:
    schemas = [{"enum": [f"value {n}", "other"], "type": "string"} for n in range(50)]
    results = list(sandbox.map(compiling(schema, backend) for schema in schemas))
    assert {(result.kind, result.value["error"] if result.value else result.words) for result in results} == {
        ("ok", "")
    }
    sizes = [result.value["grammar_bytes"] for result in results]
    assert all(size > 0 for size in sizes) if backend == "xgrammar" else set(sizes) == {None}
    assert all(0 < result.value["compile_seconds"] <= result.seconds for result in results)


@BOTH
def test_f001_a_bad_schema_is_refused_in_the_compilers_words_and_the_others_compile(
    sandbox: Sandbox, cases: dict[str, Any], backend: str
) -> None:
    good, bad, again = sandbox.map(compiling(schema, backend) for schema in [*cases["F001"], cases["F001"][0]])
    assert (good.value["error"], again.value["error"]) == ("", "")
    assert "regex" in bad.value["error"].lower()


def test_f002_what_explodes_is_killed_or_refused(sandbox: Sandbox, cases: dict[str, Any]) -> None:
    depth = cases["F002"]["depth"]
    assert compiled(sandbox, nested_one_of(depth + 2), "xgrammar", Limits(2.0, 2048)).kind == "timeout"
    assert compiled(sandbox, nested_one_of(depth + 2), "xgrammar", Limits(20.0, 256)).kind == "memory"
    assert "too large" in compiled(sandbox, nested_one_of(depth), "guidance").value["error"]


def test_f003_a_huge_enum_is_killed_on_time(sandbox: Sandbox, cases: dict[str, Any]) -> None:
    recipe = cases["F003"]["properties"]["sku"]["enum"]
    values = [recipe["format"] % number for number in range(2 * recipe["count"])]
    schema = {"type": "object", "properties": {"sku": {"enum": values}}, "required": ["sku"]}
    result = compiled(sandbox, schema, "xgrammar", Limits(1.0, 1024))
    assert result.kind == "timeout"
    assert "killed after 1.0 s" in result.words


@BOTH
def test_f013_the_memory_of_a_compile_is_bounded(sandbox: Sandbox, cases: dict[str, Any], backend: str) -> None:
    result = compiled(sandbox, cases["F013"], backend)
    assert (result.kind, result.value["error"]) == ("ok", "")
    assert result.peak_mib < 256
    text = '{"items":' * 5000 + "{}" + "}" * 5000
    greedy = compiled(sandbox, text, backend, Limits(20.0, 256))
    assert greedy.peak_mib < 280
    if backend == "xgrammar":
        assert greedy.kind == "memory"
        assert "256 MiB" in greedy.words
    else:
        assert "recursion limit" in greedy.value["error"]


@BOTH
@pytest.mark.parametrize(
    "schema", [None, {"$ref": "#"}, {"anyOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]}], ids=lambda x: json.dumps(x)
)
def test_f025_a_reference_that_leads_only_to_itself_is_told(
    sandbox: Sandbox, cases: dict[str, Any], schema: Any, backend: str
) -> None:
    result = compiled(sandbox, schema or cases["F025"], backend, Limits(3.0, 1024))
    assert result.kind in ("crash", "memory", "timeout") or result.value["error"], result


def test_the_schemas_that_hung_the_compiler_are_killed(sandbox: Sandbox, shared: Path) -> None:
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    hung = [row["schema"] for row in rows if row["compile"].get("xgrammar") == "timeout or crash"]
    assert hung
    for schema in hung:
        assert compiled(sandbox, schema, "xgrammar", Limits(2.0, 2048)).kind in ("timeout", "memory")
        assert compiled(sandbox, schema, "guidance", Limits(5.0, 2048)).kind == "ok"
