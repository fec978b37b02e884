"""Language: whether a text is in one of the languages that its schema declares; short and mixed texts are not judged.

A language detector has to name some language for any text, so its word counts only where it is sure of another one for
the whole text and for both halves of it. What that costs and finds was measured: docs/rules.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

MIN_LETTERS = 80
"""Letters of a text below which nothing is said of it, where a letter stands for a sound."""
MIN_SIGNS = 12
"""The same where a letter stands for a syllable or a word: Han, kana, Hangul."""
DECLARED = 0.05
"""Confidence (0 to 1) of lingua below which a declared language is ruled out."""
OTHER = 0.95
"""Confidence of lingua in another language from which a text is said to be in that."""
MAX_LETTERS = 600
"""Letters that are looked at. Longer texts are judged by their beginning."""


class NotTold(Exception):
    """The detector failed on a text."""


_DENSE = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL"})
_NOT_PROSE = re.compile(r"\S*(?:://|www\.|@)\S*|\S*[0-9_/\\]\S*")
_WORD = re.compile(r"[^\W\d_]+")


def other_language(text: str, declared: Sequence[str]) -> str:
    """The ISO 639-1 code of the language that a text is in, if that is none of the declared ones; else nothing.

    Nothing is also said of what is too short to tell, of a text that quotes another language for a good part, and of
    one that is as likely in a declared language. Addresses, numbers and words of another script than most of the text
    are left out of account.

    Raises:
        NotTold: the detector failed.
    """
    words = _prose(text)
    dense = bool(words) and _script(words[0][0]) in _DENSE
    letters = sum(map(len, words))
    if letters < (MIN_SIGNS if dense else MIN_LETTERS):
        return ""
    whole, *halves = _sections(words, dense)
    other = _language(whole, tuple(declared))  # nothing for most texts, and then the halves need no look
    return other if other and all(_language(half, tuple(declared)) == other for half in halves) else ""


@lru_cache(maxsize=1024)
def script_and_language(text: str) -> tuple[str, str]:
    """A text's commonest script in lower case (`latin`, `cyrillic`; `cjk` also for kana and Hangul) and the ISO 639-1
    code of its language; empty without letters, where it is too short to tell, or where lingua is not sure (OTHER)."""
    words = _prose(text)
    if not words:
        return "", ""
    dense = _script(words[0][0]) in _DENSE
    script = "cjk" if dense else _script(words[0][0]).lower()
    if sum(map(len, words)) < (MIN_SIGNS if dense else MIN_LETTERS):
        return script, ""
    try:
        return script, _language(_sections(words, dense)[0], ())
    except NotTold:
        return script, ""


def _prose(text: str) -> list[str]:
    """The words of a text's commonest script."""
    words: list[str] = []
    letters = 0
    for match in _WORD.finditer(_NOT_PROSE.sub(" ", text[: 20 * MAX_LETTERS])):
        words.append(match.group())
        letters += len(words[-1])
        if letters > MAX_LETTERS:
            break
    counts = Counter[str]()
    for word in words:
        counts[_script(word[0])] += len(word)
    if not counts:
        return []
    scripts = _DENSE if (most := counts.most_common(1)[0][0]) in _DENSE else {most}
    return [word for word in words if _script(word[0]) in scripts]


def _sections(words: list[str], dense: bool) -> list[str]:
    """The whole and its halves."""
    if dense:
        whole = "".join(words)
        return [whole, whole[: len(whole) // 2], whole[len(whole) // 2 :]]
    middle = len(words) // 2
    return [" ".join(part) for part in (words, words[:middle], words[middle:])]


def _language(text: str, declared: tuple[str, ...]) -> str:
    """The language of a text if it is surely none of the declared ones; else nothing."""
    try:
        ranked = _detector().compute_language_confidence_values(text)
    except Exception as error:
        raise NotTold(f"the language detector failed: {type(error).__name__}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust code raises, past `except Exception`
            raise
        raise NotTold("the language detector failed") from error
    values = {one.language.iso_code_639_1.name.lower(): one.value for one in ranked}
    code, value = max(values.items(), key=lambda item: item[1])
    return code if value >= OTHER and sum(values.get(one, 0.0) for one in declared) < DECLARED else ""


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The first word of a letter's name in Unicode, such as LATIN, GREEK or CJK."""
    return unicodedata.name(letter, "?").partition(" ")[0]


@lru_cache(maxsize=1)
def _detector() -> Any:
    """lingua for all its languages, with its small models: 60 MB of memory instead of 900."""
    from lingua import LanguageDetectorBuilder

    return LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()
