"""Texts of schemas in findings: quoted, cut, control characters made visible."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import islice
from typing import Any

from pipeline.schema.lint.policy import MAX_NAMES_SHOWN, MAX_TEXT_SHOWN


def quoted(value: Any) -> str:
    """A value as JSON in ASCII, cut to a length that fits a table."""
    text = json.dumps(value[: MAX_TEXT_SHOWN * 2] if isinstance(value, str | list) else value)
    return text if len(text) <= MAX_TEXT_SHOWN else text[:MAX_TEXT_SHOWN] + "…"


def printable(text: str) -> str:
    """A text in one line, with ? for what a terminal would act on."""
    return "".join(character if character.isprintable() else "?" for character in text)


def names(values: Collection[Any]) -> str:
    """Some values, quoted; how many more there are is said."""
    shown = ", ".join(quoted(value) for value in islice(values, MAX_NAMES_SHOWN))
    more = len(values) - MAX_NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
