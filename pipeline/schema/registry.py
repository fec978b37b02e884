"""Document schemas on disk: `schemas/<name>/<version>/{schema.json, instructions.md, examples.jsonl}`.

Loading is where a schema is refused: everything after it can rely on a well-formed, local, bounded schema whose
objects say whether they are open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.fingerprint import digest
from pipeline.schema.walk import IN_PLACE, children, descend, is_assertion, rebuild, resolve

MAX_SCHEMA_BYTES = 1 << 20
MAX_DEPTH = 64
NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9_.-]*)")
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Example:
    """One few-shot pair: a document's text and the record that it should give."""

    document: str
    record: JsonValue


@dataclass(frozen=True, slots=True)
class DocumentSchema:
    """A loaded schema folder. `body` is closed (see `close_objects`); `closed` lists the pointers that this changed."""

    name: str
    body: Mapping[str, Any]
    instructions: str
    examples: tuple[Example, ...]
    closed: tuple[str, ...]
    digest: str


def load_schema(root: str | Path, name: str) -> DocumentSchema:
    """Load `<name>@<version>` from a directory of schema folders.

    Raises:
        SchemaError: unknown name, malformed or unbounded schema, a reference that is not local, a pattern that the
            validator cannot compile, or an example that its own schema refuses.
    """
    match = NAME.fullmatch(name)
    folder = Path(root, *match.groups()) if match else None
    if folder is None or not (folder / "schema.json").is_file():
        known = ", ".join(available(root)) or "none"
        raise SchemaError(f"unknown schema {name!r}: {root} holds {known}. Names are <folder>@<version>.")
    source = _read_json(folder / "schema.json")
    check_schema(source, name)
    body, closed = close_objects(source)
    instructions = folder / "instructions.md"
    text = instructions.read_text(encoding="utf-8").strip() if instructions.is_file() else ""
    examples = _read_examples(folder / "examples.jsonl", body, name)
    return DocumentSchema(name, body, text, examples, closed, digest(source))


def available(root: str | Path) -> list[str]:
    """The names that `load_schema` can find below a directory, sorted."""
    return sorted(f"{path.parts[-3]}@{path.parts[-2]}" for path in Path(root).glob("*/*/schema.json"))


def check_schema(source: Any, name: str) -> None:
    """Refuse what no later step could handle.

    Raises:
        SchemaError: see `load_schema`.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as Malformed

    if not isinstance(source, dict):
        raise SchemaError(f"schema {name} must be a JSON object, found {type(source).__name__}.")
    draft = source.get("$schema", DRAFT)
    if str(draft).rstrip("#") != DRAFT:
        raise SchemaError(f"schema {name} declares {draft}; only {DRAFT} is supported. Upgrade it.")
    try:
        Draft202012Validator.check_schema(source)
    except Malformed as error:
        raise SchemaError(f"schema {name} is malformed at {error.json_path}: {error.message}") from error
    for pointer, node in descend(source):
        _check_node(source, pointer, node, name)


def _check_node(root: Any, pointer: str, node: Any, name: str) -> None:
    if not isinstance(node, Mapping):
        return
    for keyword in ("$ref", "$dynamicRef"):
        reference = node.get(keyword)
        if reference is None:
            continue
        try:
            resolve(root, reference)
        except KeyError:
            raise SchemaError(
                f"schema {name} at {pointer or '/'}: {keyword} {reference!r} does not lead to a place in the same "
                "file. Copy what it means below $defs and refer to it as '#/$defs/…'; nothing is fetched."
            ) from None
    for pattern in [node.get("pattern"), *node.get("patternProperties", {})]:
        if pattern is None:
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            raise SchemaError(
                f"schema {name} at {pointer or '/'}: the validator cannot compile pattern {pattern!r}: {error}"
            ) from error


def close_objects(source: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Add `additionalProperties: false` to objects that list properties and say nothing of others.

    An extraction schema means its fields; a key that nobody declared has no column to go to. Left open are objects
    that say so themselves and those whose properties may be listed by a sibling (in-place applicators), where
    closing would refuse what the schema accepts.
    """
    composed = {id(node) for node in _composed(source)}
    closed: list[str] = []
    originals = dict(descend(source))

    def close(pointer: str, node: Any) -> Any:
        says = {"additionalProperties", "patternProperties", "unevaluatedProperties"}
        if not isinstance(node, dict) or "properties" not in node or says & node.keys():
            return node
        if id(originals[pointer]) in composed or IN_PLACE & node.keys():
            return node
        closed.append(pointer)
        return {**node, "additionalProperties": False}

    return rebuild(source, close), tuple(closed)


def _composed(source: Mapping[str, Any]) -> list[Any]:
    """Subschemas that judge an instance together with others, directly or through references."""
    found: list[Any] = []
    pending = [
        child
        for _, node in descend(source)
        for keyword, _, child in children(node)
        if keyword in IN_PLACE and not (keyword in ("anyOf", "oneOf") and "properties" not in node)
    ]
    pending += [
        node
        for _, node in descend(source)
        if isinstance(node, Mapping) and "$ref" in node and sum(map(is_assertion, node)) > 1
    ]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen or not isinstance(node, Mapping):
            continue
        seen.add(id(node))
        found.append(node)
        pending += [child for keyword, _, child in children(node) if keyword in IN_PLACE]
        if "$ref" in node:
            pending.append(resolve(source, node["$ref"]))
    return found


def _read_json(path: Path) -> Any:
    raw = path.read_bytes()
    if len(raw) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"{path} has {len(raw)} bytes; at most {MAX_SCHEMA_BYTES} are read.")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{path} is not JSON: {error}") from error
    if _depth(value) > MAX_DEPTH:
        raise SchemaError(f"{path} nests deeper than {MAX_DEPTH} levels.")
    return value


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [c for v in level if isinstance(v, dict | list) for c in (v.values() if isinstance(v, dict) else v)]
    return depth


def _read_examples(path: Path, body: Mapping[str, Any], name: str) -> tuple[Example, ...]:
    from jsonschema import Draft202012Validator

    if not path.is_file():
        return ()
    validator = Draft202012Validator(body, format_checker=Draft202012Validator.FORMAT_CHECKER)
    examples = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            example = Example(row["document"], row["record"])
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError(f'{path}:{number} must be {{"document": …, "record": …}}: {error!r}') from error
        error_ = next(validator.iter_errors(example.record), None)
        if error_ is not None:
            raise SchemaError(
                f"{path}:{number}: schema {name} refuses its own example at {error_.json_path}: {error_.message}"
            )
        examples.append(example)
    return tuple(examples)
