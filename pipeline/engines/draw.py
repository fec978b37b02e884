"""Random legal tokens that make readable answers which end: how the `sampler` engine chooses.

A uniform draw from the legal tokens would write strings of control bytes and never close an array. So the
draw knows whether it is inside a JSON string, prefers words there, and closes what is open ever more
eagerly. Now and then it takes anything legal, because that is what finds the faults in whatever reads the
answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any

_WORD = re.compile(rb" ?[A-Za-z]+")
_READABLE = re.compile(rb"""[ !#-\[\]-~]+""")

_CLOSE_AT_FIRST = 0.25
_CLOSE_AT_MOST = 0.95
_TOKENS_TO_FULL_HASTE = 200.0
_WORDS = 0.9
_WORDS_OR_READABLE = 0.98
_STRUCTURE = 0.95


class Vocabulary:
    """A model's tokens, sorted into classes that a mask can be intersected with."""

    def __init__(self, tokenizer: Any, vocab_size: int, control_ids: Iterable[int]) -> None:
        """Control tokens are drawn only when nothing else is legal: text cannot show them."""
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size)
        self.texts: list[bytes] = list(info.decoded_vocab)
        self.size = vocab_size
        self.end_ids = frozenset(int(id_) for id_ in info.stop_token_ids)
        control = frozenset(control_ids) | self.end_ids
        self.end = self._class(lambda id_, _: id_ in self.end_ids)
        self.quotes = self._class(lambda _, text: text.startswith(b'"'))
        self.closers = self._class(lambda _, text: text.startswith((b"]", b"}")))
        self.commas = self._class(lambda _, text: text.startswith(b","))
        self.words = self._class(lambda id_, text: id_ not in control and bool(_WORD.fullmatch(text)))
        self.readable = self._class(lambda id_, text: id_ not in control and bool(_READABLE.fullmatch(text)))
        self.plain = self._class(lambda id_, _: id_ not in control)
        self.structure = self._class(lambda id_, text: id_ not in control and _is_structure(text))
        self.all = self._class(lambda _id, _text: True)

    def _class(self, belongs: Callable[[int, bytes], bool]) -> Any:
        import numpy

        flags = numpy.zeros((self.size + 31) // 32 * 32, dtype=numpy.uint8)
        for id_, text in enumerate(self.texts[: self.size]):
            flags[id_] = belongs(id_, text)
        return numpy.packbits(flags, bitorder="little").view(numpy.uint32)


class Draw:
    """The choices of one answer. Two draws with one seed, fed the same masks, choose the same tokens."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        self._vocabulary = vocabulary
        self._random = random.Random(seed)
        self._tokens = 0
        self._in_string = False
        self._escaped = False

    def choose(self, mask: Any) -> int | None:
        """A legal token of the packed mask: the end token as soon as it is legal, None if nothing is."""
        legal = mask.view(self._vocabulary.all.dtype)
        for preferred in (self._vocabulary.end, *self._preferences(), self._vocabulary.all):
            token = self._pick(legal & preferred)
            if token is not None:
                self._advance(self._vocabulary.texts[token])
                return token
        return None

    def _preferences(self) -> list[Any]:
        """Classes to try in turn for the next token."""
        classes = self._vocabulary
        haste = min(_CLOSE_AT_MOST, _CLOSE_AT_FIRST + self._tokens / _TOKENS_TO_FULL_HASTE)
        closing = self._random.random() < haste
        taste = self._random.random()
        if not self._in_string:
            return [
                *([classes.closers, classes.commas] if closing else []),
                *([classes.structure] if taste < _STRUCTURE else []),
                classes.plain,
            ]
        return [
            *([classes.quotes] if closing else []),
            *([classes.words] if taste < _WORDS else []),
            *([classes.readable] if taste < _WORDS_OR_READABLE else []),
            classes.plain,
        ]

    def _pick(self, bits: Any) -> int | None:
        """One of the set bits, each as likely as the other."""
        import numpy

        counts = numpy.bitwise_count(bits)
        totals = numpy.cumsum(counts, dtype=numpy.int64)
        total = int(totals[-1])
        if total == 0:
            return None
        rank = int(self._random.random() * total)
        word = int(numpy.searchsorted(totals, rank, side="right"))
        rest = int(bits[word])
        for _ in range(rank - int(totals[word]) + int(counts[word])):
            rest &= rest - 1
        return word * 32 + (rest & -rest).bit_length() - 1

    def _advance(self, text: bytes) -> None:
        self._tokens += 1
        if not self._escaped and b'"' not in text and b"\\" not in text:
            return
        for byte in text:
            if self._escaped:
                self._escaped = False
            elif byte == 0x5C:
                self._escaped = self._in_string
            elif byte == 0x22:
                self._in_string = not self._in_string


def _is_structure(text: bytes) -> bool:
    """Whether a token outside a string is no blank and does not go on into a string that it opens."""
    return bool(text.strip()) and text.find(b'"') in (-1, len(text) - 1)


def legal_count(mask: Any) -> int:
    """How many tokens a packed mask allows."""
    import numpy

    return int(numpy.bitwise_count(mask.view(numpy.uint32)).sum(dtype=numpy.int64))
