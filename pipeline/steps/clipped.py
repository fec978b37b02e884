"""Clipped: which part of an answer fights the constraint, from the probabilities with the mask and without it.

    clipped mass of a token = 1 - P(token, without the mask) / P(token, under the mask)

Under the mask the legal tokens share what all of them had, so the ratio is the probability that the model gave to legal
tokens, and what is missing to 1 it gave to others. Every token belongs to the place that its first character writes.
docs/clipped-mass.md has the derivation, what the figures mean and what they do not.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from pipeline.job import ExtractConfig
from pipeline.records import Clipped, Completion, Document, Outcome, Sampling
from pipeline.schema.fingerprint import digest
from pipeline.schema.walk import escape
from pipeline.steps.parse import MAX_CHARACTERS, MAX_DEPTH
from pipeline.steps.retry import next_sampling

MAX_POINTER_CHARACTERS = 1 << 18
"""Of all pointers of an answer together."""

_BLANKS = re.compile(r"[ \t\r\n]*+")
# A string that was cut is one up to the end of the text.
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+("?)', re.DOTALL)
_LITERAL = re.compile(r"[^\s,\]}\[{\":]+")

_Part = Literal["value", "structure"]
_Place = tuple[str, _Part]


def audited(document: Document, config: ExtractConfig) -> int:
    """The most tokens of which a document's first answer is audited; 0 if it is not. The same on every run: it hangs on
    the document's id, its schema and the seed alone."""
    audit = config.audit
    if not audit.fraction or not config.sampling.constrained:
        return 0
    drawn = digest([audit.seed, document.schema, document.id])
    return audit.max_tokens if int(drawn, 16) < audit.fraction * 16.0 ** len(drawn) else 0


def first_sampling(document: Document, config: ExtractConfig) -> Sampling:
    """How to decode a document's first attempt, whose answer may be audited."""
    return dataclasses.replace(next_sampling((), config), audit=audited(document, config))


def with_audit(outcome: Outcome, first: Completion) -> Outcome:
    """The outcome of a document that was to be audited, with what was found in its first answer."""
    broke = first.error or first.finish_reason in ("abort", "error")
    audit = first.audit or ("failed" if broke else "unavailable")
    if audit != "done":
        return dataclasses.replace(outcome, audit=audit)
    try:
        found = clipped(first)
    except Exception:  # nothing that is only observed may cost a document
        found = None
    return dataclasses.replace(outcome, audit=audit if found is not None else "failed", clipped=found or ())


def clipped(completion: Completion) -> tuple[Clipped, ...] | None:
    """What the constraint took from an audited answer, by place, in the answer's order; None if its tokens, scores and
    text do not fit each other."""
    masked, unmasked, ends = _masked(completion), completion.unmasked, completion.token_ends
    if not len(masked) == len(unmasked) == len(ends):
        return None
    starts, places = _places(completion.text)
    sums: dict[tuple[str, str], list[float]] = {}
    for begin, under, (raw, blank) in zip((0, *ends), masked, unmasked, strict=False):
        pointer, part = places[bisect_right(starts, begin) - 1]
        mass = 1.0 - math.exp(raw - under) if math.isfinite(under) else 0.0
        blanks = min(blank, max(mass, 0.0))
        _add(sums, (pointer, part), mass - blanks)
        if blank > 0.0:
            _add(sums, (pointer, "blank"), blanks)
    # Two passes round differently: a sum may come out a little below nothing, a single token may, too.
    return tuple(
        Clipped(pointer, part, int(tokens), max(0.0, mass), max(0.0, highest))  # type: ignore[arg-type]
        for (pointer, part), (tokens, mass, highest) in sums.items()
    )


def _masked(completion: Completion) -> list[float]:
    rows = completion.logprobs
    if len(completion.token_ids) != len(rows):
        return []
    return [row.get(token, -math.inf) for token, row in zip(completion.token_ids, rows, strict=True)]


def _add(sums: dict[tuple[str, str], list[float]], key: tuple[str, str], mass: float) -> None:
    counted = sums.setdefault(key, [0, 0.0, -math.inf])
    counted[0] += 1
    counted[1] += mass
    counted[2] = max(counted[2], mass)


def _places(text: str) -> tuple[Sequence[int], Sequence[_Place]]:
    """Where each place begins, in code points, and the places; a text may be cut or no JSON from somewhere on."""
    reader = _Reader(text)
    if len(text) <= MAX_CHARACTERS:
        reader.read()
    return reader.starts, reader.places


@dataclasses.dataclass(slots=True)
class _Open:
    """A container that is being read. `index` is that of a list's next item, None in an object."""

    pointer: str
    index: int | None


class _Reader:
    """One pass without recursion.

    A bracket belongs to its container, a comma to what comes after it, as a key does. A value begins with the quote
    that ends its key: whoever writes `":"` there has chosen a string. It ends behind its closing quote; behind a number
    with the character that ends it, since whether the number goes on is decided there.
    """

    def __init__(self, text: str) -> None:
        self.starts: list[int] = [0]
        self.places: list[_Place] = [("", "structure")]
        self._text = text
        self._at = 0
        self._free = 0
        """Where the next place may begin."""
        self._key_end = -1
        """Where the quote stands that ends the key of the value to come; -1 if it has none."""
        self._open: list[_Open] = []
        self._characters = 0

    def read(self) -> None:
        pointer: str | None = ""
        while pointer is not None and self._value(pointer):
            pointer = self._after()

    def _value(self, pointer: str) -> bool:
        """Read a leaf, or open containers down to the first one; False where the text ends or is no JSON."""
        while True:
            self._skip()
            mark = self._text[self._at : self._at + 1]
            if mark not in ("{", "["):
                return self._leaf(pointer)
            if len(self._open) == MAX_DEPTH:
                return False
            self._begin(pointer, "structure")
            self._open.append(_Open(pointer, None if mark == "{" else 0))
            self._at += 1
            self._skip()
            if self._text.startswith(("}", "]"), self._at):
                return True  # `_after` closes it
            found = self._next(self._at)
            if found is None:
                return False
            pointer = found

    def _leaf(self, pointer: str) -> bool:
        string = _STRING.match(self._text, self._at)
        found = string or _LITERAL.match(self._text, self._at)
        if found is None:
            return False
        self._begin(pointer, "value")
        self._at = found.end()
        number = string is None and found[0][0] in "-0123456789"
        self._free = self._at + 1 if number else self._at
        return bool(string[1]) if string else True

    def _after(self) -> str | None:
        """Close containers and pass a comma; the pointer of the next value, None if there is none."""
        while self._open:
            self._skip()
            innermost, mark = self._open[-1], self._text[self._at : self._at + 1]
            if mark == ",":
                self._at += 1
                self._skip()
                return self._next(self._at - 1)
            if mark not in ("}", "]"):
                return None
            self._place(self._at, innermost.pointer, "structure")
            self._at += 1
            self._open.pop()
        return None

    def _next(self, start: int) -> str | None:
        """Go to the next member or item of the innermost container, past its key: its pointer. Its tokens begin at
        `start`, where a comma may stand."""
        innermost = self._open[-1]
        if innermost.index is not None:
            name, innermost.index = str(innermost.index), innermost.index + 1
        else:
            key = _STRING.match(self._text, self._at)
            if key is None or not key[1]:
                return None
            try:
                name = escape(json.loads(key[0]))
            except ValueError:  # an escape that is none
                return None
            self._at = key.end()
            self._key_end = key.end() - 1
        pointer = f"{innermost.pointer}/{name}"
        self._characters += len(pointer)
        if self._characters > MAX_POINTER_CHARACTERS:
            return None
        self._place(start, pointer, "structure")
        if innermost.index is None:
            self._skip()
            if not self._text.startswith(":", self._at):
                return None
            self._at += 1
        return pointer

    def _begin(self, pointer: str, part: _Part) -> None:
        self._place(self._at if self._key_end < 0 else self._key_end, pointer, part)
        self._key_end = -1

    def _place(self, start: int, pointer: str, part: _Part) -> None:
        self.starts.append(max(start, self._free))
        self.places.append((pointer, part))

    def _skip(self) -> None:
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
