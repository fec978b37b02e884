"""Text that came from outside (documents, model output, ids, paths), made safe to show on a terminal.

An escape sequence could repaint the screen or write to the clipboard, and square brackets would be markup.
"""

from __future__ import annotations

import re

from rich.console import Console
from rich.text import Text

MAX_ID = 80
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls but for tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: they show text in another order
    "\u2028\u2029\ud800-\udfff]"  # line separators, and halves of surrogate pairs, which no stream takes
)


def visible(text: str) -> str:
    r"""The text with controls as \xNN and \uNNNN; only newlines and tabs act."""
    return _UNSHOWN.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""JSON text of the same value, with what is not to act on a screen as \uNNNN. In JSON such characters stand in
    strings only."""
    return _UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible_id(document_id: str) -> str:
    """An id as messages show it: on one line, and cut."""
    cut = document_id if len(document_id) <= MAX_ID else document_id[: MAX_ID - 1] + "…"
    return visible(cut).replace("\n", "\\x0a").replace("\t", "\\x09")


def cell(text: str, style: str = "") -> Text:
    """Text for a table's cell or a title: nothing in it is markup."""
    return Text(visible(text), style)


def console_on(*, stderr: bool = False) -> Console:
    """A console that prints what it is given: no markup, no emoji codes, no highlighting."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
