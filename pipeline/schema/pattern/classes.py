"""The named character classes of ECMA 262, as ranges."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import regex  # type: ignore[import-untyped]

from pipeline.schema.pattern.ast import LAST, Chars, Unsupported, chars, complement

DIGIT = chars([(0x30, 0x39)])
WORD = chars([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_BLANKS = [(9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
SPACE = chars([*_BLANKS, (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)])
DOT = complement(chars([(10, 10), (13, 13), (0x2028, 0x2029)]))
CLASSES = {
    "d": DIGIT,
    "D": complement(DIGIT),
    "w": WORD,
    "W": complement(WORD),
    "s": SPACE,
    "S": complement(SPACE),
}

_CATEGORIES = (
    "C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs "
    "Letter Cased_Letter Lowercase_Letter Uppercase_Letter Titlecase_Letter Modifier_Letter Other_Letter Mark "
    "Nonspacing_Mark Spacing_Mark Enclosing_Mark Number Decimal_Number Letter_Number Other_Number Punctuation "
    "Connector_Punctuation Dash_Punctuation Open_Punctuation Close_Punctuation Initial_Punctuation Final_Punctuation "
    "Other_Punctuation Symbol Math_Symbol Currency_Symbol Modifier_Symbol Other_Symbol Separator Space_Separator "
    "Line_Separator Paragraph_Separator Other Control Format Surrogate Private_Use Unassigned"
)
_BINARY = (
    "ASCII Alphabetic Any Assigned Emoji Emoji_Presentation ID_Continue ID_Start Ideographic Lowercase Uppercase "
    "White_Space"
)
_NAMES = frozenset(f"{_CATEGORIES} {_BINARY}".split())
_SCRIPT = ("Script", "sc", "Script_Extensions", "scx")
_GENERAL = ("General_Category", "gc")
_MAX_NAME = 64


@lru_cache(maxsize=128)
def property_class(name: str) -> Chars:
    """The characters of `\\p{name}`: general categories, scripts (`Script=Greek`), and the common binary properties.

    They are those of the Unicode version of the `regex` package (a scan of all characters, 5 ms, kept).

    Raises:
        Unsupported: none of these.
    """
    key, _, value = name.rpartition("=")
    known = value in _NAMES if not key else key in _SCRIPT or key in _GENERAL
    if known and len(name) <= _MAX_NAME and value.replace("_", "").isalnum() and value.isascii():
        with suppress(regex.error):  # an unknown value of a known key, of which the next line speaks
            found = regex.finditer(rf"\p{{{name}}}+", _everything())
            return chars((ord(match[0][0]), ord(match[0][-1])) for match in found)
    raise Unsupported(f"the property \\p{{{name[:_MAX_NAME]}}} is not one of the known categories and scripts")


@lru_cache(maxsize=1)
def _everything() -> str:
    return "".join(map(chr, [*range(0xD800), *range(0xE000, LAST + 1)]))
