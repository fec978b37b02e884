"""Published: two public metrics beside ours, as their authors define them, for records of values and lists of values.

`sroie`: ICDAR 2019 SROIE, task 3. An extracted text is right if content and category both equal the ground truth;
precision is over all extracted texts, recall over all of the ground truth, F1 of both. Compared is as it stands.

`kleister`: Kleister-NDA, GEval's MultiLabel-F1 (github.com/applicaai/kleister-nda, config.txt, README). A document is
the list of words `key=value`, blanks and colons of a value written `_`; a word is right if the other list holds it, as
often as it does; counts are added over documents. `uncased` compares in upper case. GEval calls precision 1 where
nothing was extracted.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pipeline.evaluate.same import has_value
from pipeline.records import JsonValue

METRICS = ("sroie", "kleister_uncased", "kleister_cased")

Counts = tuple[int, int, int]
"""Right, extracted, expected."""


def published_counts(expected: JsonValue, found: JsonValue) -> dict[str, Counts] | None:
    """The counts of a document by metric; None if a record is not flat, which neither metric speaks of. A document
    without a record extracted nothing."""
    ours, theirs = _entities(expected), _entities({} if found is None else found)
    if ours is None or theirs is None:
        return None
    words = [Counter(word for key, text in pairs for word in _words(key, text)) for pairs in (ours, theirs)]
    ours_upper, theirs_upper = map(_upper, words)
    return {
        "sroie": _counts(Counter(ours), Counter(theirs)),
        "kleister_uncased": _counts(ours_upper, theirs_upper),
        "kleister_cased": _counts(words[0], words[1]),
    }


def _upper(words: Counter[str]) -> Counter[str]:
    made: Counter[str] = Counter()
    for word, count in words.items():
        made[word.upper()] += count
    return made


def _words(key: str, text: str) -> list[str]:
    return f"{key.replace(' ', '_')}={text.replace(' ', '_').replace(':', '_')}".split()


def _counts(expected: Counter[Any], found: Counter[Any]) -> Counts:
    return (expected & found).total(), found.total(), expected.total()


def _entities(record: JsonValue) -> list[tuple[str, str]] | None:
    if not isinstance(record, dict):
        return None
    made = []
    for key, value in record.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict | list):
                return None
            if has_value(one):
                made.append((key, one if isinstance(one, str) else json.dumps(one)))
    return made
