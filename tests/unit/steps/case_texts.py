"""Texts as the laws of failure cases see them: strict JSON, written on its own, and what a reader would see."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from untold import leaves


def strict(text: str) -> Any:
    """The value of strict JSON, written here on its own: None for what is not."""

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            raise ValueError(number)
        return value

    def constant(name: str) -> None:
        raise ValueError(name)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_float=finite, parse_constant=constant)
    except (ValueError, RecursionError):
        return None


def count(value: Any) -> int:
    return sum(1 for _ in leaves(value))


def visible(text: str) -> bool:
    return bool(re.sub(r"[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\x00-\x1f\x7f]", "", text))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
