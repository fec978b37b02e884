"""How long the strings of a tree are, in code points, and trees cut to a length."""

from __future__ import annotations

from pipeline.schema.pattern.ast import (
    ANY,
    EMPTY,
    NOTHING,
    Alt,
    Chars,
    Node,
    Repeat,
    Seq,
    alt,
    check_size,
    nullable,
    repeat,
    seq,
)

MAX_CUTS = 256
"""How many ways to share out a length `bounded` writes down before it gives up."""
MAX_STEPS = 100_000
"""How many nodes `bounded` looks at before it gives up."""


def lengths(node: Node) -> tuple[int, int | None]:
    """The length of a shortest and of a longest member; None if there is no longest. Nothing at all has (0, 0)."""
    if isinstance(node, Chars):
        return (0, 0) if node == NOTHING else (1, 1)
    if isinstance(node, Repeat):
        low, high = lengths(node.item)
        return low * node.minimum, None if high is None or node.maximum is None else high * node.maximum
    if isinstance(node, Alt):
        pairs = [lengths(option) for option in node.options]
        return min(low for low, _ in pairs), _largest([high for _, high in pairs])
    pairs = [lengths(item) for item in node.items]
    highs = [high for _, high in pairs]
    return sum(low for low, _ in pairs), None if None in highs else sum(high for high in highs if high is not None)


def _largest(highs: list[int | None]) -> int | None:
    return None if None in highs else max(high for high in highs if high is not None)


def any_string(minimum: int, maximum: int | None) -> Node:
    """Every string of that many code points (None: without end). NOTHING where the bounds cross."""
    return NOTHING if maximum is not None and maximum < minimum else repeat(ANY, minimum, maximum)


def bounded(node: Node, minimum: int, maximum: int | None) -> Node | None:
    """Exactly the members with `minimum` to `maximum` code points, or None if no small tree is found for them.

    NOTHING if there are none. Found are: bounds that hold anyway, alternatives, one repetition of items of one length
    among parts of one length, and what is left if it takes at most MAX_CUTS ways to share the length out.
    """
    try:
        return _Cutter().cut(node, max(minimum, 0), maximum)
    except _GaveUp:
        return None


class _GaveUp(Exception):
    """Over MAX_CUTS or MAX_STEPS."""


class _Cutter:
    def __init__(self) -> None:
        self._left = MAX_CUTS
        self._steps = MAX_STEPS

    def cut(self, node: Node, minimum: int, maximum: int | None) -> Node:
        self._steps -= check_size(node)
        if self._steps < 0:
            raise _GaveUp
        low, high = lengths(node)
        crossed = maximum is not None and (maximum < minimum or low > maximum)
        if crossed or (high is not None and high < minimum):
            return NOTHING
        if low >= minimum and (maximum is None or (high is not None and high <= maximum)):
            return node
        if isinstance(node, Alt):
            return alt(*(self.cut(option, minimum, maximum) for option in node.options))
        if isinstance(node, Seq):
            return self._cut_seq(node, minimum, maximum)
        assert isinstance(node, Repeat)  # a character has one length, and was dealt with above
        return self._cut_repeat(node, minimum, maximum)

    def _cut_seq(self, node: Seq, minimum: int, maximum: int | None) -> Node:
        """Fixed parts stay; a length is shared out between the first variable part and all behind it."""
        index = next(index for index, item in enumerate(node.items) if not _fixed(item))
        before, item, after = seq(*node.items[:index]), node.items[index], seq(*node.items[index + 1 :])
        used = lengths(before)[0]
        minimum, maximum = max(minimum - used, 0), None if maximum is None else maximum - used
        if _fixed(after):
            used = lengths(after)[0]
            rest = None if maximum is None else maximum - used
            return seq(before, self.cut(item, max(minimum - used, 0), rest), after)
        return seq(before, self._share(item, after, minimum, maximum))

    def _cut_repeat(self, node: Repeat, minimum: int, maximum: int | None) -> Node:
        size, longest = lengths(node.item)
        if size == longest:
            fewest = max(node.minimum, -(-minimum // size))
            most = node.maximum if maximum is None else _smaller(node.maximum, maximum // size)
            return NOTHING if most is not None and most < fewest else repeat(node.item, fewest, most)
        # One string more at a time, never an empty one: they end.
        fewer = repeat(node.item, max(node.minimum - 1, 0), None if node.maximum is None else node.maximum - 1)
        some = self._share(node.item, fewer, minimum, maximum, smallest=1)
        return alt(EMPTY, some) if minimum == 0 and nullable(node) else some

    def _share(self, first: Node, second: Node, minimum: int, maximum: int | None, smallest: int = 0) -> Node:
        low, high = lengths(first)
        low = max(low, smallest)
        least = lengths(second)[0]
        # From here on the first alone is long enough, so without a maximum both are free.
        enough = max(minimum - least, low)
        last = _smaller(high, enough - 1 if maximum is None else maximum - least)
        assert last is not None
        options = []
        if maximum is None:
            options.append(seq(self.cut(first, enough, None), second))
        for length in range(low, last + 1):
            self._left -= 1
            if self._left < 0:
                raise _GaveUp
            rest = None if maximum is None else maximum - length
            options.append(seq(self.cut(first, length, length), self.cut(second, max(minimum - length, 0), rest)))
        return alt(*options)


def _fixed(node: Node) -> bool:
    low, high = lengths(node)
    return low == high


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)
