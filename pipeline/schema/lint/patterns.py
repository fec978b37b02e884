"""Reading patterns, as far as the lint needs it: repetitions, anchors, lengths, what may take exponential time.

A small reader of its own, since Python's parser is private. What it cannot read it leaves unjudged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.schema.lint.policy import MAX_PATTERN

_TOKEN = re.compile(
    r"(?P<open>\((?:\?(?::|<?[=!]|P?<\w+>))?)|(?P<close>\))|(?P<bar>\|)|(?P<anchor>[\^$]|\\[bBAZ])"
    r"|(?P<times>(?:[*+?]|\{\d{1,6}(?:,\d{0,6})?\})[?+]?)|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<atom>\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\.|.)",
    re.DOTALL,
)
_BEYOND = re.compile(r"\(\?<?[=!]|\\[1-9]|\(\?P=|\\k<|\\[bB]")
_FOREIGN = re.compile(r"\\[AZ]|\(\?P|\(\?[aiLmsux]+[):]|\(\?#|\(\?>")
_LITERAL = re.compile(r"\\\\|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_WHOLE = re.compile(r"(?:\^|\\A).*(?<!\\)(?:\\\\)*(?:\$|\\Z)", re.DOTALL)
_ASCII = [chr(code) for code in range(128)]
UNBOUNDED = 10**9


@dataclass(frozen=True, slots=True)
class Piece:
    """An atom or group with its repetition: the characters it may hold, its lengths, the pieces of its alternatives."""

    least: int
    most: int
    letters: frozenset[str]
    shortest: int
    longest: int
    branches: tuple[tuple[Piece, ...], ...] = ()

    @property
    def stretches(self) -> bool:
        """Whether it may take many numbers of characters."""
        return self.most - self.least > 8


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a pattern. Lengths are those of a whole match, in characters; `longest` may be UNBOUNDED.

    `slow`: surely exponential; `risky`: not surely harmless.
    """

    anchored: bool
    shortest: int
    longest: int
    slow: bool
    risky: bool
    stretches: int
    largest_repeat: int


def beyond_grammars(pattern: str) -> bool:
    """Whether it has look-around, back-references or word boundaries."""
    return _BEYOND.search(_LITERAL.sub("", pattern)) is not None


def foreign(pattern: str) -> bool:
    r"""Whether it has what Python knows and ECMA 262 does not: \A, \Z, (?P<name>…), inline flags."""
    return _FOREIGN.search(_LITERAL.sub("", pattern)) is not None


@lru_cache(maxsize=1024)
def read_pattern(pattern: str) -> Reading | None:
    """Analyse a pattern; None where it is too long or beyond this reader."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        return _read(pattern)
    except (ValueError, RecursionError, re.error):
        return None


def _read(pattern: str) -> Reading:
    branches = _parse([(str(m.lastgroup), m.group()) for m in _TOKEN.finditer(pattern)])
    pieces = [piece for branch in branches for piece in _within(branch)]
    return Reading(
        anchored=_anchored(pattern),
        shortest=min(sum(p.shortest for p in branch) for branch in branches),
        longest=min(UNBOUNDED, max(sum(p.longest for p in branch) for branch in branches)),
        slow=any(_ambiguous(piece) for piece in pieces),
        risky=any(_risky(piece) for piece in pieces),
        stretches=sum(piece.stretches for piece in pieces),
        largest_repeat=max([p.least for p in pieces] + [p.most for p in pieces if p.most < UNBOUNDED], default=0),
    )


def _anchored(pattern: str) -> bool:
    """^…$ around the whole, or around every top-level alternative."""
    depth, tops, closed = 0, [""], []
    for match in _TOKEN.finditer(pattern):
        kind = match.lastgroup
        depth += (kind == "open") - (kind == "close")
        if kind == "bar" and depth == 0:
            tops.append("")
        else:
            tops[-1] += match.group()
        if depth == 0 and kind == "close":
            closed.append(match.end())
    if len(tops) == 1 and closed == [len(pattern)] and pattern.startswith("("):
        return _anchored(pattern[3:-1] if pattern.startswith("(?:") else pattern[1:-1])
    return all(_WHOLE.fullmatch(top) or (len(tops) > 1 and top[0:1] == "(" and _anchored(top)) for top in tops)


def _parse(tokens: list[tuple[str, str]]) -> list[list[Piece]]:
    """Alternatives of pieces. Raises ValueError where parentheses do not match."""
    stack: list[tuple[str, list[list[Piece]]]] = [("", [[]])]
    for kind, text in tokens:
        branches = stack[-1][1]
        if kind == "open":
            stack.append((text, [[]]))
        elif kind == "close":
            opened, inner = stack.pop()
            if not stack:
                raise ValueError("unmatched )")
            looks = opened.endswith(("=", "!")) and opened.startswith("(?")
            stack[-1][1][-1].append(Piece(1, 1, frozenset(), 0, 0) if looks else _group(inner))
        elif kind == "bar":
            branches.append([])
        elif kind == "times" and branches[-1]:
            branches[-1].append(_repeat(branches[-1].pop(), text))
        elif kind != "anchor":
            branches[-1].append(Piece(1, 1, _letters(text), 1, 1))
    if len(stack) != 1:
        raise ValueError("unmatched (")
    return stack[0][1]


def _group(branches: list[list[Piece]]) -> Piece:
    letters = frozenset().union(*(piece.letters for branch in branches for piece in branch))
    shortest = min(sum(piece.shortest for piece in branch) for branch in branches)
    longest = min(UNBOUNDED, max(sum(piece.longest for piece in branch) for branch in branches))
    return Piece(1, 1, letters, shortest, longest, tuple(tuple(branch) for branch in branches))


def _repeat(piece: Piece, text: str) -> Piece:
    low, comma, high = text.rstrip("?+").strip("{}").partition(",") if text[0] == "{" else ("", "", "")
    if text[0] == "{":
        least, most = int(low), int(high) if high else UNBOUNDED if comma else int(low)
    else:
        least, most = {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}[text[0]]
    inner = ((piece,),) if piece.most != 1 or piece.least != 1 else piece.branches
    longest = min(UNBOUNDED, piece.longest * most)
    return Piece(least, most, piece.letters, piece.shortest * least, longest, inner)


@lru_cache(maxsize=4096)
def _letters(text: str) -> frozenset[str]:
    """The ASCII characters that a one-character pattern matches."""
    compiled = re.compile(text, re.ASCII | re.DOTALL)
    return frozenset(letter for letter in _ASCII if compiled.fullmatch(letter))


def _within(branch: list[Piece] | tuple[Piece, ...]) -> list[Piece]:
    return [piece for outer in branch for piece in (outer, *(p for inner in outer.branches for p in _within(inner)))]


def _risky(piece: Piece) -> bool:
    """Whether a repeated group varies in length or has alternatives that may begin alike."""
    if piece.most <= 1 or not piece.branches:
        return False
    firsts = [branch[0].letters if branch else frozenset() for branch in piece.branches]
    alike = any(a & b or not a for i, a in enumerate(firsts) for b in firsts[:i])
    return alike or any(inner.least != inner.most for branch in piece.branches for inner in _within(branch))


def _flat(branch: tuple[Piece, ...]) -> list[Piece]:
    """A branch without the parentheses that only group."""
    plain = [(p.least, p.most, len(p.branches)) != (1, 1, 1) for p in branch]
    return [q for p, keep in zip(branch, plain, strict=True) for q in ([p] if keep else _flat(p.branches[0]))]


def _ambiguous(piece: Piece) -> bool:
    """A repeated group that one text can pass in exponentially many ways: (a+)+, (a|a)*, (\\w+\\s?)*; not (-[a-z]+)*.

    Errs on the side of silence: a piece that must match between two repetitions and shares no character with what
    stretches keeps them apart; alternatives are compared by first pieces only.
    """
    if not piece.stretches or not piece.branches:
        return False
    for branch in piece.branches:
        flat = _flat(branch)
        inner = [p for p in flat if p.stretches and p.letters]
        if inner and not any(p.least and not (p.letters & q.letters) for p in flat for q in inner if p is not q):
            return True
    firsts = [branch[0].letters for branch in piece.branches if len(branch) == 1 and branch[0].least]
    return any(a & b for i, a in enumerate(firsts) for b in firsts[:i])
