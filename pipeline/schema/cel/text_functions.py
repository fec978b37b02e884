"""Functions of CEL on strings, and `join` and `indexOf` of lists: standard definitions and the strings extension."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pipeline.schema.cel.arguments import Function, list_in, text_in, whole_in
from pipeline.schema.cel.values import CelError, Meter, TooCostly, equal
from pipeline.schema.validator import PatternError, compile_pattern

MAX_PATTERN = 1000
"""Characters of a pattern of `matches`."""


def _contains(meter: Meter, text: Any, part: Any) -> bool:
    meter.spend(len(text_in(text)) >> 6)
    return text_in(part) in text


def _matches(meter: Meter, text: Any, pattern: Any) -> bool:
    if len(text_in(pattern)) > MAX_PATTERN:
        raise CelError(f"a pattern has at most {MAX_PATTERN} characters")
    meter.spend(len(text_in(text)) >> 3)
    started = time.monotonic()
    try:
        found = compile_pattern(pattern).finder.finds(text, max(meter.seconds, 0.001))
    except TimeoutError as error:
        raise TooCostly("its patterns take too long") from error
    except (PatternError, OverflowError, RecursionError) as error:
        raise CelError(f"a pattern that cannot be compiled: {error}") from error
    meter.searched(started)
    return found


def _split(meter: Meter, text: Any, separator: Any, most: Any = -1) -> list[str]:
    meter.spend((len(text_in(text)) >> 4) + 1)
    limit = whole_in(most)
    if limit == 0:
        return []
    pieces = list(text) if text_in(separator) == "" else text.split(separator, limit - 1 if limit > 0 else -1)
    meter.spend(len(pieces))
    return pieces


def _replace(meter: Meter, text: Any, old: Any, new: Any, most: Any = -1) -> str:
    limit = whole_in(most)
    times = text_in(text).count(text_in(old))
    meter.spend((len(text) + times * len(text_in(new))) >> 4)
    return str(text.replace(old, new, limit))


def _substring(meter: Meter, text: Any, start: Any, end: Any = None) -> str:
    low, high = whole_in(start), len(text_in(text)) if end is None else whole_in(end)
    if not 0 <= low <= high <= len(text):
        raise CelError("a substring outside its string")
    meter.spend((high - low) >> 4)
    return str(text[low:high])


def _position(last: bool) -> Callable[..., int]:
    def position(meter: Meter, where: Any, what: Any) -> int:
        if isinstance(where, str):
            meter.spend(len(where) >> 6)
            return where.rfind(text_in(what)) if last else where.find(text_in(what))
        numbered = list(enumerate(list_in(where)))
        meter.spend(len(numbered))
        return next((n for n, item in (reversed(numbered) if last else numbered) if equal(item, what, meter)), -1)

    return position


def _join(meter: Meter, items: Any, separator: Any = "") -> str:
    texts = [text_in(item) for item in list_in(items)]
    meter.spend((sum(map(len, texts)) + len(texts) * (len(text_in(separator)) + 16)) >> 4)
    return str(separator.join(texts))


def _on_text(change: Callable[[str], Any]) -> Callable[[Meter, Any], Any]:
    def changed(meter: Meter, text: Any) -> Any:
        meter.spend(len(text_in(text)) >> 4)
        return change(text)

    return changed


_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
_ASCII_UPPER = {code + 32: code for code in _ASCII_LOWER}

TEXT_FUNCTIONS: dict[str, Function] = {
    "contains": Function(_contains, "member", 2, 2),
    "startsWith": Function(lambda _, text, part: text_in(text).startswith(text_in(part)), "member", 2, 2),
    "endsWith": Function(lambda _, text, part: text_in(text).endswith(text_in(part)), "member", 2, 2),
    "matches": Function(_matches, "both", 2, 2),
    "lowerAscii": Function(_on_text(lambda text: text.translate(_ASCII_LOWER)), "member", 1, 1),
    "upperAscii": Function(_on_text(lambda text: text.translate(_ASCII_UPPER)), "member", 1, 1),
    "trim": Function(_on_text(str.strip), "member", 1, 1),
    "split": Function(_split, "member", 2, 3),
    "replace": Function(_replace, "member", 3, 4),
    "substring": Function(_substring, "member", 2, 3),
    "indexOf": Function(_position(last=False), "member", 2, 2),
    "lastIndexOf": Function(_position(last=True), "member", 2, 2),
    "join": Function(_join, "member", 1, 2),
}
"""Name → function."""
