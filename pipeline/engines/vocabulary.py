"""The vocabulary of a model, as the grammar libraries want it."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class Vocabulary:
    """A tokenizer in the form that each library wants. Building one takes 0.1-0.4 s; it starts no thread.

    So a process that only holds a vocabulary may fork; a grammar that has compiled (xgrammar uses threads) may not.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        """`size` is the model's vocabulary (rows of its output layer), which may exceed the tokenizer's."""
        self.tokenizer = tokenizer
        self.size = size

    @cached_property
    def xgrammar(self) -> Any:
        """xgrammar's TokenizerInfo."""
        import xgrammar

        return xgrammar.TokenizerInfo.from_huggingface(self.tokenizer, vocab_size=self.size)

    @cached_property
    def guidance(self) -> Any:
        """llguidance's LLTokenizer."""
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self.tokenizer, max(self.size, len(self.tokenizer)))
