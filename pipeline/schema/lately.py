"""Lately: what is made of schemas is kept for those that were used last. An endpoint meets schemas without end."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST = 512
"""Schemas. A job's units are ordered by schema, so one with more than these makes each only once, too."""


class Lately(Generic[Key, Value]):
    """The values of the keys that were asked for last. Threads may share it; a value may then be made twice."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def find(self, key: Key) -> Value | None:
        """The value, if it is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value, made if it is not kept. What `make` raises is raised, and nothing is kept."""
        found = self.find(key)
        return found if found is not None else self.keep(key, make())

    def keep(self, key: Key, value: Value) -> Value:
        """Keep a value, and forget the one that was not asked for for longest if there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
