"""Trees as anchored regular expressions for the `pattern` keyword of the two grammar back ends.

llguidance 1.7.6 matches the decoded string and reads Rust's dialect. Measured there: repetitions up to {0,5000} cost
nothing to compile; a long walk through {20000} runs out of the library's own budget; groups nest up to about 100.
Whatever the schema, it lets U+007F through only as an escape.
`guidance_widens` tells where it takes too much.

xgrammar 0.2.8 matches the JSON text between the quotes, so that characters that JSON escapes must be written as
their escapes. It has two engines. One, chosen for patterns of printable ASCII, drops every `"` and `\\`, escapes
included, and fails on counts over 128. The other takes everything; one character outside ASCII, here an `é` that
occurs no times, chooses it. There a free run of a class is cheap (0.01 ms a mask) while a group that is repeated is
walked for every token of the vocabulary (22 ms), so `x*` is written as runs between escapes. A counted group of many
characters costs 20 to 70 ms for every mask up to 128 times (on a loaded machine), and beyond that more with every
token (1.5 s after 18 tokens): it is refused, and the count is left to the validator.
"""

from __future__ import annotations

from pipeline.schema.pattern.ast import (
    NOTHING,
    Alt,
    Chars,
    Node,
    Repeat,
    Unsupported,
    chars,
    complement,
    intersection,
    parts,
)

MAX_EMITTED = 200_000
"""Characters of an emitted expression."""
MAX_GUIDANCE_COUNT = 10_000
"""Of a repetition: llguidance stopped between 5,000 and 20,000 characters of one walk."""
MAX_WIDE_COUNT = 4
"""For xgrammar, of a repetition of groups in which a class has WIDE characters or more: beyond, every mask of every
request takes 10 ms and more, which no cache saves."""
WIDE = 256
MAX_XGRAMMAR_WAYS = 10_000
"""For xgrammar, the product of the counts of nested counted repetitions: it follows all ways to share a text out."""

_CFG_MARK = "é{0}"
_SHORT = {0x22: '"', 0x5C: "\\\\", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t"}
_ESCAPED = chars([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)])
_SPELLED = chars([(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F)])
"""What canonical JSON text escapes: what JSON demands, and U+007F, which llguidance takes in no other way."""
_RAW = complement(_SPELLED)
_NUL = chars([(0, 0)])


def to_guidance(node: Node) -> str:
    """The expression for llguidance.

    Raises:
        Unsupported: nothing matches, or a limit of this module is passed.
    """
    for part in _everything(node):
        if isinstance(part, Repeat) and max(part.minimum, part.maximum or 0) > MAX_GUIDANCE_COUNT:
            raise Unsupported(f"a repetition count is over {MAX_GUIDANCE_COUNT}")
    return _finished("^", node, _Guidance())


def to_xgrammar(node: Node) -> str:
    """The expression for xgrammar, over JSON text: shortest escapes, both cases of their hexadecimal digits.

    Raises:
        Unsupported: nothing matches, or a limit of this module is passed.
    """
    _check_ways(node, 1)
    return _finished(f"^{_CFG_MARK}", node, _Xgrammar())


def guidance_widens(node: Node) -> bool:
    """Whether llguidance lets `"` or `\\` through where the tree does not hold them, so that the validator must look.

    Its fault: a class that has every control character (or every one but the line feed) and lacks one of the two is
    given both. A free run of such a class is emitted in two parts, which escapes that; elsewhere it stays.
    """
    if isinstance(node, Repeat) and _split_helps(node):
        return False
    return _leaks(node) or any(map(guidance_widens, parts(node)))


def _split_helps(node: Repeat) -> bool:
    return _leaks(node.item) and node.maximum is None and node.minimum <= 1


def _leaks(node: Node) -> bool:
    if not isinstance(node, Chars):
        return False
    missing = intersection(complement(node), _ESCAPED)
    controls = intersection(missing, chars([(0, 0x1F)]))
    return missing != controls and controls in (NOTHING, chars([(10, 10)]))


def _finished(start: str, node: Node, writer: _Guidance) -> str:
    if node == NOTHING:
        raise Unsupported("no string matches")
    text = f"{start}(?:{writer.text(node)})$"
    if len(text) > MAX_EMITTED:
        raise Unsupported(f"its expression would have {len(text)} characters; at most {MAX_EMITTED} are sent")
    return text


class _Guidance:
    """The common ground of both dialects. Everything but ASCII letters and digits is written `\\u{…}`."""

    def text(self, node: Node) -> str:
        if isinstance(node, Chars):
            return self.one(node)
        if isinstance(node, Repeat):
            return self.repeated(node)
        if isinstance(node, Alt):
            return f"(?:{'|'.join(map(self.text, node.options))})"
        return "".join(map(self.text, node.items))

    def one(self, node: Chars) -> str:
        return _class(node)

    def repeated(self, node: Repeat) -> str:
        if isinstance(node.item, Chars) and _split_helps(node):
            rest, nul = _class(intersection(node.item, complement(_NUL))), _class(_NUL)
            start = f"(?:{rest}+|{nul}{rest}*)" if node.minimum else f"{rest}*"
            return f"{start}(?:{nul}{rest}*)*"
        return self.counted(node)

    def counted(self, node: Repeat) -> str:
        text = self.text(node.item)
        return (text if isinstance(node.item, Chars | Alt) else f"(?:{text})") + _counts(node)


class _Xgrammar(_Guidance):
    def one(self, node: Chars) -> str:
        raw, escapes = intersection(node, _RAW), _escapes(node)
        if not escapes:
            return _class(raw)
        # Always one group: an escape is several characters of JSON text, and a count may follow.
        return f"(?:{'|'.join([_class(raw), *escapes] if raw != NOTHING else escapes)})"

    def repeated(self, node: Repeat) -> str:
        item = node.item
        if isinstance(item, Chars):
            raw, escapes = intersection(item, _RAW), _escapes(item)
            if not escapes:
                return f"{_class(raw)}{_counts(node)}"
            if node.maximum is None and raw != NOTHING:
                return self._run(node.minimum, item, _class(raw), escapes)
        return self.counted(node)

    def _run(self, minimum: int, item: Chars, raw: str, escapes: list[str]) -> str:
        """A free run as runs between escapes, from its first character on: a group at the start costs 16 ms there."""
        escaped = "|".join(f"{escape}{raw}*" for escape in escapes)
        start = f"(?:{raw}+|{escaped})" if minimum else f"{raw}*"
        least = f"{self.one(item)}{{{minimum - 1}}}" if minimum > 1 else ""
        return f"{least}{start}(?:{escaped})*"


def _class(node: Chars) -> str:
    first, last = node.ranges[0]
    if len(node.ranges) == 1 and first == last:
        return _point(first)
    # xgrammar would take a circumflex at the front for a negation, however it is escaped.
    ranges = list(node.ranges)
    if first == _CIRCUMFLEX:
        ranges = [*([(first + 1, last)] if last > first else []), *ranges[1:], (first, first)]
    return f"[{''.join(_point(low) + (f'-{_point(high)}' if high > low else '') for low, high in ranges)}]"


_CIRCUMFLEX = 0x5E


def _point(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\u{{{code:x}}}"


def _counts(node: Repeat) -> str:
    if node.maximum is None:
        return {0: "*", 1: "+"}.get(node.minimum, f"{{{node.minimum},}}")
    if (node.minimum, node.maximum) == (0, 1):
        return "?"
    return f"{{{node.minimum}}}" if node.minimum == node.maximum else f"{{{node.minimum},{node.maximum}}}"


def _escapes(node: Chars) -> list[str]:
    """JSON's escapes of the characters that need one, as expressions over JSON text."""
    points = [point for low, high in intersection(node, _SPELLED).ranges for point in range(low, high + 1)]
    options = []
    short = [_SHORT[point] for point in points if point in _SHORT]
    if short:
        options.append(rf"\\[{''.join(short)}]" if len(short) > 1 else rf"\\{short[0]}")
    for high in (0, 1, 7):
        digits = [f"{point & 15:x}" for point in points if point not in _SHORT and point >> 4 == high]
        both = "".join(digit + digit.upper() if digit.isalpha() else digit for digit in digits)
        if both:
            options.append(rf"\\u00{high}{both if len(both) == 1 else f'[{both}]'}")
    return options


def _everything(node: Node) -> list[Node]:
    found = [node]
    for here in found:  # it grows
        found.extend(parts(here))
    return found


def _check_ways(node: Node, ways: int) -> None:
    """Refuse what xgrammar takes seconds for."""
    if isinstance(node, Repeat):
        count = max(node.minimum, node.maximum or 1)
        plain = isinstance(node.item, Chars) and not _escapes(node.item)
        if count > MAX_WIDE_COUNT and not plain and any(map(_wide, _everything(node.item))):
            raise Unsupported(f"over {MAX_WIDE_COUNT} repetitions of a group of many characters")
        outside = ways
        if node.minimum != node.maximum:
            ways *= count
        if ways > MAX_XGRAMMAR_WAYS and (outside > 1 or not plain):
            raise Unsupported(f"nested repetitions with over {MAX_XGRAMMAR_WAYS} ways to count")
    for part in parts(node):
        _check_ways(part, ways)


def _wide(node: Node) -> bool:
    return isinstance(node, Chars) and sum(high - low + 1 for low, high in node.ranges) >= WIDE
