"""From `input.path` to the files that hold the documents: a file, a directory, a glob, or a URI of these."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pipeline.errors import InputError
from pipeline.job import InputConfig
from pipeline.runtime.input.globs import glob_pattern, split_glob
from pipeline.runtime.input.names import is_utf8, not_utf8

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

Format = Literal["parquet", "jsonl", "csv", "text"]

SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".txt": "text",
    ".md": "text",
    ".html": "text",
    ".rst": "text",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an input's paths start: `root` is for the file system, `base` (with no credentials) for people."""

    filesystem: FileSystem
    root: str
    base: str

    def full(self, path: str) -> str:
        """The path that the file system knows."""
        return f"{self.root.rstrip('/')}/{path}" if self.root else path

    def name(self, path: str) -> str:
        """The path that messages and `Document.source` show."""
        return f"{self.base.rstrip('/')}/{path}" if self.base else path

    @property
    def local(self) -> bool:
        return str(self.filesystem.type_name) == "local"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file, `path` relative to the root. `size` is bytes, `mtime` nanoseconds (-1: not known)."""

    path: str
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class Located:
    """The files of an input, sorted by path, all of one format."""

    place: Place
    format: Format
    files: tuple[InputFile, ...]


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turns what the file system and Arrow raise into an InputError that names what was read."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        hint = "Check that it exists, is complete and may be read."
        raise InputError(f"cannot read {name}: {str(error).rstrip('.')}. {hint}") from error


def place_of(config: InputConfig) -> Place:
    """Where the input's relative paths start, without listing anything.

    Raises:
        InputError: nothing exists at the path, or no file system knows its URI.
    """
    return _enter(config.path)[0]


def locate(config: InputConfig, what: str = "input.path") -> Located:
    """List the input's files. `what` is how messages call the setting that the path stands in.

    In a directory, hidden files, those that start with `_` and those of no known suffix are passed over; with
    `input.format` set, only those of another known suffix are.

    Raises:
        InputError: nothing is there, nothing matches, it is compressed, or formats are mixed.
    """
    place, only, pattern = _enter(config.path, what)
    shown = place.name(only or pattern) or "."
    files = _files(place, only, pattern)
    listed = not only and not pattern
    chosen = _format(config, files, shown, listed=listed) if files else "text"
    if listed:
        kept = {chosen} if config.format == "auto" else {chosen, None}
        files = [file for file in files if _suffix(file.path) in kept]
    if not files:
        raise InputError(f"no file matches {shown}. Give a file, a directory or a glob that holds documents.")
    return Located(place, chosen, tuple(files))


def files_at(place: Place, paths: Sequence[str]) -> list[InputFile]:
    """The files as they are now.

    Raises:
        InputError: one is gone.
    """
    from pyarrow.fs import FileType

    infos = []
    for path in paths:
        with readable(place.name(path)):
            info = place.filesystem.get_file_info(place.full(path))
            if info.type != FileType.File:
                raise OSError("there is no such file")
            infos.append(info)
    return [_relative(place, info) for info in infos]


def _files(place: Place, only: str, pattern: str) -> list[InputFile]:
    """The one file, or those of a directory or glob that are not hidden, sorted by path."""
    from pyarrow.fs import FileSelector, FileType

    with readable(place.name(only) or "."):
        if only:
            return [_relative(place, place.filesystem.get_file_info(place.full(only)))]
        # A glob of one component needs one directory, which matters for `*.jsonl` at the top of a large tree.
        selector = FileSelector(place.root, recursive=not pattern or "/" in pattern or "**" in pattern)
        infos = [info for info in place.filesystem.get_file_info(selector) if info.type == FileType.File]
    matches = glob_pattern(pattern or "**")
    files = (_relative(place, info) for info in infos)
    kept = [file for file in files if matches.fullmatch(file.path) and not re.search(r"(^|/)[._]", file.path)]
    return sorted(kept, key=lambda file: file.path)


def _enter(path: str, what: str = "input.path") -> tuple[Place, str, str]:
    """The place, and the one file's name or the glob below it (both empty for a directory)."""
    from pyarrow.fs import FileType

    if "://" not in path and not is_utf8(os.path.abspath(path)):
        raise InputError(f"{what} {os.path.abspath(path)!r} is not UTF-8. Rename what is not.")
    directory, pattern = split_glob(path)
    if pattern and "://" not in path and os.path.exists(path):
        directory, pattern = path, ""  # names may hold brackets too
    place = _place(directory, what)
    with readable(place.base or "."):
        kind = place.filesystem.get_file_info(place.root).type
    if kind == FileType.File and not pattern:
        root, _, only = place.root.rpartition("/")
        base, _, _ = place.base.rpartition("/")
        return Place(place.filesystem, root or "/", base), only, ""
    if kind != FileType.Directory:
        raise InputError(f"{what} {place.base or '.'} does not exist. Give a file, a directory, a glob or a URI.")
    return place, "", pattern


def _place(path: str, what: str) -> Place:
    if "://" not in path:
        from pyarrow.fs import LocalFileSystem

        root = os.path.abspath(path)
        cwd = os.getcwd()
        below = root == cwd or root.startswith(cwd.rstrip("/") + "/")
        base = os.path.relpath(root, cwd) if below else root
        return Place(LocalFileSystem(), root, "" if base == "." else base)
    scheme = path.partition("://")[0]
    filesystem, root = _from_uri(path, what)
    # Built anew from the file system's own path: the URI may carry keys in its user part or query.
    return Place(filesystem, root.rstrip("/") or "/", f"{scheme}://{root.rstrip('/')}")


@lru_cache(maxsize=32)
def _from_uri(uri: str, what: str) -> tuple[FileSystem, str]:
    """Cached, because a client of an object store may ask the network for its region, and units are many."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        filesystem, root = FileSystem.from_uri(uri)
    except (OSError, pa.ArrowException, ImportError, ValueError) as error:
        scheme = uri.partition("://")[0]
        raise InputError(
            f"{what} is a {scheme}:// URI that cannot be opened ({type(error).__name__}). Use a path, or "
            "a URI that pyarrow.fs opens, such as file://, s3:// or gs://, with blanks written as %20."
        ) from error
    return filesystem, str(root)


def _relative(place: Place, info: FileInfo) -> InputFile:
    try:
        path = info.path[len(place.root.rstrip("/")) + 1 :]
    except UnicodeDecodeError as error:
        raise not_utf8(error.object) from error
    return InputFile(path, int(info.size or 0), -1 if info.mtime_ns is None else int(info.mtime_ns))


def _suffix(path: str) -> Format | None:
    return SUFFIXES.get(os.path.splitext(path)[1].lower())


def _compressed(path: str, listed: bool) -> bool:
    """Whether a file holds documents that cannot be read; another archive in a directory is passed over."""
    stem, extension = os.path.splitext(path)
    return extension.lower() in COMPRESSED and (not listed or _suffix(stem) is not None)


def _format(config: InputConfig, files: list[InputFile], shown: str, *, listed: bool) -> Format:
    """The one format of the files; `listed` says that they are all that a directory holds."""
    packed = next((file.path for file in files if _compressed(file.path, listed)), None)
    if packed is not None:
        raise InputError(
            f"{packed} in {shown} is compressed, which is not supported: units are read by byte offset. "
            "Decompress it, or write Parquet, which compresses inside."
        )
    if config.format != "auto":
        return config.format
    found = Counter(_suffix(file.path) for file in files)
    unknown = next((file.path for file in files if _suffix(file.path) is None), "")
    known = [name for name in found if name is not None]
    if not known or (unknown and not listed):
        raise InputError(
            f"cannot tell the format of {unknown} in {shown}. Known suffixes: {', '.join(SUFFIXES)}; "
            "for another one set `input.format`."
        )
    if len(known) > 1:
        counts = ", ".join(f"{found[name]} {name}" for name in sorted(known))
        raise InputError(
            f"{shown} mixes formats ({counts}). One input has one format: set `input.format` to read only "
            "the files of that one, or narrow `input.path` with a glob."
        )
    return known[0]
