"""A store that is looked at and never written: who only asks leaves nothing behind, not even a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.runtime.store.keys import Entry, Store


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """What `inner` holds. Whatever would change it is an OSError, as on a disk that is mounted so."""

    inner: Store

    @property
    def where(self) -> str:
        """The root as people know it."""
        return self.inner.where

    def at(self, prefix: str) -> ReadOnly:
        """The store below a prefix, as little to be written."""
        return ReadOnly(self.inner.at(prefix))

    def get(self, key: str) -> bytes | None:
        """The content, or None if there is no such object."""
        return self.inner.get(key)

    def size(self, key: str) -> int | None:
        """The length in bytes, or None if there is no such object."""
        return self.inner.size(key)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Every object whose key starts with `prefix`."""
        return self.inner.list(prefix)

    def folders(self, prefix: str) -> tuple[str, ...]:
        """The names of the folders at the top whose names start with `prefix`."""
        return self.inner.folders(prefix)

    def put(self, key: str, data: bytes) -> None:
        """Refused."""
        raise self._refused(key)

    def create(self, key: str, data: bytes) -> bool:
        """Refused."""
        raise self._refused(key)

    def delete(self, key: str) -> None:
        """Refused."""
        raise self._refused(key)

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        """Refused."""
        raise self._refused(prefix)

    def _refused(self, key: str) -> OSError:
        return OSError(f"{self.where}/{key} is only looked at here")
