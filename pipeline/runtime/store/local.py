"""A store on a local or mounted disk: files that are there whole or not at all, also after a power cut.

Content is written to a temporary file beside its place, flushed, and then given its name by one call: `rename` to
replace, `link` to create, since `link` fails if the name is taken and readers never see half a file. A name that is
not flushed is lost, however well its content was, so folders are flushed too, with those above that lead to them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.runtime.store.keys import Entry, checked_key, checked_prefix

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{32}")
TRIES = 5  # a temporary can be swept, and a folder removed as empty, by somebody else at any moment


class LocalStore:
    """Files below a directory, which is made when the first one is written."""

    def __init__(self, root: str, where: str) -> None:
        self._root = Path(root)
        self._where = where
        self._flushed: set[Path] = set()  # folders that are known to survive a power cut

    def __reduce__(self) -> tuple[type[LocalStore], tuple[str, str]]:
        return LocalStore, (str(self._root), self._where)

    def __repr__(self) -> str:
        return f"LocalStore({self._where!r})"

    @property
    def where(self) -> str:
        return self._where

    def at(self, prefix: str) -> LocalStore:
        return LocalStore(str(self._path(prefix)), os.path.join(self._where, prefix))

    def put(self, key: str, data: bytes) -> None:
        self._write(self._path(key), data, _replace)

    def create(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        if path.exists():
            return False
        return self._write(path, data, _link)

    def get(self, key: str) -> bytes | None:
        try:
            return self._path(key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def size(self, key: str) -> int | None:
        try:
            found = self._path(key).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def list(self, prefix: str = "") -> Iterator[Entry]:
        for path, entry in self._walk(checked_prefix(prefix)):
            if not TEMPORARY.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):  # deleted since
                    yield Entry(path, entry.stat(follow_symlinks=False).st_size)

    def folders(self, prefix: str) -> tuple[str, ...]:
        try:
            with os.scandir(self._root) as found:
                return tuple(sorted(one.name for one in found if one.name.startswith(prefix) and one.is_dir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def delete(self, key: str) -> None:
        """Remove a file for good, and with it the folders below the root that it leaves empty."""
        path = self._path(key)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return
        folder = path.parent
        with contextlib.suppress(OSError):  # not empty, or somebody else was first
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent
        with contextlib.suppress(FileNotFoundError):
            flush_folder(folder)

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        for path, entry in self._walk(checked_prefix(prefix)):
            if TEMPORARY.fullmatch(entry.name):
                with contextlib.suppress(FileNotFoundError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if max(0, age) >= older_than:  # below 0: a clock was set
                        (self._root / path).unlink()

    def _path(self, key: str) -> Path:
        return self._root / checked_key(key)

    def _write(self, path: Path, data: bytes, name: Callable[[Path, Path], bool]) -> bool:
        """What `name` says; False: the name is taken."""
        for left in reversed(range(TRIES)):
            temporary = path.with_name(f".tmp-{uuid.uuid4().hex}")
            try:
                self._make_folder(path.parent)
                _write_flushed(temporary, data)
                if not name(temporary, path):
                    return False
                break
            except FileNotFoundError:  # somebody swept the temporary, or removed the folder when it was empty
                self._flushed.discard(path.parent)
                if not left:
                    raise
            finally:
                temporary.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # deleted since, with its folder
            flush_folder(path.parent)
        return True

    def _make_folder(self, folder: Path) -> None:
        """Make a folder with those above, and flush the names of all: another process may have made them just now."""
        if folder in self._flushed and folder.is_dir():
            return
        above = [folder, *folder.parents]
        below_root = above[: above.index(self._root) + 1]
        missing = [path for path in above if not path.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted({*below_root, *missing}):
            try:
                flush_folder(path.parent)
            except PermissionError:
                if path.parent.is_relative_to(self._root):  # above, a folder may be closed to us
                    raise
        self._flushed.add(folder)

    def _walk(self, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Files below the root whose keys start with the prefix, by key. Links to folders are not followed."""
        folder, slash, start = prefix.rpartition("/")
        yield from _files(self._root / folder, folder + slash, start)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)


def _files(folder: Path, before: str, start: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as found:
            entries = [entry for entry in found if entry.name.startswith(start)]
    except (FileNotFoundError, NotADirectoryError):
        return
    folders = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
    for entry in sorted(entries, key=lambda entry: entry.name + "/" * (entry.name in folders)):
        if entry.name in folders:
            yield from _files(folder / entry.name, f"{before}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield before + entry.name, entry


def _write_flushed(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(temporary: Path, path: Path) -> bool:
    os.replace(temporary, path)
    return True


def _link(temporary: Path, path: Path) -> bool:
    """Give the file its name; False if somebody else's file has it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        # On a network file system the call may be repeated for us after the answer was lost: two names are proof.
        return os.stat(temporary).st_nlink > 1
    return True
