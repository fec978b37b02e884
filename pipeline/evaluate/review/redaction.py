"""Redaction: patterns are hidden in documents and answers before a set keeps them, however a text is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.errors import InputError
from pipeline.observe.events.line import REDACTED, UNSHOWN, redactor

_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


class NotHidden(Exception):
    """A text in which a pattern took too long, or still finds something: it must not be kept."""


class Redaction:
    """Hides what some regular expressions find, as `events.redact` does."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises:
        InputError: one of them is no regular expression.
        """
        import regex  # type: ignore[import-untyped]

        try:
            self._redact = redactor(patterns)
        except regex.error as error:
            raise InputError(f"--redact is no regular expression: {error}.") from error
        self.idle = not patterns

    def text(self, text: str) -> str:
        """A text without what is to be hidden. JSON may stand in it, in answers as in documents: strings with escapes
        are looked at as what they say, too.

        Raises:
            NotHidden: a pattern takes too long on it.
        """
        return self._plain(_LITERAL.sub(lambda found: self._literal(found[0]), text))

    def value(self, value: Any) -> Any:
        """A JSON value whose strings and keys have nothing that is to be hidden."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(child) for name, child in value.items()}
        return [self.value(child) for child in value] if isinstance(value, list) else value

    def check(self, value: Any) -> None:
        """Make sure that a value holds nothing more to be hidden.

        Raises:
            NotHidden: it does, as where hiding one thing made another one whole.
        """
        for text in _strings(value):
            if any(self.text(piece) != piece for piece in text.split(REDACTED)):
                raise NotHidden

    def _plain(self, text: str) -> str:
        made = self._redact(text)
        if made == UNSHOWN:
            raise NotHidden
        return made

    def _literal(self, literal: str) -> str:
        if "\\" not in literal:
            return literal
        closed = len(literal) > 1 and literal.endswith('"')
        whole = literal if closed else _CUT_ESCAPE.sub("", literal) + '"'
        try:
            said = json.loads(whole, strict=False)
        except ValueError:  # no JSON string: it is looked at as it stands
            return literal
        hidden = self._plain(said)
        if hidden == said:
            return literal
        made = json.dumps(hidden)
        return made if closed else made[:-1]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield name
            yield from _strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child)
