"""Cron expressions as Kubernetes' and KubeRay's parser takes them: five fields, or one word."""

from __future__ import annotations

import re

WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day", 1, 31, []),
    ("month", 1, 12, _MONTHS),
)
_PART = re.compile(r"(?P<first>\*|\?|\w+)(-(?P<last>\w+))?(/(?P<step>[0-9]+))?")


def check_cron(cron: str) -> None:
    """Raises ValueError, saying which field is wrong, if no scheduler would take it."""
    if cron in WORDS:
        return
    parts = cron.split()
    if len(parts) != 5 or "TZ" in cron:
        raise ValueError(f"five fields (minute hour day month weekday), or one of {', '.join(WORDS)}")
    for text, (name, low, high, words) in zip(parts, (*_FIELDS, ("weekday", 0, 6, _DAYS)), strict=True):
        for one in text.split(","):
            if not _is_part(one, low, high, words):
                raise ValueError(f"{name} {text!r}: numbers from {low} to {high}, such as 1, 1-5, */2 or 1,3")


def _is_part(text: str, low: int, high: int, words: list[str]) -> bool:
    found = _PART.fullmatch(text)
    if found is None or (found["step"] and not 0 < int(found["step"]) <= high):
        return False
    if found["first"] in ("*", "?"):
        return found["last"] is None
    first = _number(found["first"], low, words)
    last = first if found["last"] is None else _number(found["last"], low, words)
    return first is not None and last is not None and low <= first <= last <= high


def _number(text: str, low: int, words: list[str]) -> int | None:
    if text.lower() in words:
        return low + words.index(text.lower())
    return int(text) if text.isascii() and text.isdigit() else None
