"""Spelling: a text in the tokens that a matcher allows, which need not be those of the tokenizer.

Where only one text is possible, llguidance allows only its own way to cut it into tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LONGEST = 64
"""Bytes of a token that are looked for."""


class Speller:
    """Tokens by their bytes."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        """`texts` are the bytes of each token, by id; of tokens that spell alike the first is taken."""
        self.texts = texts
        self._ids: dict[bytes, int] = {}
        for token, text in enumerate(texts):
            self._ids.setdefault(text, token)

    def starts(self, rest: bytes) -> Iterator[int]:
        """The tokens that a text can go on with, long ones first."""
        for size in range(min(len(rest), LONGEST), 0, -1):
            token = self._ids.get(rest[:size])
            if token is not None:
                yield token
