"""Segments: the lines of one process, in files of a bounded size, of which the last ones are kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o640
"""Ids, and texts if asked for, are for the group at most."""


class Segments:
    """`<stem>.<number>.jsonl` in a folder, each of at most `most` bytes; of one stem, `keep` are kept.

    A process that dies leaves whole lines, but for the last: each is written by one call. The next process of the stem
    goes on in the last file, so that deaths do not add up to more.
    """

    def __init__(self, folder: Path, stem: str, most: int, keep: int) -> None:
        self._folder = folder
        self._stem = stem
        self._most = most
        self._keep = keep
        self._number = 0
        self._file: int | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Write a line, which ends with a line feed.

        Raises:
            OSError: it could not be written, or is longer than a file may be.
        """
        if len(line) > self._most:
            raise OSError(f"a line of {len(line)} bytes is longer than a file may be ({self._most})")
        if self._file is None:
            self._open()
        assert self._file is not None
        if os.fstat(self._file).st_size + len(line) + self._torn > self._most:
            self._next()
        data = b"\n" + line if self._torn else line
        written = os.write(self._file, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(f"only {written} of {len(data)} bytes were written: is the disk full?")

    def close(self) -> None:
        """Let go of the file; another `append` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._number = max(self._numbers(), default=1)
        self._file = os.open(self._path(self._number), _FLAGS, _MODE)
        self._torn = not _ends_a_line(self._path(self._number))

    def _next(self) -> None:
        self.close()
        self._number += 1
        self._file = os.open(self._path(self._number), _FLAGS, _MODE)
        self._torn = False
        for number in self._numbers():
            if number <= self._number - self._keep:
                self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._stem}.{number:06d}.jsonl"

    def _numbers(self) -> list[int]:
        name = re.compile(rf"{re.escape(self._stem)}\.([0-9]{{6,12}})\.jsonl")
        return [int(found[1]) for file in self._folder.iterdir() if (found := name.fullmatch(file.name))]


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read() in (b"", b"\n")
