"""Rows as files have them, and those of JSONL and text files. What they mean is decided in `documents`.

Each row carries its range of bytes, so that a slice of a file can be read without what is before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from pipeline.runtime.input.locate import Place, readable

CHUNK = 1 << 20
BOM = b"\xef\xbb\xbf"


class Missing:
    """Stands for a value that the row does not have, which JSON null is not."""


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a value that cannot be taken; `reason` completes "the column …"."""

    reason: str
    not_utf8: bool = False


class Ambiguous(dict[str, Any]):
    """A JSON object that repeats a key: it has the last value of each."""


NO_COLUMNS: Mapping[str, Any] = MappingProxyType({})


class Row(NamedTuple):
    """One row. `number` counts from 0 in its file; [`start`, `end`) are bytes (rows for Parquet).

    Columns that were not asked for are MISSING. `fault` says why the row cannot be taken apart (then `text`
    is the whole row), `not_utf8` which bytes were not UTF-8; both are empty for a good row. `columns` are the others
    that were asked for and that the row has. `raw` are the bytes of JSONL and CSV from `start` to `end`; blank lines
    belong to the row after them, so that rows leave no byte out.
    """

    number: int
    start: int
    end: int
    text: Any = MISSING
    id: Any = MISSING
    schema: Any = MISSING
    fault: str = ""
    not_utf8: str = ""
    columns: Mapping[str, Any] = NO_COLUMNS
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to take. None: not needed. `others` are taken as they are, and never make a row a faulty one."""

    text: str | None
    id: str | None
    schema: str | None
    others: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str | None, str | None, str | None]:
        return self.text, self.id, self.schema

    def names(self) -> list[str]:
        """Those that are needed, each once."""
        return list(dict.fromkeys(name for name in (*self.all, *self.others) if name is not None))


@dataclass(frozen=True, slots=True)
class Span:
    """[`start`, `end`) of a file, in bytes (Parquet: rows; None: to its end), where row `number` comes first.

    `picks` are the numbers of those rows that are wanted, ascending; None: all. The others are not taken apart.
    """

    start: int = 0
    end: int | None = None
    number: int = 0
    picks: Sequence[int] | None = None

    def wanted(self) -> Callable[[int], bool]:
        """Whether the row of a number is."""
        return (lambda _number: True) if self.picks is None else frozenset(self.picks).__contains__


WHOLE = Span()


class Hasher(Protocol):
    """What `hashlib` hands out: it takes the bytes of a file as they are read."""

    def update(self, data: bytes, /) -> None: ...


def chunks(
    place: Place, path: str, span: Span = WHOLE, hasher: Hasher | None = None, size: int = CHUNK
) -> Iterator[bytes]:
    """The bytes of a slice, at most `size` at a time. `hasher` sees what is handed out.

    Raises:
        InputError: the file cannot be read.
    """
    with readable(place.name(path)), place.filesystem.open_input_file(place.full(path)) as file:
        file.seek(span.start)
        left = span.end - span.start if span.end is not None else None
        while left is None or left > 0:
            chunk = file.read(size if left is None else min(size, left))
            if not chunk:
                return
            left = None if left is None else left - len(chunk)
            if hasher is not None:
                hasher.update(chunk)
            yield chunk


def lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    r"""Lines with their \n, which the last may lack. A line is joined once, however many chunks it spans."""
    pending: list[bytes] = []
    for part in parts:
        first, *others = part.split(b"\n")
        pending.append(first)
        for other in others:
            yield b"".join(pending) + b"\n"
            pending = [other]
    last = b"".join(pending)
    if last:
        yield last


def decode(data: bytes) -> tuple[str, str]:
    """Text, with U+FFFD for what is not UTF-8, and in words where that begins (empty: it all is UTF-8)."""
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), f"{error.reason} at byte {error.start}; replaced by U+FFFD"


def jsonl_rows(parts: Iterable[bytes], span: Span, columns: Columns) -> Iterator[Row]:
    """One row per line that is not blank. A line that is not a JSON object is a row with a `fault`."""
    used, wanted = [name for name in columns.all if name is not None], span.wanted()
    read = _Objects()
    for number, (start, end, line, raw) in enumerate(_json_lines(parts, span.start), span.number):
        if not wanted(number):
            continue
        text, not_utf8 = decode(line)
        value, fault = read(text)
        fault = fault or read.repeated(value, used)
        if fault:
            yield Row(number, start, end, text=text, fault=fault, not_utf8=not_utf8, raw=raw)
        else:
            body, key, schema = (MISSING if name is None else value.get(name, MISSING) for name in columns.all)
            others = read.pick(value, columns.others) if columns.others else NO_COLUMNS
            yield Row(number, start, end, body, key, schema, "", not_utf8, others, raw)


def jsonl_keys(parts: Iterable[bytes]) -> Iterator[list[str]]:
    """The keys of each row; none for one that is not an object."""
    read = _Objects()
    for _, _, line, _ in _json_lines(parts, 0):
        yield list(read(decode(line)[0])[0])


def _json_lines(parts: Iterable[bytes], start: int) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Lines that are not blank: range of bytes, the line without its end and byte order mark, all bytes of the range,
    in which blank lines before it are, too."""
    end, blank = start, bytearray()
    for raw in lines(parts):
        line = raw.rstrip(b"\r\n")
        if end == 0:
            line = line.removeprefix(BOM)
        end += len(raw)
        if not line or line.isspace():
            blank += raw
            continue
        if blank:
            raw = bytes(blank) + raw
            blank.clear()
        yield start, end, line, raw
        start = end


class _Objects:
    """Reads lines of JSON as objects and remembers the last one's keys, of which a dict keeps each once."""

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder(object_pairs_hook=self._keep)
        self._pairs: list[tuple[str, Any]] = []

    def __call__(self, line: str) -> tuple[dict[str, Any], str]:
        """The object, or what is wrong with the line."""
        try:
            value = self._decoder.decode(line)
        except RecursionError:
            return {}, "the line is JSON nested too deeply to read"
        except ValueError as error:
            return {}, f"the line is not JSON: {error}"
        if not isinstance(value, dict):
            return {}, f"the line is JSON of type {type(value).__name__}, not an object"
        return value, ""

    def pick(self, value: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
        """Members of `value`, the object that was read last, without those that it lacks."""
        twice = {name for name in columns if self.repeated(value, (name,))}
        return {
            name: Unreadable("occurs more than once in the row") if name in twice else value[name]
            for name in columns
            if name in value
        }

    def repeated(self, value: dict[str, Any], columns: Sequence[str]) -> str:
        """What is wrong with `value`, the object that was read last, if it has one of the columns more than once."""
        if len(value) == len(self._pairs):
            return ""
        keys = [key for key, _ in self._pairs]
        found = next((name for name in columns if keys.count(name) > 1), None)
        return "" if found is None else f"the key `{found}` occurs more than once"

    def _keep(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # An object ends after those that it holds, so that the last one is the outermost.
        self._pairs = pairs
        value = dict(pairs)
        return value if len(value) == len(pairs) else Ambiguous(value)


def text_row(parts: Iterable[bytes], path: str) -> Row:
    """A whole file as one row, whose id is its path."""
    text, not_utf8 = decode(b"".join(parts).removeprefix(BOM))
    return Row(0, 0, 1, text=text, id=path, not_utf8=not_utf8)
