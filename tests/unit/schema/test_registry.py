"""Loading a schema folder is where a schema is refused, by name and place, before any engine starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.registry import DRAFT, MAX_SCHEMA_BYTES, available, load_schema

ROOT = Path(__file__).parents[3]
GOOD = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a folder `t/1` and gives the directory of folders."""

    def folder(schema: Any = GOOD, **files: str | bytes) -> str:
        text = schema if isinstance(schema, str | bytes) else json.dumps(schema)
        target = tmp_path / "t" / "1"
        target.mkdir(parents=True)
        for name, content in {"schema.json": text, **files}.items():
            (target / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path)

    return folder


def refusal(root: str, name: str = "t@1") -> str:
    with pytest.raises(SchemaError) as caught:
        load_schema(root, name)
    return str(caught.value)


@pytest.mark.parametrize("name", ["receipt@1", "advisory@1", "package@1"])
def test_the_schemas_of_this_repository_load_with_their_examples(name: str) -> None:
    schema = load_schema(ROOT / "schemas", name)
    assert schema.examples
    assert schema.instructions
    assert name in available(ROOT / "schemas")


def test_a_folder_gives_its_body_instructions_and_examples(write: Write) -> None:
    examples = json.dumps({"document": "line\u2028one\u0085two", "record": {"a": 1}}, ensure_ascii=False)
    files = {"instructions.md": "\n Read é. \n", "examples.jsonl": f"{examples}\n\n{examples}\n"}
    schema = load_schema(write(GOOD, **files), "t@1")
    assert schema.instructions == "Read é."
    assert [example.document for example in schema.examples] == ["line\u2028one\u0085two"] * 2
    assert schema.body["additionalProperties"] is False
    assert schema.closed == ("",)


def test_a_byte_order_mark_does_not_hide_a_schema(write: Write) -> None:
    assert load_schema(write(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()), "t@1").body["type"] == "object"


@pytest.mark.parametrize(
    "name", ["nope@1", "t@2", "t", "", "t@", "@1", "../t@1", "t@../1", "t/1@1", "t@1\n", ".@.", "..@.."]
)
def test_an_unknown_name_is_answered_with_the_known_ones(write: Write, name: str) -> None:
    message = refusal(write(), name)
    assert repr(name) in message
    assert "t@1" in message


def test_a_name_has_at_most_64_characters_a_part(tmp_path: Path) -> None:
    for folder, version, fits in [("a" * 64, "1" * 64, True), ("a" * 65, "1", False), ("a", "1" * 65, False)]:
        (tmp_path / folder / version).mkdir(parents=True)
        (tmp_path / folder / version / "schema.json").write_text(json.dumps(GOOD))
        if fits:
            assert load_schema(tmp_path, f"{folder}@{version}").name == f"{folder}@{version}"
        else:
            assert "at most 64 characters" in refusal(str(tmp_path), f"{folder}@{version}")


@pytest.mark.parametrize("name", ["x" * 1_000_000, "x" * 300 + "@1", "\n" * 81])
def test_a_long_unknown_name_is_shown_in_part(tmp_path: Path, name: str) -> None:
    message = refusal(str(tmp_path), name)
    assert repr(name[:80]) + "…" in message
    assert len(message) < 400 + len(str(tmp_path))


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    assert "none" in refusal(str(tmp_path))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "JSON object"),
        ('{"title": "a", "title": "b"}', "title"),
        ('{"properties": {"a": {}, "b": {}, "a": {"type": "string"}}}', "'a'"),
        ('{"default": NaN}', "exchange"),
        ('{"maximum": 1e999}', "exchange"),
        ('{"description": "\\ud800"}', "exchange"),
        ({"type": "nothing"}, "malformed"),
        ({"properties": {"a": {"minLength": -1}}}, "$.properties.a"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "draft-07"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, "2019-09"),
        (" " * (MAX_SCHEMA_BYTES + 1), str(MAX_SCHEMA_BYTES)),
        ('{"not":' * 70 + "{}" + "}" * 70, "deeper"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_its_place(write: Write, schema: Any, words: str) -> None:
    assert words in refusal(write(schema))


def test_a_schema_just_under_the_depth_limit_loads(write: Write) -> None:
    assert load_schema(write('{"not":' * 62 + "{}" + "}" * 62), "t@1")


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/$defs/a",
        "/$defs/a",
        "#/$defs/missing",
        "#/$defs/list/enum/0",
        "#/properties",
        "#/definitely not",
        "#anchor",
        "#/$defs/a%25b",
    ],
)
def test_a_reference_must_lead_to_a_schema_in_the_same_file(write: Write, reference: str) -> None:
    defs = {"a": {"type": "string"}, "list": {"enum": [{}]}, "with": {"$anchor": "anchor"}, "a%25b": {}}
    message = refusal(write({"$defs": defs, "properties": {"x": {"$ref": reference}}}))
    assert "/properties/x" in message
    assert repr(reference) in message


def test_references_may_be_escaped_and_percent_encoded(write: Write) -> None:
    from pipeline.steps.validate import validator_of

    defs = {"a b/c~d": {"type": "integer"}}
    body = load_schema(write({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/a%20b~1c~0d"}}}), "t@1").body
    assert not validator_of(body).is_valid({"x": "no"})
    assert validator_of(body).is_valid({"x": 1})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$dynamicAnchor": "n", "properties": {"k": {"$dynamicRef": "#n"}}}, "$dynamicRef"),
        ({"properties": {"k": {"$dynamicRef": "#"}}}, "$dynamicRef"),
        ({"properties": {"k": {"$recursiveRef": "#"}}}, "$recursiveRef"),
        ({"$defs": {"s": {"$id": "other", "$ref": "#/$defs/s"}}}, "$id"),
    ],
)
def test_references_that_no_grammar_reads_alike_are_refused_by_name(write: Write, schema: Any, words: str) -> None:
    assert words in refusal(write(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/a"}]}]}}},
        {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "type": "object"},
    ],
)
def test_a_reference_that_leads_back_to_itself_is_refused(write: Write, schema: Any) -> None:
    assert "without end" in refusal(write(schema))


def test_a_recursive_schema_that_descends_into_the_value_loads(write: Write) -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
    assert load_schema(write({"$defs": {"node": node}, "properties": {"head": {"$ref": "#/$defs/node"}}}), "t@1")


@pytest.mark.parametrize("pattern", ["([a-z", r"^\p{L}+$", "a{99999999999}", "(?<name>x)", "*"])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_pattern_that_does_not_compile_is_refused(write: Write, pattern: str, keyword: str) -> None:
    value: Any = pattern if keyword == "pattern" else {pattern: {}}
    message = refusal(write({"properties": {"x": {keyword: value}}}))
    assert "/properties/x" in message
    assert repr(pattern) in message


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ('{"document": "x", "record": {"a": "one"}}', ":1:"),
        ('{"document": "x", "record": {"a": 1}}\n{"document": "x", "record": {"a": 1, "b": 2}}', ":2:"),
        ('{"document": "x"}', "record"),
        ('{"document": 5, "record": {"a": 1}}', "string"),
        ("not json", ":1"),
        ("[" * 100_000, ":1"),
        (b"\xff", "UTF-8"),
    ],
)
def test_a_bad_example_is_refused_with_its_line(write: Write, examples: Any, words: str) -> None:
    message = refusal(write(GOOD, **{"examples.jsonl": examples}))
    assert words in message
    assert "examples.jsonl" in message


def test_instructions_that_are_not_utf8_are_refused(write: Write) -> None:
    assert "instructions.md" in refusal(write(GOOD, **{"instructions.md": b"\xff\xfe"}))


def test_real_schemas_load_or_are_refused_with_a_reason(shared: Path) -> None:
    from pipeline.schema.closing import close_objects
    from pipeline.schema.columns import MAX_COLUMNS, Column, column_of
    from pipeline.schema.registry import check_schema

    def size(column: Column) -> int:
        return 1 + sum(map(size, [child for _, child in column.fields] + [column.item] * bool(column.item)))

    refused = 0
    lines = (shared / "data/schemas/jsonschemabench_300.jsonl").read_text(encoding="utf-8").strip().split("\n")
    for case in map(json.loads, lines[::3]):
        schema = {**case["schema"], "$schema": DRAFT}
        try:
            check_schema(schema, case["id"])
        except SchemaError as error:
            refused += 1
            assert case["id"] in str(error)
            continue
        assert size(column_of(close_objects(schema)[0])) < 2 * MAX_COLUMNS
    assert refused < 5
