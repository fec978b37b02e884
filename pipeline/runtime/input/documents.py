"""From a row to a Document: its id, schema and text, and what is wrong with them. Pure, never an error."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pipeline.job import InputConfig
from pipeline.records import Document, Problem
from pipeline.runtime.input.formats import MISSING, Row, decode

ID_LENGTH = 32
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
_NAMES = {
    "NoneType": "null",
    "bytes": "bytes",
    "dict": "an object",
    "list": "a list",
    "str": "an empty string",
}


def identify(row: Row, path: str, config: InputConfig) -> tuple[str, tuple[Problem, ...]]:
    """The row's id. One that its own content cannot give it is `path#number`, unique in the input.

    `path` is relative to the input's root. Ids are made storable, since they become a column of the output.
    """
    positional = f"{path}#{row.number}"
    if row.fault:
        return positional, ()
    if config.id_column is None:
        content = decode(row.text)[0] if isinstance(row.text, bytes) else row.text
        if not isinstance(content, str):
            return positional, ()
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH], ()
    value, not_utf8 = decode(row.id) if isinstance(row.id, bytes) else (row.id, "")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), ()
    if not isinstance(value, str) or not value:
        message = f"column `{config.id_column}` {_state(value)}, not a string or an integer"
        return positional, (Problem("document_without_id", message=message),)
    problems = (Problem("document_not_utf8", message=f"the id: {not_utf8}"),) if not_utf8 else ()
    value, replaced = _storable(value, "the id")
    return value, problems + replaced


def schema_of(row: Row, config: InputConfig) -> tuple[str, tuple[Problem, ...]]:
    """The name of the row's schema, or "" with the reason."""
    if config.schema_name is not None:
        return config.schema_name, ()
    value = decode(row.schema)[0] if isinstance(row.schema, bytes) else row.schema
    if row.fault or not isinstance(value, str) or not value:
        state = "is missing" if row.fault else _state(value)
        message = f"column `{config.schema_column}` {state}, not the name of a schema"
        return "", (Problem("document_without_schema", message=message),)
    return _storable(value, "the schema's name")


def document(row: Row, path: str, source: str, config: InputConfig, *, duplicate: bool) -> Document:
    """The row of the file `path` as a Document; `duplicate` says that its id occurred before."""
    key, id_problems = identify(row, path, config)
    schema, schema_problems = schema_of(row, config)
    text, text_problems = _text(row, config)
    problems = id_problems + schema_problems + text_problems
    if duplicate:
        problems += (Problem("duplicate_id", message=f"the id {key[:80]!r} occurred before in the input"),)
    return Document(key, text, source, schema, problems)


def _text(row: Row, config: InputConfig) -> tuple[str, tuple[Problem, ...]]:
    text, not_utf8 = decode(row.text) if isinstance(row.text, bytes) else (row.text, "")
    not_utf8 = not_utf8 or row.not_utf8
    problems: tuple[Problem, ...] = (Problem("document_not_utf8", message=not_utf8),) if not_utf8 else ()
    if not isinstance(text, str):
        message = f"column `{config.text_column}` {_state(text)}, not a string"
        return "", (*problems, Problem("document_unreadable", message=message))
    text, replaced = _storable(text, "the text")
    problems += replaced
    if row.fault:
        return text, (*problems, Problem("document_unreadable", message=row.fault))
    if not text.strip():
        message = "the text is empty" if not text else "the text is only white space"
        return text, (*problems, Problem("document_empty", message=message))
    return text, problems


def _storable(text: str, what: str) -> tuple[str, tuple[Problem, ...]]:
    """`text` with U+FFFD for NUL and lone surrogates, which Arrow strings and tokenizers do not take."""
    text, count = _NOT_STORABLE.subn("\ufffd", text)
    if not count:
        return text, ()
    message = f"{count} NUL or lone surrogate character{'s' * (count > 1)} of {what} replaced by U+FFFD"
    return text, (Problem("document_characters_replaced", message=message),)


def _state(value: Any) -> str:
    if value is MISSING:
        return "is missing"
    kind = type(value).__name__
    return f"is {_NAMES.get(kind, f'a {kind}')}"
