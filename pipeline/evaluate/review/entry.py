"""Entry: one document as a person sees it, and what comes back of it.

The person edits `record`, and writes a verdict. The `key` says which document of which export an entry is, and holds
the record as it was exported: ids may be changed by a spreadsheet, and what is shown may be cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import SchemaError
from pipeline.records import JsonValue
from pipeline.schema.fingerprint import digest
from pipeline.schema.reading import exchanged

OK, SKIP = "ok", "skip"
VERDICTS = (OK, SKIP)
"""`ok`: the record is right as it stands now. `skip`: it stays open. Nothing: nobody looked."""

KEY = ("export", "row", "of", "run", "id", "source", "schema", "schema_digest", "text_digest", "record")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written for one document. `problems` are lines of text."""

    key: Mapping[str, Any]
    status: str
    problems: tuple[str, ...]
    document: str
    record: JsonValue


@dataclass(frozen=True, slots=True)
class Returned:
    """What came back: `place` in the file for messages, `record` as JSON text. `fault` says why it cannot be read."""

    place: str
    key: Mapping[str, Any]
    record: str = ""
    verdict: str = ""
    by: str = ""
    note: str = ""
    fault: str = ""


def sealed(key: Mapping[str, Any]) -> dict[str, Any]:
    """A key with a seal by which a change of it is found."""
    return {**key, "seal": digest({name: key[name] for name in KEY})}


def opened(key: Any) -> Mapping[str, Any] | None:
    """A key that came back; None if it is none, or was changed."""
    if not isinstance(key, dict) or set(key) != {*KEY, "seal"}:
        return None
    if not all(
        isinstance(value, int if name in ("row", "of") else str) for name, value in key.items() if name != "record"
    ):
        return None
    try:
        exchanged(key["record"])  # bounded, as whoever can make a seal may have made the rest
        sound = key["seal"] == digest({name: key[name] for name in KEY})
    except (SchemaError, ValueError, RecursionError):
        return None
    return key if sound else None
