"""Loading a schema folder is where a schema is refused, by name and place, before any engine starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.reading import MAX_SCHEMA_BYTES
from pipeline.schema.registry import (
    REFUSALS,
    available,
    load_schema,
)
from pipeline.schema.validator import validator_of

ROOT = Path(__file__).parents[3]
GOOD: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

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
    ("schema", "code", "words"),
    [
        ("{", "not_json", "not JSON"),
        (b"\xff\xfe\xff", "not_json", "not JSON"),
        ("[" * 100_000, "too_deep", "too deeply"),
        ("[]", "malformed", "JSON object"),
        ("true", "malformed", "JSON object"),
        ('{"title": "a", "title": "b"}', "not_json", "title"),
        ('{"properties": {"a": {}, "b": {}, "a": {"type": "string"}}}', "not_json", "'a'"),
        ('{"default": NaN}', "not_json", "exchange"),
        ('{"maximum": 1e999}', "not_json", "exchange"),
        ('{"description": "\\ud800"}', "not_json", "exchange"),
        ({"type": "nothing"}, "malformed", "malformed"),
        ({"properties": {"a": {"minLength": -1}}}, "malformed", "$.properties.a"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "unknown_draft", "draft-03"),
        (" " * (MAX_SCHEMA_BYTES + 1), "too_large", str(MAX_SCHEMA_BYTES)),
        ('{"not":' * 70 + "{}" + "}" * 70, "too_deep", "deeper"),
        ({"properties": {"a": {"$ref": "b.json"}}}, "bad_ref", "b.json"),
        ({"properties": {"a": {"$ref": "#/x"}}, "x": {"type": 5}}, "malformed", "x.type"),
        ({"$defs": {"s": {"$id": "other", "$ref": "#/$defs/s"}}}, "bad_ref", "#/$defs/s"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_its_place(write: Write, schema: Any, code: str, words: str) -> None:
    root = write(schema)
    assert words in refusal(root)
    with pytest.raises(SchemaError) as caught:
        load_schema(root, "t@1")
    assert caught.value.code == code
    assert code in REFUSALS


def test_a_schema_just_under_the_depth_limit_loads(write: Write) -> None:
    assert load_schema(write('{"not":' * 62 + "{}" + "}" * 62), "t@1")


def test_references_may_be_escaped_and_percent_encoded(write: Write) -> None:
    defs = {"a b/c~d": {"type": "integer"}}
    body = load_schema(write({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/a%20b~1c~0d"}}}), "t@1").body
    assert not validator_of(body).is_valid({"x": "no"})
    assert validator_of(body).is_valid({"x": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/a"}]}]}}},
        {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "type": "object"},
        {"$anchor": "a", "allOf": [{"$dynamicRef": "#a"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": {"$ref": "#"}}},
    ],
)
def test_a_reference_that_leads_back_to_itself_is_refused(write: Write, schema: Any) -> None:
    assert "without end" in refusal(write(schema))


def test_a_recursive_schema_that_descends_into_the_value_loads(write: Write) -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
    assert load_schema(write({"$defs": {"node": node}, "properties": {"head": {"$ref": "#/$defs/node"}}}), "t@1")


@pytest.mark.parametrize("pattern", ["([a-z", "a{99999999999}", "*"])
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
