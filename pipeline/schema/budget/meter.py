"""Meter: the tokenizer's count, remembered, within an allowance. A tokenizer may be slow and a schema large."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipeline.schema.budget.policy import END_TOKENS

Count = Callable[[str], int]
"""Tokens of a text, without special tokens."""


class Meter:
    """Counts distinct texts until an allowance of calls or characters is used up."""

    def __init__(self, count: Count, calls: int, characters: int) -> None:
        self._count = count
        self._calls, self._characters = calls, characters
        self._known: dict[str, int] = {}

    def tokens(self, text: str) -> int | None:
        """Tokens of a text; None where the allowance does not reach."""
        if text not in self._known:
            if self._calls < 1 or self._characters < len(text):
                return None
            self._calls -= 1
            self._characters -= len(text)
            self._known[text] = self._count(text)
        return self._known[text]

    def fewest(self, texts: Iterable[str]) -> str | None:
        """The text of fewest tokens among those that could be counted, the shortest of equals; None if none could."""
        counted = [(tokens, len(text), text) for text in texts if (tokens := self.tokens(text)) is not None]
        return min(counted)[2] if counted else None


def answer_tokens(count: Count, text: str) -> int:
    """Tokens of an answer with this text: the end token is one of them."""
    return count(text) + END_TOKENS
