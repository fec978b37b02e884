"""Durable: files that are there whole, or not at all, and are still there after a power cut."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import OutputError


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turns what the file system and Arrow raise into an OutputError that names what could not be written."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OutputError(
            f"cannot write {what}: {reason}. What was committed is kept: mend it, or choose another `output`, "
            "and run the same command again."
        ) from error


def create_exclusively(path: Path, value: Mapping[str, Any]) -> bool:
    """Write a JSON file that did not exist, whole or not at all. False if somebody else was first."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write(temporary, value)
        os.link(temporary, path)  # fails if the name is taken, and readers never see half a file
    except (FileExistsError, FileNotFoundError):  # the latter: who came first has swept this attempt away
        if path.exists():
            return False
        raise
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def replace(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all, in place of what may be there."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write(temporary, value)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=True, indent=1)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Flush a directory to disk: a file whose name is not there is lost, however well its content was flushed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot, and need not
            raise
    finally:
        os.close(descriptor)


def json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, or None if the file holds anything else or cannot be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
