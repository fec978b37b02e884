"""The words of a property name, and spellings under which easily confused names meet."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_DOUBLES = str.maketrans({"0": "O", "1": "l", "I": "l", "|": "l"})
_GAP = re.compile(r"(?<!\d)[\s_\-]+|[\s_\-]+(?!\d)|^[\s_\-]+|[\s_\-]+$")
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK")
_MAX_READ = 200


def words(name: str) -> list[str]:
    """Lower-case words of snake_case, kebab-case, camelCase or plain text; digits are words of their own."""
    return [word.lower() for word in _WORD.findall(name[:_MAX_READ])]


def folded(text: str) -> str:
    """One spelling for texts that differ by case, by blanks, _ and - (not between digits), or by compatible letters."""
    if not re.search(r"\w", text):
        return text  # operators: - is not part of the spelling there
    return _GAP.sub("", unicodedata.normalize("NFKC", text)).casefold()


def singular(text: str) -> str:
    """`folded` without a plural's s: one letter is kept, ss (address) is no plural."""
    flat = folded(text)
    if flat.endswith("ies") and len(flat) > 5:
        return flat[:-3] + "y"
    return flat[:-1] if len(flat) > 3 and flat.endswith("s") and not flat.endswith(("ss", "us", "is")) else flat


def doubled(text: str) -> str:
    """The text with digits and letters that look alike made equal: 0 and O, 1, l and I."""
    return text.translate(_DOUBLES) if len(text) > 2 and re.search(r"[a-zA-Z]{2}", text) else text


def one_letter_less(text: str) -> Iterator[str]:
    """The text, and it without each of its characters marked: two texts one edit apart share one of these.

    The method of symmetric deletion (W. Garbe, SymSpell, 2012), for distance 1.
    """
    yield text
    yield from (text[:i] + text[i + 1 :] for i in range(len(text)))


def one_edit_apart(a: str, b: str) -> bool:
    """Whether one insertion, deletion or substitution, or one swap of neighbours, turns one text into the other."""
    if len(a) > len(b):
        a, b = b, a
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    if len(a) == len(b):
        return a[head + 1 :] == b[head + 1 :] or (
            a[head : head + 2] == b[head : head + 2][::-1] and a[head + 2 :] == b[head + 2 :]
        )
    return len(b) == len(a) + 1 and a[head:] == b[head + 1 :]


def disguise(text: str) -> str:
    """What is odd about the characters of a text: "" or a phrase."""
    if text.isascii():
        return ""
    for character in text:
        if unicodedata.category(character) in ("Cf", "Zs", "Zl", "Zp", "Co", "Cn") and character != " ":
            return f"U+{ord(character):04X}, which cannot be seen or looks like a blank"
    for word in re.findall(r"[^\W\d_]+", text):
        scripts = {unicodedata.name(c, "").split(" ")[0] for c in word} & set(_SCRIPTS)
        if len(scripts) > 1:
            return f"letters of {' and '.join(sorted(s.title() for s in scripts))} in one word"
    for character in text:
        if "FULLWIDTH" in unicodedata.name(character, "") or unicodedata.decomposition(character).startswith("<font>"):
            return f"U+{ord(character):04X}, a double of an ASCII character"
    return "an accent as a character of its own" if unicodedata.normalize("NFC", text) != text else ""
