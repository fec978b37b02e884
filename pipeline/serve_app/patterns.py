"""Patterns of strangers: whether a search with one is known to be quick.

A search is slow where it can go on in several ways and has to try them all. A pattern is taken if few of its loops
share out a text between them, which `schema.pattern.search` finds out, or if it never leaves a choice: at each place
the next character alone says where to go on (what the theory calls a one-unambiguous expression). All others may be
harmless, but nothing here proves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pipeline.errors import SchemaError
from pipeline.schema.pattern.ast import NOTHING, Chars, Malformed, Unsupported, intersection
from pipeline.schema.pattern.read import read
from pipeline.schema.pattern.search import compile_finder
from pipeline.schema.pattern.syntax import Chain, Choice, Edge, Loop, Written
from pipeline.schema.walk import descend

_MAX_PLACES = 500
"""Characters of a pattern, with fixed repetitions written out."""
_SHOWN = 80


def check_patterns(body: Mapping[str, Any]) -> None:
    """Refuse a pattern of a loaded body that could hold up all documents: a search cannot be broken off at once.

    Raises:
        SchemaError: `slow_pattern`.
    """
    for pointer, pattern in _patterns(body):
        if not compile_finder(pattern).quick_length and not _leaves_no_choice(pattern):
            raise SchemaError(
                f"at {pointer or '/'}: a search with the pattern {pattern[:_SHOWN]!r} may take exponential time. Write "
                "it so that the next character says which part it belongs to, or have the schema registered.",
                "slow_pattern",
            )


def _patterns(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for pointer, node in descend(body):
        if isinstance(node, Mapping):
            single = [node["pattern"]] if "pattern" in node else []
            yield from ((pointer, pattern) for pattern in [*single, *node.get("patternProperties", ())])


def _leaves_no_choice(pattern: str) -> bool:
    try:
        places = _Places()
        part = places.part(read(pattern))
        return places.certain(part)
    except (Malformed, Unsupported, _UncertainError):
        return False


class _UncertainError(Exception):
    """The pattern leaves a choice, or nobody can say."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern: the places where it can begin and end, and whether it can be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    empty: bool


_NOTHING = _Part((), (), True)


@dataclass
class _Places:
    """The characters of a pattern as they stand in it, and which can follow which: twice, if in two ways."""

    chars: list[Chars] = field(default_factory=list)
    follow: list[list[int]] = field(default_factory=list)

    def part(self, node: Written) -> _Part:
        """Raises _UncertainError."""
        if isinstance(node, Chars):
            return self._place(node)
        if isinstance(node, Edge):
            return _NOTHING
        if isinstance(node, Chain):
            return self._chain(self.part(item) for item in node.items)
        if isinstance(node, Choice):
            parts = [self.part(option) for option in node.options]
            if sum(part.empty for part in parts) > 1:
                raise _UncertainError
            first, last = (
                chain.from_iterable(ends) for ends in zip(*((one.first, one.last) for one in parts), strict=True)
            )
            return _Part(tuple(first), tuple(last), any(part.empty for part in parts))
        if isinstance(node, Loop):
            return self._loop(node)
        raise _UncertainError  # looks around: several conditions on one text

    def certain(self, whole: _Part) -> bool:
        """Whether at each place, and at the start, the next character says which place is next."""
        return all(self._apart(places) for places in (whole.first, *self.follow))

    def _apart(self, places: Sequence[int]) -> bool:
        kinds = [self.chars[place] for place in places]
        return all(
            intersection(one, other) == NOTHING for index, one in enumerate(kinds) for other in kinds[index + 1 :]
        )

    def _place(self, node: Chars) -> _Part:
        if len(self.chars) >= _MAX_PLACES:
            raise _UncertainError
        self.chars.append(node)
        self.follow.append([])
        here = (len(self.chars) - 1,)
        return _Part(here, here, False)

    def _chain(self, parts: Iterator[_Part]) -> _Part:
        whole = _NOTHING
        for part in parts:
            self._join(whole.last, part.first)
            first = whole.first + part.first if whole.empty else whole.first
            last = whole.last + part.last if part.empty else part.last
            whole = _Part(first, last, whole.empty and part.empty)
        return whole

    def _loop(self, node: Loop) -> _Part:
        if node.maximum == 0:
            return _NOTHING
        if node.minimum == node.maximum:
            return self._chain(self.part(node.item) for _ in range(node.minimum))
        item = self.part(node.item)
        if item.empty:
            raise _UncertainError
        if node.maximum != 1:
            self._join(item.last, item.first)
        return _Part(item.first, item.last, node.minimum == 0)

    def _join(self, last: tuple[int, ...], first: tuple[int, ...]) -> None:
        for place in last:
            self.follow[place] += first
            if len(self.follow[place]) > _MAX_PLACES:
                raise _UncertainError
