"""What a store is, and which names its objects may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing; `size` in bytes."""

    key: str
    size: int


class Store(Protocol):
    """Objects by key below one root: everything that a run leaves behind goes through here.

    A key is relative and "/"-separated, such as `_commits/000001.json`; one that would leave the root is a
    ValueError. Every method may be called from many threads, and a store may be sent to other processes. Whatever
    goes wrong with the storage is an OSError, whose text holds no credentials. After an OSError from a method that
    writes, nobody knows whether it took effect.
    """

    @property
    def where(self) -> str:
        """The root as people know it: the path as it was given, or a URI without credentials."""

    def at(self, prefix: str) -> Store:
        """The store below a prefix of whole path components."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whole or not at all, in place of what may be there. It survives a power cut."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object that did not exist, whole or not at all; False if it did. It survives a power cut.

        On S3 an object that holds exactly `data` counts as ours, since the answer to our own first try may have been
        lost: whoever must know that nobody else wrote it puts something unique in (see `publish`).
        """

    def get(self, key: str) -> bytes | None:
        """The content, or None if there is no such object."""

    def size(self, key: str) -> int | None:
        """The length in bytes, or None if there is no such object."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every object whose key starts with `prefix`, at any depth, by key. Unfinished ones are not seen."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """The names of the folders at the top whose names start with `prefix` (which has no "/"), sorted, without
        looking into them."""

    def delete(self, key: str) -> None:
        """Remove an object for good. That there is none is fine."""

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        """Remove what interrupted writes left in folders whose keys start with `prefix`, at least so many seconds
        old. A write that is under way and loses its temporary begins again."""


def checked_key(key: str) -> str:
    """The key, if it names something below the root and means the same on every store.

    Raises:
        ValueError: it does not.
    """
    if any(part in ("", ".", "..") for part in key.split("/")) or "\0" in key or "\\" in key:
        raise ValueError(f"{key!r} is no key: relative, with '/' between names, and no '.' or '..' among them.")
    return key


def checked_prefix(prefix: str) -> str:
    """The prefix, if keys can start with it: names, of which the last may be unfinished or empty.

    Raises:
        ValueError: none can.
    """
    folder, _, name = prefix.rpartition("/")
    if folder or prefix.startswith("/"):
        checked_key(folder)
    if name:
        checked_key(name)
    return prefix
