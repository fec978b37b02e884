"""The syntax tree of CEL, and the tokens it is read from (cel-spec, langdef.md, section Syntax)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias


class CelSyntaxError(ValueError):
    """A rule that is not CEL, or asks for what is not offered; the text says what and where."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it stands in a rule."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`base.field`, or `base.?field` where `optional`."""

    base: Node
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`base[key]`, or `base[?key]` where `optional`."""

    base: Node
    key: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`target.function(args)`; `function(args)` without a target. Operators are functions such as `+` and `!`."""

    function: str
    target: Node | None
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[…]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """`{…}`."""

    pairs: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Macro:
    """`target.kind(variable, …)`, evaluated once per item of the target."""

    kind: str
    target: Node
    variable: str
    bodies: tuple[Node, ...]


Node: TypeAlias = Literal | Name | Select | Index | Call | ListOf | MapOf | Macro


def parts_of(node: Node) -> list[Node]:
    """The direct parts of a node."""
    if isinstance(node, Select):
        return [node.base]
    if isinstance(node, Index):
        return [node.base, node.key]
    if isinstance(node, Call):
        return [*([] if node.target is None else [node.target]), *node.args]
    if isinstance(node, ListOf):
        return list(node.items)
    if isinstance(node, MapOf):
        return [part for pair in node.pairs for part in pair]
    return [node.target, *node.bodies] if isinstance(node, Macro) else []


_RESERVED = "as break const continue else for function if import let loop package namespace return var void while"
RESERVED = frozenset(_RESERVED.split())


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, string, name, quoted (a field between back-ticks), operator or end; `value` what it stands
    for; `at` counts characters from 0."""

    kind: str
    value: Any
    at: int


_BODIES = "\"\"\"(?:\\\\.|(?!\"\"\")[^\\\\])*\"\"\"|'''(?:\\\\.|(?!''')[^\\\\])*'''"
_BODIES += r'|"(?:\\.|[^"\\\r\n])*"' + r"|'(?:\\.|[^'\\\r\n])*'"
_RAW = "\"\"\".*?\"\"\"|'''.*?'''" + r'|"[^"\r\n]*"' + r"|'[^'\r\n]*'"
_TOKENS = re.compile(
    rf"""(?P<blank>(?:[\t\n\f\r\ ]|//[^\n]*)+)
    |(?P<string>(?P<raw>[rR](?:{_RAW}))|[bB][rR]?["'].*|{_BODIES})
    |(?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<whole>(?:0[xX][0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |`(?P<quoted>[A-Za-z0-9_.\-/\ ]+)`
    |(?P<operator>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{{}}])""",
    re.VERBOSE | re.DOTALL,
)
_MAX_DIGITS = 400
_CODES = "[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})"
_ESCAPE = re.compile(rf"\\(?:([abfnrtv\\'\"`?])|{_CODES}|(.?))", re.DOTALL)
_SIMPLE = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a rule, an `end` last.

    Raises:
        CelSyntaxError: some character begins none.
    """
    position = 0
    while position < len(text):
        found = _TOKENS.match(text, position)
        if found is None and text[position] in "\"'":
            raise CelSyntaxError(f"character {position + 1}: a string begins here and does not end")
        if found is None:
            raise CelSyntaxError(f"character {position + 1}: {text[position]!r} begins nothing that CEL knows")
        if found.lastgroup != "blank":
            yield _token(found, position)
        position = found.end()
    yield Token("end", "", position)


def _token(found: re.Match[str], at: int) -> Token:
    text = found.group()
    if found["string"] is not None:
        if text[0] in "bB":
            raise CelSyntaxError(f"character {at + 1}: bytes are not offered, since JSON has none")
        return Token("string", _body(text[1:]) if found["raw"] is not None else _unescaped(_body(text), at), at)
    if found["double"] is not None:
        digits, _, exponent = text.lower().partition("e")
        if len(digits) > _MAX_DIGITS or abs(int(exponent or 0)) > _MAX_DIGITS:
            raise CelSyntaxError(f"character {at + 1}: a number of over {_MAX_DIGITS} digits")
        return Token("number", Fraction(text), at)
    if found["whole"] is not None:
        if len(text) > _MAX_DIGITS:
            raise CelSyntaxError(f"character {at + 1}: a number of over {_MAX_DIGITS} digits")
        digits = text.rstrip("uU")
        return Token("number", int(digits, 16 if digits[:2] in ("0x", "0X") else 10), at)
    if found["quoted"] is not None:
        return Token("quoted", found["quoted"], at)
    return Token("name" if found["name"] is not None else "operator", text, at)


def _body(quoted: str) -> str:
    return quoted[3:-3] if quoted[:3] in ('"""', "'''") else quoted[1:-1]


def _unescaped(text: str, at: int) -> str:
    def plain(found: re.Match[str]) -> str:
        simple, *codes, octal, other = found.groups()
        if simple is not None:
            return _SIMPLE.get(simple, simple)
        code = int(octal, 8) if octal else int(next((hexadecimal for hexadecimal in codes if hexadecimal), "-1"), 16)
        if code < 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise CelSyntaxError(f"character {at + 1}: \\{other or ''} is no escape; write r'…' for a raw string")
        return chr(code)

    return _ESCAPE.sub(plain, text)
