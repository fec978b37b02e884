"""Whether what a unit reads is what the scan saw: hashes of bytes, or, where those are too many, sizes and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.job import InputConfig
from pipeline.runtime.input.locate import Format, InputFile, Place
from pipeline.schema.fingerprint import canonical, digest

_SECOND = 10**9


def by_stamp(form: Format, place: Place, config: InputConfig) -> bool:
    """Whether units are checked by size and time of their files, because the scan or the reader skips bytes."""
    return form == "parquet" or (form == "text" and not place.local and config.id_column is not None)


def stamp(files: Iterable[InputFile], place: Place) -> str:
    """The check of a unit by the size and time of its files."""
    # Some object stores list milliseconds and answer about one object in seconds.
    unit = 1 if place.local else _SECOND
    return digest([[file.path, file.size, file.mtime // unit] for file in files])


def header_bytes(header: Sequence[str]) -> bytes:
    """What the check of CSV rows starts with: an edited header gives other texts from the same rows."""
    return canonical(list(header)).encode()
