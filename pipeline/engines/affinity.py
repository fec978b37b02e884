"""Affinity: which of several engines a request goes to.

Documents of a schema share the beginning of their prompts, so they go to the same engine as long as it has room:
rendezvous hashing (Thaler and Ravishankar, 1998) gives each schema its own order of engines, which changes little when
one joins or leaves; a bound on the load (consistent hashing with bounded loads: Mirrokni, Thorup and Zadimoghaddam,
2018) sends what is too much for the first to the next. A retry goes to the engine that answered before, which may still
hold the keys and values of the document.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping

BOUND = 1.25
"""How much more than its even share of all requests in flight an engine may have."""

REMEMBERED = 20_000
"""Documents of which it is known who answered last; of those in flight there are far fewer."""


class Affinity:
    """Chooses by name. `most` is how many requests an engine may have in flight."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._orders: dict[tuple[str, frozenset[str]], list[str]] = {}
        self._answered: OrderedDict[str, str] = OrderedDict()

    def choose(self, schema: str, document: str, loads: Mapping[str, int]) -> str:
        """One of the engines with room; `loads` are their requests in flight (at least one engine)."""
        before = self._answered.get(document)
        if before is not None and loads.get(before, self._most) < self._most:
            return before
        bound = min(self._most, BOUND * (sum(loads.values()) + 1) / len(loads))
        for name in self._order(schema, frozenset(loads)):
            if loads[name] < bound:
                return name
        return min(loads, key=lambda name: (loads[name], name))

    def answered(self, document: str, name: str) -> None:
        """An engine answered a request about a document."""
        self._answered[document] = name
        self._answered.move_to_end(document)
        if len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)

    def _order(self, schema: str, names: frozenset[str]) -> list[str]:
        if (schema, names) not in self._orders:
            if len(self._orders) > REMEMBERED:
                self._orders.clear()
            self._orders[schema, names] = sorted(names, key=lambda name: _weight(schema, name))
        return self._orders[schema, names]


def _weight(schema: str, name: str) -> bytes:
    return hashlib.blake2b(f"{schema}\0{name}".encode(), digest_size=8).digest()
