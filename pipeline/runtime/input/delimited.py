"""Rows of CSV files, where a record may span lines, with the range of bytes that each takes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from pipeline.errors import InputError
from pipeline.runtime.input.formats import BOM, MISSING, NO_COLUMNS, Columns, Row, Span, chunks, decode, lines
from pipeline.runtime.input.locate import Place

_HEADER_CHUNK = 1 << 16
_FIELD_LIMIT = (1 << 31) - 1


class _Lines:
    """Feeds csv.reader, which asks for no line before it needs it: `end` is where the last record ended."""

    def __init__(self, parts: Iterable[bytes], start: int) -> None:
        self._lines = lines(parts)
        self.end = start
        self._pulled: list[bytes] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if self.end == 0 and line.startswith(BOM):
            self.end, line = len(BOM), line[len(BOM) :]
        self.end += len(line)
        self._pulled.append(line)
        return line.decode("utf-8", "replace")

    def take(self) -> bytes:
        """The bytes of the lines that were pulled since the last call."""
        pulled = b"".join(self._pulled)
        self._pulled.clear()
        return pulled

    def swallowed(self) -> str:
        """In words, how many lines a malformed record took in after its first (empty: none)."""
        others = len(self._pulled) - 1
        if others < 1:
            return ""
        return f"; a quote that is not closed seems to have swallowed {others} line{'s' * (others > 1)} after its own"


def _records(feed: _Lines) -> Iterator[tuple[list[str], bytes, bytes, str]]:
    """Fields, bytes of the blank lines before it, bytes and fault of each record that is not a blank line.

    Strict, because a lenient reader would take a stray quote for the start of a field and say nothing.
    """
    csv.field_size_limit(_FIELD_LIMIT)
    reader, blank = csv.reader(feed, strict=True), bytearray()
    while True:
        fields: list[str] = []
        fault = ""
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = f"the record is not CSV: {error}{feed.swallowed()}"
        raw = feed.take()
        if fields or fault:
            yield fields, bytes(blank), raw, fault
            blank.clear()
        else:
            blank += raw


def csv_header(place: Place, path: str) -> list[str]:
    """The names of a CSV file's columns; empty if the file is.

    Raises:
        InputError: the file cannot be read, or its first record is not CSV.
    """
    feed = _Lines(chunks(place, path, size=_HEADER_CHUNK), 0)
    fields, _, _, fault = next(_records(feed), ([], b"", b"", ""))
    if fault:
        raise InputError(
            f"the header of {place.name(path)} cannot be read: {fault}. Write it as comma-separated names."
        )
    return fields


def csv_rows(parts: Iterable[bytes], span: Span, columns: Columns, header: list[str]) -> Iterator[Row]:
    """One row per record after the header. A malformed record, or one with too many fields, has a `fault`."""
    feed = _Lines(parts, span.start)
    records = _records(feed)
    if span.start == 0:
        next(records, None)
    indexes = [header.index(name) if name in header else None for name in columns.all]
    others = [(name, header.index(name)) for name in columns.others if name in header]
    end, wanted = feed.end, span.wanted()
    for number, (fields, blank, raw, fault) in enumerate(records, span.number):
        start, end = end, feed.end
        if not wanted(number):
            continue
        text, not_utf8 = decode(raw)
        if not fault and len(fields) > len(header):
            fault = f"the record has {len(fields)} fields, the header {len(header)}"
        if fault:
            text = text.rstrip("\r\n")
            yield Row(number, start, end, text=text, fault=fault, not_utf8=not_utf8, raw=blank + raw)
        else:
            picked = [MISSING if i is None or i >= len(fields) else fields[i] for i in indexes]
            text_value, key, schema = picked
            more = {name: fields[i] for name, i in others if i < len(fields)} if others else NO_COLUMNS
            yield Row(number, start, end, text_value, key, schema, "", not_utf8, more, blank + raw)
