"""What a person names on the command line as a schema: a registered name, a schema folder, or one JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.errors import InputError, SchemaError
from pipeline.records import JsonValue
from pipeline.schema.reading import MAX_SCHEMA_BYTES, exchanged
from pipeline.schema.registry import NAME, DocumentSchema, load_file, load_schema

MAX_SAMPLES = 100_000
"""Lines of a sample file that are read."""

MAX_SAMPLE_BYTES = 64 << 20
"""Of a sample file; more records than that calibrate nothing better."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One SCHEMA argument: `source` as written, and the loaded schema or why it is refused.

    `folder` is that of a registered schema: its lock lies there.
    """

    source: str
    schema: DocumentSchema | None = None
    folder: Path | None = None
    refused: SchemaError | None = None

    @property
    def name(self) -> str:
        """The schema's name; as written, if it could not be loaded."""
        return self.schema.name if self.schema else self.source


def load_entries(root: str | Path, sources: Sequence[str]) -> list[Entry]:
    """An entry for each different source; two files of one name are told apart by a number."""
    entries: list[Entry] = []
    seen: set[str] = set()
    for source in dict.fromkeys(sources):
        entry = load_entry(root, source)
        if entry.schema is not None:
            name, _, version = entry.name.partition("@")
            number = 1
            while (free := entry.name if number == 1 else f"{name}_{number}@{version}") in seen:
                number += 1
            seen.add(free)
            entry = replace(entry, schema=replace(entry.schema, name=free))
        entries.append(entry)
    return entries


def load_entry(root: str | Path, source: str) -> Entry:
    """Load `name@version` of a directory of schemas, a schema folder, or a .json file. A refusal is in the entry."""
    path = Path(source)
    try:
        if NAME.fullmatch(source) and not source.endswith(".json"):
            return Entry(source, load_schema(root, source), Path(root, *source.split("@")))
        if path.is_dir():
            folder = path.resolve()
            name = f"{folder.parent.name}@{folder.name}"
            return Entry(source, load_schema(folder.parent.parent, name), path)
        if source.endswith(".json"):
            return Entry(source, load_file(path))
        return Entry(source, load_schema(root, source))
    except SchemaError as error:
        return Entry(source, refused=error)
    except RecursionError:  # an example may nest deeper than any schema
        return Entry(source, refused=SchemaError(f"{source!r} nests too deeply to be judged.", "too_deep"))
    except (OSError, ValueError) as error:  # a name that no file can have
        return Entry(source, refused=SchemaError(f"unknown schema {source!r}: {error}", "unknown_schema"))


def read_samples(path: str | Path) -> list[JsonValue]:
    """The records of a JSONL file, one a line, at most 100,000 of them.

    Raises:
        InputError: the file cannot be read or is too large, or a line is too long or no JSON that can be exchanged.
    """
    records: list[JsonValue] = []
    try:
        for number, line in _lines(Path(path)):
            if not line.strip():
                continue
            try:
                records.append(exchanged(json.loads(line)))
            except (SchemaError, ValueError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {number}: no JSON record: {error}. Give one record on each line."
                ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}. Give a JSONL file with one record on each line.") from error
    return records


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    total = 0
    with path.open("rb") as file:
        for number in range(1, MAX_SAMPLES + 1):
            line = file.readline(MAX_SCHEMA_BYTES + 1)
            if not line:
                return
            if len(line) > MAX_SCHEMA_BYTES:
                raise InputError(f"{path}, line {number} has more than {MAX_SCHEMA_BYTES} bytes. Leave it out.")
            total += len(line)
            if total > MAX_SAMPLE_BYTES:
                raise InputError(f"{path}, line {number}: the file has more than {MAX_SAMPLE_BYTES} bytes. Take fewer.")
            yield number, line
