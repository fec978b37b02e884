"""A store in memory: what a run leaves behind, without a disk to wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from pipeline.runtime.store import Entry
from pipeline.runtime.store.keys import checked_key, checked_prefix


class MemoryStore:
    """Objects by their key below a root. `objects` holds those of all roots by their whole name."""

    def __init__(self, objects: dict[str, bytes] | None = None, root: str = "") -> None:
        self.objects: dict[str, bytes] = {} if objects is None else objects
        self._root = root
        self._lock = threading.Lock()

    @property
    def where(self) -> str:
        return f"memory/{self._root}".rstrip("/")

    def at(self, prefix: str) -> MemoryStore:
        return MemoryStore(self.objects, f"{self._root}{checked_key(prefix)}/")

    def put(self, key: str, data: bytes) -> None:
        self.objects[self._root + checked_key(key)] = data

    def create(self, key: str, data: bytes) -> bool:
        name = self._root + checked_key(key)
        with self._lock:
            if name in self.objects:
                return False
            self.objects[name] = data
        return True

    def get(self, key: str) -> bytes | None:
        return self.objects.get(self._root + checked_key(key))

    def size(self, key: str) -> int | None:
        found = self.get(key)
        return None if found is None else len(found)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        start = self._root + checked_prefix(prefix)
        for name, data in sorted(self.objects.items()):
            if name.startswith(start):
                yield Entry(name[len(self._root) :], len(data))

    def folders(self, prefix: str) -> tuple[str, ...]:
        names = {entry.key.partition("/")[0] for entry in self.list(prefix) if "/" in entry.key}
        return tuple(sorted(names))

    def delete(self, key: str) -> None:
        self.objects.pop(self._root + checked_key(key), None)

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        checked_prefix(prefix)

    def below(self, prefix: str) -> dict[str, bytes]:
        """Objects below a prefix by the rest of their names."""
        start = f"{self._root}{prefix}/"
        return {name[len(start) :]: data for name, data in list(self.objects.items()) if name.startswith(start)}
