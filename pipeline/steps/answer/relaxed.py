"""Relaxed JSON: text that breaks JSON's form in a known way becomes strict text, in one pass, with each change named.

Known are trailing and missing commas, missing closers, single, typographic and full-width quotes and punctuation,
unquoted keys, Python's True, False and None, comments, and raw control characters in strings. Whatever else it meets
makes it give up: it never looks inside a string for what may be meant.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from pipeline.steps.answer.scan import STRING
from pipeline.steps.answer.strict import CANONICAL_NUMBER

PUNCTUATION = dict(zip("｛｝［］：，、", "{}[]:,,", strict=True))
"""Full-width punctuation as JSON's."""
MAX_CHARACTERS = 1 << 17
"""About half a second for the densest text."""
LITERALS = {"True": "true", "False": "false", "None": "null"}
_BLANK = re.compile(
    r"(?:[ \t\r\n]++|(?P<odd>[^\S \t\r\n]|[\ufeff\u200b\u2060])|(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/))+", re.DOTALL
)
_PLAIN = re.compile(STRING, re.DOTALL)
_ENDS = r"(?=\s*(?:[,:}\]，：｝］、]|\Z))"
_QUOTED = {
    "'": re.compile(rf"'((?:[^'\\]++|\\.|'(?!\s*(?:[,:}}\]，：｝］、]|\Z)))*+)'{_ENDS}", re.DOTALL),
    "“": re.compile(
        rf"[“”„＂]((?:[^“”\"＂\\]++|\\.|[“”\"＂](?!\s*(?:[,:}}\]，：｝］、]|\Z)))*+)[“”\"＂]{_ENDS}", re.DOTALL
    ),
}
_OPENS = {"'": "'", "“": "“", "”": "“", "„": "“", "＂": "“"}
_KEY = re.compile(r"[^\W\d][\w$-]*")
_WORD = re.compile(r"[^\s{}\[\]:,\"'“”＂｛｝［］：，、/#]+")
_TO_ESCAPE = re.compile(r'[\x00-\x1f]|\\.|"', re.DOTALL)
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_KNOWN_ESCAPES = frozenset('"\\/bfnrtu')


@dataclass(frozen=True, slots=True)
class Relaxed:
    """`text` is strict as far as its punctuation goes; `changes` counts what was done to get there, by kind; `as_is`
    says of each scalar, in order, whether it stood so in the text."""

    text: str
    changes: dict[str, int]
    as_is: tuple[bool, ...]
    ends_with_number: bool


class _GivenUp(Exception):
    pass


def relax(text: str) -> Relaxed | None:
    """The strict form of the one object or array that a text is, or None."""
    if len(text) > MAX_CHARACTERS:
        return None
    writer = _Writer(text)
    try:
        while writer.step():
            pass
        return writer.finish()
    except _GivenUp:
        return None


@dataclass(slots=True)
class _Writer:
    """Reads tokens and writes strict ones. `expects`: value, key, colon, or next (a comma or a closer)."""

    text: str
    position: int = 0
    expects: str = "value"
    comma: bool = False
    stack: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    as_is: list[bool] = field(default_factory=list)

    def step(self) -> bool:
        """Read one token; False at the end of the text."""
        self._skip_blanks()
        if self.position >= len(self.text):
            return False
        if self.written and not self.stack:
            raise _GivenUp
        raw = self.text[self.position]
        mark = PUNCTUATION.get(raw, raw)
        if mark in "{}[]:,":
            self.changes["punctuation_changed"] += mark != raw
            self.position += 1
            self._mark(mark)
        else:
            self._scalar(raw)
        return True

    def finish(self) -> Relaxed:
        if self.stack and self.expects != "next":  # after a comma, a colon, a key or an opener, more was to come
            raise _GivenUp
        number = bool(CANONICAL_NUMBER.fullmatch(self.written[-1])) if self.written else False
        closers = [_closer(opener) for opener in reversed(self.stack)]
        self.changes["closed"] += len(closers)
        return Relaxed("".join([*self.written, *closers]), dict(+self.changes), tuple(self.as_is), number)

    def _skip_blanks(self) -> None:
        blank = _BLANK.match(self.text, self.position)
        if blank:
            self.changes["comment_removed"] += blank["comment"] is not None
            self.changes["blank_removed"] += blank["odd"] is not None
            self.position = blank.end()

    def _mark(self, mark: str) -> None:
        if mark in "[{":
            self._before_value(is_container=True)
            self.written.append(mark)
            self.stack.append(mark)
            self.expects = "key" if mark == "{" else "value"
        elif mark in "]}":
            self._close(mark)
        elif mark == ":" and self.expects == "colon":
            self.written.append(mark)
            self.expects = "value"
        elif mark == "," and self.expects == "next":
            self.comma = True
            self.expects = "key" if self.stack[-1] == "{" else "value"
        else:
            raise _GivenUp

    def _close(self, mark: str) -> None:
        empty = bool(self.written) and self.written[-1] in "[{" and not self.comma
        if not (self.expects == "next" or self.comma or empty):
            raise _GivenUp
        self.changes["comma_removed"] += self.comma
        self.comma = False
        if mark not in map(_closer, self.stack):
            raise _GivenUp
        while _closer(self.stack[-1]) != mark:
            self.written.append(_closer(self.stack.pop()))
            self.changes["closer_added"] += 1
        self.written.append(mark)
        self.stack.pop()
        self.expects = "next"

    def _scalar(self, raw: str) -> None:
        if self.expects == "next" and self.stack and self.stack[-1] == "{":
            self.changes["comma_added"] += 1  # a value, then a key: seen to be one by the colon that has to follow
            self.comma, self.expects = True, "key"
        elif self.expects == "next" or not self.stack:
            raise _GivenUp
        is_key = self.expects == "key"
        if not is_key:
            self._before_value()
        start = self.position
        token = self._string(raw) if raw == '"' or raw in _OPENS else self._word(is_key)
        if is_key:
            self._before_value()
        else:
            self.as_is.append(token == self.text[start : self.position])
        self.written.append(token)
        self.expects = "colon" if is_key else "next"

    def _before_value(self, *, is_container: bool = False) -> None:
        """The comma that was read before a value or key, or, between two containers in a list, was not."""
        if self.expects == "next":
            if not (is_container and self.stack and self.stack[-1] == "[" and self.written[-1] in "]}"):
                raise _GivenUp
            self.comma = True
            self.changes["comma_added"] += 1
        elif self.expects == "colon" or (self.expects == "key" and is_container):
            raise _GivenUp
        if self.comma:
            self.written.append(",")
        self.comma = False

    def _string(self, raw: str) -> str:
        pattern = _PLAIN if raw == '"' else _QUOTED[_OPENS[raw]]
        match = pattern.match(self.text, self.position)
        if match is None or (raw == '"' and (len(match[0]) < 2 or not _is_closed(match[0]))):
            raise _GivenUp
        self.position = match.end()
        content = match[0][1:-1] if raw == '"' else match[1]
        self.changes["quotes_changed"] += raw != '"'
        return f'"{_TO_ESCAPE.sub(self._escaped, content)}"'

    def _escaped(self, match: re.Match[str]) -> str:
        found = match[0]
        if found == '"':  # of a string in other quotes
            return '\\"'
        if found[0] != "\\":
            self.changes["control_escaped"] += 1
            return _SHORT.get(found, f"\\u{ord(found):04x}")
        if found[1] in _KNOWN_ESCAPES:
            return found
        if found[1] != "'":
            raise _GivenUp
        self.changes["escape_changed"] += 1
        return "'"

    def _word(self, is_key: bool) -> str:
        match = (_KEY if is_key else _WORD).match(self.text, self.position)
        if match is None or self.text[match.end() : match.end() + 1] in ("/", "#"):  # 1//2 is no 1 with a comment
            raise _GivenUp
        self.position = match.end()
        word = match[0]
        if is_key:
            self.changes["quotes_added"] += 1
            return f'"{word}"'
        if word in LITERALS:
            self.changes["literal_changed"] += 1
            return LITERALS[word]
        if word in LITERALS.values() or CANONICAL_NUMBER.fullmatch(word):
            return word
        raise _GivenUp


def _closer(opener: str) -> str:
    return "}" if opener == "{" else "]"


def _is_closed(string: str) -> bool:
    """Whether a string token ends with its quote, and not with the text."""
    body = string[1:-1]
    return string[-1] == '"' and (len(body) - len(body.rstrip("\\"))) % 2 == 0
