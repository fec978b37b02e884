"""Document schemas: `schemas/<name>/<version>/{schema.json, instructions.md, examples.jsonl}`, one file, or a value.

Loading is where a schema is refused: everything after it can rely on a well-formed, local, bounded 2020-12 schema
whose objects say whether they are open. The steps are read, `upgrade`, `localise`, check, `close_objects`. `REFUSALS`
is the whole list of reasons; what the grammar back ends make of a schema is judged later.
"""

from __future__ import annotations

import graphlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaError
from pipeline.schema.annotations import check_annotations
from pipeline.schema.asked import asked
from pipeline.schema.closing import close_objects
from pipeline.schema.dialects import DRAFT_2020_12, MAX_SHOWN, malformed
from pipeline.schema.examples import Example, read_examples, read_text
from pipeline.schema.fingerprint import digest
from pipeline.schema.normalised import Normaliser
from pipeline.schema.normalisers import check_normalisers
from pipeline.schema.reading import MAX_DEPTH, MAX_SCHEMA_BYTES, exchanged, read_json, size
from pipeline.schema.references import localise
from pipeline.schema.upgrade import upgrade
from pipeline.schema.validator import PatternTimeout, compile_pattern, validator_of
from pipeline.schema.walk import IN_PLACE, children, descend, rebuild, target

__all__ = [
    "NAME",
    "REFUSALS",
    "DocumentSchema",
    "Example",
    "available",
    "check_schema",
    "document_schema",
    "load_file",
    "load_schema",
]

MAX_NAME_SHOWN = 80
NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63})@([A-Za-z0-9][A-Za-z0-9_.-]{0,63})")
DRAFT = DRAFT_2020_12.uri

REFUSALS = {
    "unknown_schema": "no folder or file of this name",
    "not_json": "the text is not JSON, repeats a key, or holds NaN, an infinite number or half a surrogate pair",
    "too_large": f"more than {MAX_SCHEMA_BYTES} bytes, as read or with its references made plain",
    "too_deep": f"more than {MAX_DEPTH} levels of nesting",
    "malformed": "no JSON object, or not a schema by the meta-schema of its draft",
    "unknown_draft": "declares a draft other than draft-04, draft-06, draft-07, 2019-09, 2020-12, or mixes two",
    "bad_ref": "a reference to something that is not in the file, is not a schema, or is not one schema",
    "ambiguous_dynamic_ref": "$dynamicRef or $recursiveRef that means another schema on another way to it",
    "endless_ref": "references that lead back to themselves without descending into the value",
    "bad_pattern": "a regular expression that the validator cannot compile",
    "bad_annotation": "an x- keyword of ours that cannot be read, or that has no effect where it stands",
    "bad_example": "an example or instructions that cannot be read, or an example that the schema refuses",
}
"""Why a schema is refused before any back end sees it: `SchemaError.code` → meaning."""


@dataclass(frozen=True, slots=True)
class DocumentSchema:
    """A loaded schema. `body` is 2020-12 with plain references, closed (see `close_objects`); `closed` lists the
    pointers that this changed. `digest` is that of the body before it was closed, whatever draft it was written in.
    `asked` is what the model and the grammar get of the body: see `pipeline.schema.asked`."""

    name: str
    body: Mapping[str, Any]
    instructions: str
    examples: tuple[Example, ...]
    closed: tuple[str, ...]
    digest: str
    asked: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", asked(self.body))


def load_schema(root: str | Path, name: str) -> DocumentSchema:
    """Load `<name>@<version>` from a directory of schema folders.

    Raises:
        SchemaError: with one of the codes of `REFUSALS`.
    """
    match = NAME.fullmatch(name)
    folder = Path(root, *match.groups()) if match else None
    if folder is None or not (folder / "schema.json").is_file():
        known = ", ".join(available(root)) or "none"
        shown = repr(name) if len(name) <= MAX_NAME_SHOWN else f"{name[:MAX_NAME_SHOWN]!r}…"
        raise SchemaError(
            f"unknown schema {shown}: {root} holds {known}. Names are <folder>@<version>, at most 64 characters each.",
            "unknown_schema",
        )
    body = _prepared(read_json(folder / "schema.json"), name)
    text = read_text(folder / "instructions.md").strip()
    return _closed(name, body, text, read_examples(folder / "examples.jsonl"))


def load_file(path: str | Path) -> DocumentSchema:
    """Load a schema that is one JSON file, without instructions or examples.

    Its name is the file's stem with `_` for what a name cannot hold, and version 0, which says that nobody versions
    it: `my orders.json` is `my_orders@0`.

    Raises:
        SchemaError: with one of the codes of `REFUSALS`.
    """
    path = Path(path)
    if not path.is_file():
        raise SchemaError(f"unknown schema {str(path)!r}: there is no such file.", "unknown_schema")
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", path.stem).lstrip("_.-")[:64] or "schema"
    return document_schema(read_json(path), f"{stem}@0")


def document_schema(
    source: Any, name: str, *, instructions: str = "", examples: Sequence[Example] = ()
) -> DocumentSchema:
    """The document schema of a JSON Schema in memory, which is copied.

    Raises:
        SchemaError: with one of the codes of `REFUSALS`.
    """
    numbered = [(f"example {number}", example) for number, example in enumerate(examples, 1)]
    return _closed(name, _prepared(source, name), instructions, numbered)


def check_schema(source: Any, name: str) -> None:
    """Refuse what no later step could handle.

    Raises:
        SchemaError: with one of the codes of `REFUSALS`.
    """
    _prepared(source, name)


def available(root: str | Path) -> list[str]:
    """The names that `load_schema` can find below a directory, sorted."""
    return sorted(f"{path.parts[-3]}@{path.parts[-2]}" for path in Path(root).glob("*/*/schema.json"))


def _prepared(source: Any, name: str) -> dict[str, Any]:
    """The schema in the one form that later steps know, or its refusal under its name."""
    try:
        return _plain(exchanged(source))
    except SchemaError as error:
        raise SchemaError(f"schema {name} {error.message}", error.code) from error
    except RecursionError as error:
        raise SchemaError(f"schema {name} nests too deeply to be judged.", "too_deep") from error


def _plain(source: Any) -> dict[str, Any]:
    if not isinstance(source, dict):
        raise SchemaError(f"must be a JSON object, found {type(source).__name__}.", "malformed")
    body = localise(upgrade(source)[0])
    if body != source:  # `upgrade` has judged the source
        if size(body) > MAX_SCHEMA_BYTES:
            raise SchemaError(f"has more than {MAX_SCHEMA_BYTES} bytes with its references made plain.", "too_large")
        fault = malformed(DRAFT_2020_12, body)
        if fault is not None:
            raise SchemaError(f"{fault} (after its references were made plain)", "malformed")
    nodes = {pointer: node for pointer, node in descend(body) if isinstance(node, Mapping)}
    for pointer, node in nodes.items():
        _check_patterns(pointer, node)
    _check_progress(nodes)
    check_normalisers(body)
    check_annotations(body)
    return body


def _closed(
    name: str, body: dict[str, Any], instructions: str, examples: Sequence[tuple[str, Example]]
) -> DocumentSchema:
    closed, pointers = close_objects(rebuild(body, _without_draft))
    schema = DocumentSchema(name, closed, instructions, tuple(one for _, one in examples), pointers, digest(body))
    _check_examples(schema, examples)
    return schema


def _check_examples(schema: DocumentSchema, examples: Sequence[tuple[str, Example]]) -> None:
    """Refuse an example that the model could not write as it is asked, or that is no legal record once normalised."""
    asked_for, accepted, normaliser = validator_of(schema.asked), validator_of(schema.body), Normaliser(schema.body)
    for place, example in examples:
        try:
            refused = next(asked_for.iter_errors(example.record), None)
            refused = refused or next(accepted.iter_errors(normaliser.of(example.record).value), None)
        except (PatternTimeout, RecursionError) as error:
            words = f"{place}: schema {schema.name} cannot judge its own example: {error}"
            raise SchemaError(words, "bad_example") from error
        if refused is not None:
            where, why = refused.json_path, refused.message[:MAX_SHOWN]
            words = f"{place}: schema {schema.name} refuses its own example at {where}: {why}"
            raise SchemaError(words, "bad_example")


def _without_draft(_pointer: str, node: Any) -> Any:
    """The validator library leaves our validator for its own wherever it meets `$schema`."""
    return {key: value for key, value in node.items() if key != "$schema"} if isinstance(node, dict) else node


def _check_patterns(pointer: str, node: Mapping[str, Any]) -> None:
    patterns = [node["pattern"]] if "pattern" in node else []
    for pattern in [*patterns, *node.get("patternProperties", {})]:
        try:
            compile_pattern(pattern)
        except (ValueError, OverflowError, RecursionError) as error:
            raise SchemaError(
                f"at {pointer or '/'}: the validator cannot compile pattern {pattern[:MAX_SHOWN]!r}: {error}",
                "bad_pattern",
            ) from error


def _check_progress(nodes: Mapping[str, Any]) -> None:
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
        raise SchemaError(
            f"refers to itself without end: {loop[:MAX_SHOWN]}. Break the loop.", "endless_ref"
        ) from error
