"""Blanks: which tokens write what an answer goes on with, but for blanks that mean nothing in JSON.

A constraint that allows no blanks takes away a good part of what a model wants, and nobody loses anything by it. So
what went to such tokens is told apart (docs/clipped-mass.md). Tokens are bytes here: one may hold half a character.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

Where = Literal["outside", "string", "escape"]
"""Where in JSON text a byte stands: outside strings, within one, or behind the backslash of one."""

_BLANKS = frozenset(b" \t\r\n")
_QUOTE, _BACKSLASH = 0x22, 0x5C
_OUTSIDE: Where = "outside"


class Blanks:
    """The tokens of one vocabulary. `texts` are the bytes of each, those of control tokens empty."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._counts: dict[Where, Counter[bytes]] = {}
        self._longest = 0

    def places(self, ids: Sequence[int]) -> Iterator[tuple[bytes, int, Where]]:
        """For each token of an answer: the bytes of the whole answer, where the token begins in them, and in what."""
        texts = [self._texts[id_] if id_ < len(self._texts) else b"" for id_ in ids]
        answer, at, where = b"".join(texts), 0, _OUTSIDE
        for text in texts:
            yield answer, at, where
            at, where = at + len(text), bare(text, where)[2]

    def shares(self, ids: Sequence[int], rows: Sequence[Mapping[int, float]]) -> list[float]:
        """For each token of an answer, the probability of those tokens in its row (token: log probability) that write
        what the answer goes on with, with blanks in it."""
        found = []
        for (answer, at, where), row in zip(self.places(ids), rows, strict=True):
            same = [score for id_, score in row.items() if self._is_same(id_, answer, at, where)]
            found.append(math.fsum(map(math.exp, same)))
        return found

    def counts(self, ids: Sequence[int]) -> list[int]:
        """For each token of an answer, how many such tokens the whole vocabulary has."""
        return [self._count(answer, at, where) for answer, at, where in self.places(ids)]

    def _is_same(self, id_: int, answer: bytes, at: int, where: Where) -> bool:
        text = self._texts[id_] if id_ < len(self._texts) else b""
        said, blank, _ = bare(text, where)
        return blank and answer.startswith(said, at)

    def _count(self, answer: bytes, at: int, where: Where) -> int:
        counts = self._counts.get(where)
        if counts is None:
            read = (bare(text, where) for text in self._texts)
            counts = self._counts[where] = Counter(said for said, blank, _ in read if blank)
            self._longest = max([self._longest, *map(len, counts)])
        return sum(counts[answer[at:end]] for end in range(at, min(at + self._longest, len(answer)) + 1))


def bare(text: bytes, where: Where) -> tuple[bytes, bool, Where]:
    """The text without its blanks outside strings, whether it had any, and where it ends, if it begins at `where`."""
    said = bytearray()
    for byte in text:
        if where == "escape":
            where = "string"
        elif where == "string":
            where = "escape" if byte == _BACKSLASH else "outside" if byte == _QUOTE else "string"
        elif byte in _BLANKS:
            continue
        elif byte == _QUOTE:
            where = "string"
        said.append(byte)
    return bytes(said), len(said) < len(text), where
