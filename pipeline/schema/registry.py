"""Document schemas on disk: `schemas/<name>/<version>/{schema.json, instructions.md, examples.jsonl}`.

Loading is where a schema is refused: everything after it can rely on a well-formed, local, bounded schema whose
objects say whether they are open.
"""

from __future__ import annotations

import graphlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.closing import close_objects
from pipeline.schema.fingerprint import canonical, digest
from pipeline.schema.validator import compile_pattern, validator_of
from pipeline.schema.walk import IN_PLACE, children, descend, target

MAX_SCHEMA_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_SHOWN = 300
MAX_NAME_SHOWN = 80
NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})@([A-Za-z0-9][A-Za-z0-9_.-]{0,63})")
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
        shown = repr(name) if len(name) <= MAX_NAME_SHOWN else f"{name[:MAX_NAME_SHOWN]!r}…"
        raise SchemaError(
            f"unknown schema {shown}: {root} holds {known}. Names are <folder>@<version>, at most 64 characters each."
        )
    source = _read_json(folder / "schema.json")
    check_schema(source, name)
    body, closed = close_objects(source)
    text = _read_text(folder / "instructions.md").strip()
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
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError as Malformed

    if not isinstance(source, dict):
        raise SchemaError(f"schema {name} must be a JSON object, found {type(source).__name__}.")
    draft = source.get("$schema", DRAFT)
    if str(draft).rstrip("#") != DRAFT:
        raise SchemaError(f"schema {name} declares {draft}; only {DRAFT} is supported. Upgrade it.")
    try:
        Draft202012Validator.check_schema(source, FormatChecker(formats=()))  # patterns and references: see below
    except Malformed as error:
        raise SchemaError(f"schema {name} is malformed at {error.json_path}: {error.message[:MAX_SHOWN]}") from error
    schemas = dict(descend(source))
    nodes = {pointer: node for pointer, node in schemas.items() if isinstance(node, Mapping)}
    for pointer, node in nodes.items():
        _check_references(schemas, pointer, node, name)
        _check_patterns(pointer, node, name)
    _check_progress(nodes, name)


def _check_references(schemas: Mapping[str, Any], pointer: str, node: Mapping[str, Any], name: str) -> None:
    """Only `$ref` to a schema of the same file, by JSON pointer: every step here and every grammar reads that alike."""
    where = f"schema {name} at {pointer or '/'}"
    advice = "Copy what it means below $defs and refer to it as '#/$defs/…'; nothing is fetched."
    for keyword in {"$dynamicRef", "$recursiveRef"} & node.keys():
        raise SchemaError(f"{where}: {keyword} {node[keyword]!r} is not supported; use $ref. {advice}")
    if "$id" in node and pointer:
        raise SchemaError(f"{where}: $id below the root changes what references mean. Remove it.")
    if "$ref" not in node:
        return
    reference = node["$ref"]
    try:
        known = target(reference) in schemas
    except KeyError:
        known = False
    if not known:
        raise SchemaError(f"{where}: $ref {reference!r} does not lead to a schema in the same file. {advice}")


def _check_patterns(pointer: str, node: Mapping[str, Any], name: str) -> None:
    patterns = [node["pattern"]] if "pattern" in node else []
    for pattern in [*patterns, *node.get("patternProperties", {})]:
        try:
            compile_pattern(pattern)
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise SchemaError(
                f"schema {name} at {pointer or '/'}: the validator cannot compile pattern {pattern!r}: {error}"
            ) from error


def _check_progress(nodes: Mapping[str, Any], name: str) -> None:
    """Refuse references that lead back to themselves without descending into the value: no validator ever ends."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for pointer, node in nodes.items():
        sorter.add(pointer, *(pointer + step for keyword, step, _ in children(node) if keyword in IN_PLACE))
        if "$ref" in node:
            sorter.add(pointer, target(node["$ref"]))
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        loop = " → ".join(f"#{pointer}" for pointer in error.args[1])
        raise SchemaError(f"schema {name} refers to itself without end: {loop}. Break the loop.") from error


def _read_json(path: Path) -> Any:
    raw = path.read_bytes()
    if len(raw) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"{path} has {len(raw)} bytes; at most {MAX_SCHEMA_BYTES} are read.")
    try:
        value = json.loads(raw, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{path} is not JSON: {error}") from error
    if _depth(value) > MAX_DEPTH:
        raise SchemaError(f"{path} nests deeper than {MAX_DEPTH} levels.")
    try:
        canonical(value)  # refuses NaN and Infinity
        json.dumps(value, ensure_ascii=False).encode()  # refuses half surrogate pairs
    except ValueError as error:
        raise SchemaError(f"{path} holds a number or a text that JSON cannot exchange: {error}") from error
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated!r} occurs more than once in one object")
    return value


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [c for v in level if isinstance(v, dict | list) for c in (v.values() if isinstance(v, dict) else v)]
    return depth


def _read_text(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not UTF-8: {error}") from error


def _read_examples(path: Path, body: Mapping[str, Any], name: str) -> tuple[Example, ...]:
    validator = validator_of(body)
    examples = []
    for number, line in enumerate(_read_text(path).split("\n"), 1):  # not splitlines: JSON strings may hold U+2028
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            example = Example(row["document"], row["record"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SchemaError(f'{path}:{number} must be {{"document": …, "record": …}}: {error!r}') from error
        if not isinstance(example.document, str):
            raise SchemaError(f"{path}:{number}: `document` must be a string.")
        refused = next(validator.iter_errors(example.record), None)
        if refused is not None:
            raise SchemaError(
                f"{path}:{number}: schema {name} refuses its own example at {refused.json_path}: "
                f"{refused.message[:MAX_SHOWN]}"
            )
        examples.append(example)
    return tuple(examples)
