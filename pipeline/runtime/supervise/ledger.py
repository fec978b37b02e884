"""Ledger: which documents each process has open, and which of them kill it.

A process writes a document down here before it works on it, and takes it off afterwards. A process that dies is charged
to all that it had open, since nobody can tell which of them did it. Those are *suspects*: they run on their own, or in
small groups, with nothing else in their process, until they end (and are cleared) or their process dies again.

A document is *poison* if its process dies while it is the only one open there, and it was in a death before. So one
that kills its process whenever it runs takes two deaths, or three if more than `FEW` were open at the first. A
document whose process is killed from outside at just these moments is taken for poison, too: nothing here can tell
the two apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

Verdict = Literal["go", "suspect", "poison"]
"""Of a document that is to be worked on. "go": it was opened. "suspect": it was not; it has to ask again, together with
those that it may run with, when nothing else is open. "poison": it must never be worked on again."""

FEW = 16
"""Suspects of a death with so many open run one by one: groups of so few would not save the time of another death."""


class Ledger:
    """Pure: no clock, no input or output. One name is one process at a time; `born` says that it is a new one.

    `deaths` counts processes that died by themselves, not those that died with their node.
    """

    def __init__(self) -> None:
        self.deaths = 0
        self._open: dict[str, Counter[str]] = {}
        self._lost: dict[str, None] = {}
        """Processes that somebody missed, in that order; whether they died, and what of, is not known yet."""
        self._suspects: dict[str, int] = {}
        """Each with how many of them may be open together."""
        self._poison: set[str] = set()

    def born(self, process: str, *, node_died: bool = False) -> tuple[str, ...]:
        """A process starts. One of its name that there was is dead: see `died`."""
        charged = self.died(process, node_died=node_died) if process in self._open else ()
        self._open[process] = Counter()
        return charged

    def died(self, process: str, *, node_died: bool = False) -> tuple[str, ...]:
        """A process is dead for certain. What it had open is charged, unless its node died: returns what was."""
        lost = self._open.pop(process, None)
        self._lost.pop(process, None)
        if lost is None or node_died:
            return ()
        self.deaths += 1
        for key in lost:
            known = self._suspects.pop(key, None)
            if known is not None and len(lost) == 1:
                self._poison.add(key)
            elif key not in self._poison:
                self._suspects[key] = _company(known, len(lost))
        return tuple(lost)

    def missed(self, process: str, key: str) -> bool:
        """Somebody waited for what a process did with a key, and the process is gone.

        Until it is known what it died of, all that it had open is taken for suspect: others would be killed by it
        before the process is born again. False: the key is not open there, so this is known already.
        """
        if key not in self._open.get(process, ()):
            return False
        self._lost[process] = None
        return True

    def begin(self, process: str, keys: Sequence[str], *, together: bool = False) -> dict[str, Verdict]:
        """Open what may be worked on: "go". With `together`, the keys are all that the process will have open, and
        suspects are opened as well, as far as they may be together; the others stay "suspect".

        A key may be open several times, in one process or in several.
        """
        here = self._open.setdefault(process, Counter())
        self._lost.pop(process, None)  # who asks, lives
        verdicts: dict[str, Verdict] = {}
        room = math.inf
        for key, times in Counter(keys).items():
            verdict = self._verdict(key)
            if together and verdict != "poison":
                most = min(room, self.company(key) if verdict == "suspect" else math.inf)
                verdict = "go" if sum(one == "go" for one in verdicts.values()) < most else "suspect"
                room = most if verdict == "go" else room
            if verdict == "go":
                here[key] += times
            verdicts[key] = verdict
        return verdicts

    def ended(self, process: str, keys: Iterable[str]) -> int:
        """These came to an end, and their process lived: they are closed, and no suspects any more.

        What is not open there is left alone: it belongs to an earlier process of the name. Returns how many were.
        """
        here = self._open.get(process, Counter())
        count = 0
        for key in keys:
            if key in here:
                count += 1
                here[key] -= 1
                if not here[key]:
                    del here[key]
                self._suspects.pop(key, None)
        return count

    def company(self, key: str) -> int:
        """How many suspects may be open together with this one, itself included. 0: it is not to be opened before it
        is known what a process died of that had it open alone."""
        known = self._suspects.get(key)
        for process in self._lost:
            lost = self._open[process]
            if key in lost:
                if known is not None and len(lost) == 1:
                    return 0
                known = _company(known, len(lost))
        return 1 if known is None else known

    @property
    def missing(self) -> tuple[str, ...]:
        """Processes of which it is not known yet whether and how they died."""
        return tuple(self._lost)

    def open_in(self, process: str) -> frozenset[str]:
        """What a process has open."""
        return frozenset(self._open.get(process, ()))

    @property
    def poison(self) -> frozenset[str]:
        """What was found to be poison."""
        return frozenset(self._poison)

    def _verdict(self, key: str) -> Verdict:
        if key in self._poison:
            return "poison"
        missed = any(key in self._open[process] for process in self._lost)
        return "suspect" if missed or key in self._suspects else "go"


def _company(known: int | None, open_at_death: int) -> int:
    """Of a suspect after another death: `known` is what it was before, None if it was none."""
    if known is not None or open_at_death <= FEW:
        return 1
    return math.isqrt(open_at_death - 1) + 1
