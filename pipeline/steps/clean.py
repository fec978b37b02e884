"""Clean: what the job declares under `clean` is done to a document's text; an offset map leads back to the raw text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text and, for each of its code points and its end, the offset in the raw text; none if nothing changed."""

    text: str
    offsets: Sequence[int] = ()
    changes: int = 0

    def raw_offset(self, offset: int) -> int:
        """The offset in the raw text of an offset in this one."""
        return self.offsets[offset] if self.offsets else offset


def clean(text: str, kinds: Sequence[str]) -> Cleaned:
    """The text as the model shall see it."""
    return Cleaned(text)
