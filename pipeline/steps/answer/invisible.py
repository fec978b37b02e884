"""Where texts of a value hold characters that nobody sees: those that the normaliser `invisible` would take out."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.records import JsonValue
from pipeline.schema.locales.letters import INVISIBLE
from pipeline.schema.walk import escape


def invisible(text: str) -> str | None:
    """The first invisible character that a text should not hold, as `U+200B`, or None."""
    if text.isascii() and text.isprintable():
        return None
    found = INVISIBLE.search(text)
    return f"U+{ord(found[0][0]):04X}" if found else None


def invisible_places(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(JSON pointer, character) of the texts of a value, and of its keys, that hold one. Pointers are made for these
    only: a long key above many items would cost its square."""
    if isinstance(value, str):
        found = invisible(value)
        if found:
            yield _joined(path), found
    elif isinstance(value, dict):
        for key, child in value.items():
            here = (*path, key)
            found = invisible(key)
            if found:
                yield _joined(here), f"{found} in the key"
            yield from invisible_places(child, here)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from invisible_places(child, (*path, str(index)))


def _joined(path: tuple[str, ...]) -> str:
    return "".join(f"/{escape(step)}" for step in path)
