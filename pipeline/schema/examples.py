"""Examples: few-shot pairs that stand beside a schema, one a line. What the schema says of them, `registry` judges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.dialects import MAX_SHOWN
from pipeline.schema.reading import exchanged


@dataclass(frozen=True, slots=True)
class Example:
    """One few-shot pair: a document's text and the record that the model should write, as it is asked for."""

    document: str
    record: JsonValue


def read_text(path: Path) -> str:
    """A file's text, empty if there is none.

    Raises:
        SchemaError: it is not UTF-8.
    """
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not UTF-8: {error}", "bad_example") from error


def _exchanged_row(line: str) -> Any:
    try:
        return exchanged(json.loads(line))
    except SchemaError as error:  # it speaks of a schema
        raise ValueError(error.message) from error


def read_examples(path: Path) -> list[tuple[str, Example]]:
    """The examples of a JSONL file, each with its place; none if there is no file.

    Raises:
        SchemaError: a line is no example.
    """
    examples = []
    for number, line in enumerate(read_text(path).split("\n"), 1):  # not splitlines: JSON strings may hold U+2028
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = _exchanged_row(line)
            example = Example(row["document"], row["record"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SchemaError(
                f'{place} must be {{"document": …, "record": …}}: {error!r:.{MAX_SHOWN}}', "bad_example"
            ) from error
        if not isinstance(example.document, str):
            raise SchemaError(f"{place}: `document` must be a string.", "bad_example")
        examples.append((place, example))
    return examples
