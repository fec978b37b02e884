"""From a row to a Document: its id, schema and text, and what is wrong with them. Pure, never an error."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any

from pipeline.job import InputConfig
from pipeline.records import Document, JsonValue, Problem
from pipeline.runtime.input.formats import MISSING, Row, decode
from pipeline.runtime.input.values import NOT_STORABLE, json_value
from pipeline.schema.fingerprint import digest

ID_LENGTH = 32
_SHOWS_NOTHING = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc\ufffd")
"""Letters and symbols without a shape of their own: fillers, blanks, and what stands for something absent."""
_FIRST = 200
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
    columns, column_problems = _columns(row)
    problems = id_problems + schema_problems + text_problems + column_problems
    if duplicate:
        problems += (Problem("duplicate_id", message=f"the id {key[:80]!r} occurred before in the input"),)
    return Document(key, text, source, schema, problems, columns)


def content_digest(row: Row, config: InputConfig) -> str:
    """The digest of all that is read of a row but its id and schema: its text and other columns as a Document has
    them, and the codes of what is wrong with them."""
    text, problems = _text(row, config)
    columns, more = _columns(row)
    return digest([text, columns, [problem.code for problem in problems + more]])


def shows_nothing(text: str) -> bool:
    """Whether a text holds no visible character, so that nobody could read anything from it.

    Invisible are white space, controls, zero-width and other format characters, surrogates, fillers and replacement
    characters, and combining marks, which alone write nothing. Private and unassigned characters count as visible:
    what they show is not known here.
    """
    return not (any(map(_is_visible, text.lstrip()[:_FIRST])) or any(map(_is_visible, set(text))))


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] not in "ZM" and category not in ("Cc", "Cf", "Cs") and character not in _SHOWS_NOTHING


def _columns(row: Row) -> tuple[dict[str, JsonValue], tuple[Problem, ...]]:
    """The other columns as JSON, without those that cannot be taken, of which a problem tells."""
    columns: dict[str, JsonValue] = {}
    problems = []
    for name, raw in row.columns.items():
        value = json_value(raw)
        if value.fault:
            code = "document_not_utf8" if value.not_utf8 else "document_unreadable"
            problems.append(Problem(code, message=f"column `{name}` {value.fault}"))
            continue
        columns[name] = value.json
        if value.replaced:
            problems.append(_replaced(value.replaced, f"column `{name}`"))
    return columns, tuple(problems)


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
    if shows_nothing(text):
        state = "is only white space" if text else "is empty"
        state = "holds no visible character, only blanks, controls, zero-width or the like" if text.strip() else state
        return text, (*problems, Problem("document_empty", message=f"the text {state}"))
    return text, problems


def _storable(text: str, what: str) -> tuple[str, tuple[Problem, ...]]:
    """`text` with U+FFFD for NUL and lone surrogates."""
    text, count = NOT_STORABLE.subn("\ufffd", text)
    return text, (_replaced(count, what),) if count else ()


def _replaced(count: int, what: str) -> Problem:
    message = f"{count} NUL or lone surrogate character{'s' * (count > 1)} of {what} replaced by U+FFFD"
    return Problem("document_characters_replaced", message=message)


def _state(value: Any) -> str:
    if value is MISSING:
        return "is missing"
    kind = type(value).__name__
    return f"is {_NAMES.get(kind, f'a {kind}')}"
