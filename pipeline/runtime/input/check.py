"""Whether what a unit reads is what the scan saw: hashes of bytes, or, where those are too many, sizes and times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from pipeline.job import InputConfig
from pipeline.runtime.input.locate import Format, InputFile, Place
from pipeline.schema.fingerprint import DIGEST_LENGTH, canonical, digest

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


class Sums:
    """Hashes of a file and of one span of it after another, from one pass over its bytes.

    It holds the bytes that were read ahead of the rows: a chunk and a row.
    """

    def __init__(self) -> None:
        self.file = hashlib.sha256()
        self.prefix = b""
        """Goes before each span."""
        self._span = hashlib.sha256()
        self._held = bytearray()
        self._at = 0

    def update(self, data: bytes, /) -> None:
        """Take the next bytes of the file."""
        self.file.update(data)
        self._held += data

    def begin(self, start: int) -> None:
        """Start a span."""
        self._take(start)
        self._span = hashlib.sha256(self.prefix)

    def extend(self, end: int) -> None:
        """Go on with the span."""
        self._span.update(self._take(end))

    def check(self) -> str:
        """The check of the span so far."""
        return self._span.hexdigest()[:DIGEST_LENGTH]

    def _take(self, end: int) -> bytes:
        taken = bytes(self._held[: end - self._at])
        del self._held[: end - self._at]
        self._at = end
        return taken
