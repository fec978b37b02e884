"""One event as a line of JSON: redacted, then cut, in ASCII: nothing in it acts on a terminal or ends a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pipeline.observe.events.catalogue import TEXT_MEMBERS

Hook = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""Called with each event before it is written; what it returns is written instead, None: nothing. It is called in a
thread of its own, in each process of a run, so it must be one that `cloudpickle` can send there."""

REDACTED = "[redacted]"
UNSHOWN = "[not shown: a pattern took too long]"
PATTERN_SECONDS = 0.25
"""For one pattern on one string: patterns may be such that a text makes them take for ever."""

MAX_STRING = 300
MAX_TEXT = 4000
MAX_ITEMS = 20
_OURS = frozenset({"time", "event", "level", "run"})
"""By these a line is found: no pattern is tried on them."""


def as_line(event: Mapping[str, Any], redact: Callable[[str], str]) -> bytes:
    """The line, with its end.

    Raises:
        ValueError, TypeError, RecursionError: a hook made something that is no JSON of it.
    """
    shown = {str(name): value if name in _OURS else _shown(value, redact, _most(name)) for name, value in event.items()}
    text = json.dumps(shown, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode("ascii") + b"\n"


def redactor(patterns: Iterable[str]) -> Callable[[str], str]:
    """Replaces whatever one of some regular expressions finds in a text. A text on which one takes too long is not
    shown at all."""
    import regex  # type: ignore[import-untyped]

    compiled = [regex.compile(pattern) for pattern in patterns]

    def redact(text: str) -> str:
        for pattern in compiled:
            try:
                text = pattern.sub(lambda _found: REDACTED, text, timeout=PATTERN_SECONDS)
            except TimeoutError:
                return UNSHOWN
        return text

    return redact


def _most(name: object) -> int:
    return MAX_TEXT if name in TEXT_MEMBERS or name == "reason" else MAX_STRING


def _shown(value: Any, redact: Callable[[str], str], most: int) -> Any:
    """Redacted before it is cut: half a secret is one that no pattern finds."""
    if isinstance(value, str):
        text = redact(value)
        return text if len(text) <= most else text[: most - 1] + "…"
    if isinstance(value, Mapping):
        return {_shown(str(name), redact, most): _shown(one, redact, most) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(one, redact, most) for one in value[:MAX_ITEMS]]
    return value
