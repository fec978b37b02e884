"""Letters: characters that nobody sees, kinds of blanks, and digits of all scripts. Nothing here knows a locale."""

from __future__ import annotations

import re
import unicodedata

BLANKS = " \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Blanks inside a line, for use in a character class: space, tab, and those of Unicode's class Zs."""

_BREAKS = "\x0b\x0c\x1c-\x1e\x85\u2028\u2029\r"
_HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e001f\U000e0080-\U000e00ff"
    "\U000e01f0-\U000e0fff"
)
"""Control characters but tab and the line ends, soft hyphen, signs of direction, of width zero, fillers."""
_JOINERS = "\u200c\u200d"
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ua840-\ua87f"
"""Scripts that are written with joiners: Arabic to Thaana, those of India, Myanmar, Khmer, Mongolian."""
_PICTURES = "\u20e3\u2195\u2600-\u2767\u2794-\u27bf\u2b1b\u2b50\U0001f000-\U0001faff"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0020-\U000e007f"

INVISIBLE = re.compile(
    f"[{_HIDDEN}]|\r(?!\n)"
    f"|(?<![{_JOINING}{_PICTURES}])(?<![{_PICTURES}]\ufe0f)[{_JOINERS}]"
    f"|(?<=[{_PICTURES}\ufe0f])(?:\u200c|\u200d(?![{_PICTURES}]))"
    f"|(?<![^\\s{_HIDDEN}{_JOINERS}{_SELECTORS}{_TAGS}])[{_SELECTORS}]"
    f"|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+"
)
"""What nobody sees, but where it belongs: joiners in scripts and pictures that are written with them, a variation
selector after a character, the tags of a flag. Marks of direction are always meant: they change what is seen."""
_BREAK = re.compile(f"[{_BREAKS}]")


def stands_for(invisible: str) -> str:
    """What takes the place of a match of INVISIBLE: a line feed for an odd line break, a blank for U+001F (the unit
    separator), nothing for all else."""
    if _BREAK.fullmatch(invisible):
        return "\n"
    return " " if invisible == "\x1f" else ""


def visible(text: str) -> str:
    """The text without what nobody sees; tabs and line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return INVISIBLE.sub(lambda match: stands_for(match[0]), text)


def collapsed(text: str) -> str:
    """The text with every run of blanks and line breaks as one blank."""
    return re.sub(r"\s+", " ", text)


def ascii_digits(text: str) -> str:
    """The text with the decimal digits of all scripts (Unicode class Nd) as 0 to 9."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(character)) if character.isdecimal() else character for character in text)
