"""Unwrap: the one JSON text in an answer, out of fences, byte-order marks and prose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from pipeline.steps.answer.scan import STRING
from pipeline.steps.answer.strict import Unparsable, loads

MAX_CANDIDATES = 8
JSON_BLANKS = " \t\r\n"
"""All that may stand around JSON; other blanks are a change to take away."""
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_NO_PROSE = re.compile(r"^[ \t]*```[A-Za-z0-9_-]*[ \t]*$|[\s\ufeff]+", re.MULTILINE)  # half a fence is no prose either
_OPENER = re.compile(r"[{\[｛［]")
_MARK = re.compile(STRING + r"|[{}\[\]｛｝［］]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Candidate:
    """`text` begins with a bracket; `around` and `prose` count the characters around it: all of them but blanks at
    both ends, and those that are neither fence nor blank nor byte-order mark."""

    text: str
    around: int
    prose: int


def unwrap(answer: str) -> Candidate | None:
    """The only fenced block, or the only thing in brackets; None if that is ambiguous or nothing. Brackets that never
    close run to the end of the text."""
    blocks = list(islice(_FENCED.finditer(answer), 2))
    if blocks and _is_inside(answer, blocks[0].start()):
        blocks = []
    if len(blocks) > 1:
        return None
    inner = blocks[0][1] if blocks else answer
    outside = [answer[: blocks[0].start()], answer[blocks[0].end() :]] if blocks else []
    start = _OPENER.search(inner)
    if start is None:
        return None
    end = _end_of_brackets(inner, start.start())
    if _OPENER.search(inner, end):
        return None
    prose = _NO_PROSE.sub("", "\n".join([*outside, inner[: start.start()], inner[end:]]))
    text = inner[start.start() : end].rstrip().removesuffix("```").rstrip()
    return Candidate(text, len(answer.strip(JSON_BLANKS)) - len(text), len(prose))


def holds_several(answer: str) -> bool:
    """Whether more than one object or array of an answer is JSON by itself."""
    found = position = 0
    for _ in range(MAX_CANDIDATES):
        start = _OPENER.search(answer, position)
        if start is None:
            break
        position = _end_of_brackets(answer, start.start())
        try:
            found += bool(loads(answer[start.start() : position]))
        except Unparsable:
            continue
    return found > 1


def _is_inside(answer: str, fence: int) -> bool:
    """Whether a fence stands in brackets that were opened before it, and so maybe in a text of the answer itself."""
    start = _OPENER.search(answer, 0, fence)
    return start is not None and _end_of_brackets(answer, start.start()) > fence


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for match in _MARK.finditer(text, start):
        mark = match[0]
        if mark[0] != '"':
            depth += 1 if mark in "{[｛［" else -1
            if depth == 0:
                return match.end()
    return len(text)
