"""Mistakes: what went wrong, in groups by schema, field and kind, with a few documents that show it."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pipeline.evaluate.judged import Judged
from pipeline.evaluate.match import FieldMatch
from pipeline.evaluate.same import has_value, text_key
from pipeline.observe.paths import starred
from pipeline.records import Field, JsonValue
from pipeline.report.rows import blamed
from pipeline.steps.support.source import Source, hits_of

Kind = Literal["missing", "invented", "wrong", "nearly", "elsewhere", "format", "no_record", "no_row"]
KINDS: dict[Kind, str] = {
    "no_row": "the run has no row of the document",
    "no_record": "the document came to no record",
    "missing": "no value where one was expected",
    "invented": "a value where none was expected",
    "elsewhere": "the value of another field",
    "nearly": "another value, much like the expected one",
    "wrong": "another value",
    "format": "the right value in another notation",
}

NEARLY = 0.85
"""How alike a wrong value is to the expected one from here on, for `nearly`."""
EXAMPLES = 3
MAX_GROUPS = 2000
MAX_SHOWN = 200
"""Characters of a value or passage in an example."""
_AROUND = 60


@dataclass(frozen=True, slots=True)
class Example:
    """A document that shows a mistake. `passage` is where its text has the expected value, else the found one, else
    its beginning; empty if the text cannot be read."""

    id: str
    pointer: str
    expected: str
    found: str
    passage: str = ""


@dataclass
class Group:
    """Mistakes of one kind in one field (for documents without a record: of one code). `leaves` and `documents` count
    them, `ungrounded` those whose value nothing in the document supports."""

    schema: str
    pointer: str
    kind: Kind
    leaves: int = 0
    documents: int = 0
    ungrounded: int = 0
    _examples: list[tuple[int, int, Example]] = field(default_factory=list)
    _last: str = ""

    @property
    def examples(self) -> list[Example]:
        """Those of the documents with the lowest hashes, whatever order they came in."""
        return [example for _, _, example in sorted(self._examples, reverse=True)]

    def wants(self, rank: int) -> bool:
        """Whether a document of this rank would be an example."""
        return len(self._examples) < EXAMPLES or -rank > self._examples[0][0]

    def show(self, rank: int, example: Example) -> None:
        """Keep an example; one of each document."""
        if any(known == -rank for known, _, _ in self._examples):
            return
        push = heapq.heappush if len(self._examples) < EXAMPLES else heapq.heappushpop
        push(self._examples, (-rank, self.leaves, example))


class Mistakes:
    """The groups of all documents that were added. `left_out` counts mistakes of further groups than are kept."""

    def __init__(self) -> None:
        self.left_out = 0
        self._groups: dict[tuple[str, str, Kind], Group] = {}

    def ranked(self) -> list[Group]:
        """The groups, those of the most documents first."""
        return sorted(self._groups.values(), key=lambda one: (-one.documents, -one.leaves, one.schema, one.pointer))

    def add(self, judged: Judged) -> None:
        """Add what went wrong in one document."""
        rank = int.from_bytes(hashlib.blake2b(judged.gold.id.encode(), digest_size=7).digest(), "big")
        if not judged.has_record:
            self._add_document(judged, rank)
            return
        known = judged.known
        for one, kind in _kinds(judged.matched.fields):
            group = self._group(judged, one.pointer, kind)
            if group is None:
                continue
            support = known.get(one.place) if one.place else None
            group.ungrounded += support is not None and support.match == "none"
            if group.wants(rank):
                group.show(rank, _example(judged, one, support))

    def _add_document(self, judged: Judged, rank: int) -> None:
        problem = blamed(judged.outcome) if judged.outcome else None
        group = self._group(judged, problem.code if problem else "", "no_record" if judged.outcome else "no_row")
        if group is not None and group.wants(rank):
            words = problem.message[:MAX_SHOWN] if problem else ""
            passage = _cut(judged.text or "", 0, 0)
            group.show(rank, Example(judged.gold.id, "", _shown(judged.gold.record), words, passage))

    def _group(self, judged: Judged, pointer: str, kind: Kind) -> Group | None:
        key = judged.schema, starred(pointer), kind
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                self.left_out += 1
                return None
            group = self._groups[key] = Group(*key)
        group.leaves += 1
        group.documents += group._last != judged.gold.id
        group._last = judged.gold.id
        return group


def _kinds(fields: list[FieldMatch]) -> Iterator[tuple[FieldMatch, Kind]]:
    """The leaves that are not right, or not as they were expected, with what is wrong with them."""
    wanted: dict[str, set[str]] = {}
    for one in fields:
        if isinstance(one.expected, str) and has_value(one.expected):
            wanted.setdefault(text_key(one.expected), set()).add(one.pointer)
    for one in fields:
        if one.verdict == "normalised":
            yield one, "format"
        elif one.verdict == "missing":
            yield one, "missing"
        elif one.verdict in ("wrong", "invented"):
            others = wanted.get(text_key(one.found), set()) if isinstance(one.found, str) else set()
            near = one.verdict == "wrong" and one.alike >= NEARLY
            plain: Kind = "wrong" if one.verdict == "wrong" else "invented"
            yield one, "nearly" if near else "elsewhere" if others - {one.pointer} else plain


def _example(judged: Judged, one: FieldMatch, support: Field | None) -> Example:
    return Example(
        judged.gold.id,
        one.place or one.pointer,
        _shown(one.expected),
        _shown(one.found),
        _passage(judged, one, support),
    )


def _passage(judged: Judged, one: FieldMatch, support: Field | None) -> str:
    if judged.text is None:
        return ""
    if isinstance(one.expected, str | int | float) and not isinstance(one.expected, bool) and has_value(one.expected):
        hits = hits_of(Source(judged.text), one.expected)
        if hits:
            return _cut(judged.text, hits[0].start, hits[0].end)
    if support is not None and support.start is not None and support.end is not None:
        return _cut(judged.text, support.start, support.end)
    return _cut(judged.text, 0, 0)


def _cut(text: str, start: int, end: int) -> str:
    """A passage with some of what is around it, on one line."""
    low, high = max(0, start - _AROUND), min(len(text), max(end, start + 1) + _AROUND)
    line = " ".join(text[low:high][:MAX_SHOWN].split())
    return f"{'…' if low else ''}{line}{'…' if high < len(text) else ''}"


def _shown(value: JsonValue) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
