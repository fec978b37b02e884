"""Checks of property names and enum members: confused, disguised, unclear, in the wrong order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from pipeline.schema.lint.policy import (
    CLEAR_SHORT_NAMES,
    LABEL_WORDS,
    MAX_NAME,
    MAX_VARIANTS,
    MIN_WORD_FOR_TYPO,
    REASON_WORDS,
    UNCLEAR_NAMES,
)
from pipeline.schema.lint.rules import Finding, found
from pipeline.schema.lint.show import names, quoted
from pipeline.schema.lint.view import SCALARS, Scope, Site
from pipeline.schema.lint.words import disguise, doubled, folded, one_edit_apart, one_letter_less, singular, words

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"'\\`]|^\s|\s$|^$")
_NEGATIVE = frozenset({"not", "no", "non", "without"})
_MIN_NUMBERED = 3


def check_names(scope: Scope) -> Iterator[Finding]:
    """All findings of this family."""
    for site in scope.nodes:
        held = site.node.get("properties", {})
        if held:
            yield from _spelling(site.pointer, list(held))
            yield from _lookalikes("lookalike_names", site.pointer, list(held), typos=True)
            yield from _numbered(site.pointer, list(held))
            yield from _order(site.pointer, list(held))
            yield from _unclear(scope, site)
            yield from _negated(scope, site)
        members = [member for member in site.node.get("enum", []) if isinstance(member, str)]
        if members:
            yield from _lookalikes("lookalike_values", site.pointer, members, typos=False)
            odd = [(member, disguise(member)) for member in members if disguise(member)]
            if odd:
                yield found("disguised_text", site.pointer, f"Enum member {quoted(odd[0][0])} has {odd[0][1]}.")


def _spelling(pointer: str, held: list[str]) -> Iterator[Finding]:
    unsafe = [name for name in held if _UNSAFE.search(name)]
    if unsafe:
        yield found("unsafe_name", pointer, f"Hard to quote and easy to get wrong: {names(unsafe)}.")
    long = [name for name in held if len(name) > MAX_NAME]
    if long:
        yield found("long_name", pointer, f"Longer than {MAX_NAME} characters: {names(long)}.")
    for name in held:
        odd = disguise(name)
        if odd:
            yield found("disguised_text", pointer, f"The name {quoted(name)} has {odd}.")


def _lookalikes(code: str, pointer: str, texts: list[str], *, typos: bool) -> Iterator[Finding]:
    pairs: dict[tuple[str, str], None] = {}
    spellings: list[Callable[[str], str]] = [folded, doubled, singular] if typos else [folded, doubled]
    for spelling in spellings:
        pairs.update(dict.fromkeys(_same(texts, spelling)))
    if typos and sum(len(text) for text in texts) <= MAX_VARIANTS:
        pairs.update(dict.fromkeys(_typos(texts)))
    if pairs:
        shown = [f"{a} / {b}" for a, b in pairs]
        yield found(code, pointer, f"Easily confused: {names(shown)}.")


def _same(texts: Iterable[str], spelling: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    first: dict[str, str] = {}
    for text in texts:
        other = first.setdefault(spelling(text), text)
        if other != text:
            yield other, text


def _typos(texts: list[str]) -> Iterator[tuple[str, str]]:
    """Names whose words are the same but for one long word that is one edit apart."""
    meeting: dict[str, list[str]] = defaultdict(list)
    for text in texts:
        if MIN_WORD_FOR_TYPO <= len(text) <= MAX_NAME:
            for variant in one_letter_less(folded(text)):
                meeting[variant].append(text)
    close = {(a, b) for group in meeting.values() if 1 < len(group) <= 16 for a in group for b in group if a < b}
    yield from sorted((a, b) for a, b in close if _differ_by_a_slip(words(a), words(b)))


def _differ_by_a_slip(a: list[str], b: list[str]) -> bool:
    differing = [(x, y) for x, y in zip(a, b, strict=False) if x != y]
    if len(a) != len(b) or len(differing) != 1:
        return False
    x, y = differing[0]
    letters = x.isalpha() and y.isalpha() and min(len(x), len(y)) >= MIN_WORD_FOR_TYPO
    return (
        letters and x[0] == y[0] and one_edit_apart(x, y)
    )  # slips of the first letter are rare, x and y offsets are not


def _numbered(pointer: str, held: list[str]) -> Iterator[Finding]:
    series: dict[str, list[int]] = defaultdict(list)
    for name in held:
        match = re.fullmatch(r"(.*?[A-Za-z])[_-]?([1-9]\d?)", name)
        if match:
            series[match[1]].append(int(match[2]))
    for stem, numbers in series.items():
        if len(numbers) >= _MIN_NUMBERED and sorted(numbers) == list(range(1, len(numbers) + 1)):
            why = f"{quoted(stem)} comes numbered from 1 to {len(numbers)}: that is an array."
            yield found("numbered_names", pointer, why)


def _order(pointer: str, held: list[str]) -> Iterator[Finding]:
    """A label before the reason for it: same words around it (`risk_score`, `risk_reason`), or none around either."""
    reasons = [(at, name) for at, name in enumerate(held) if REASON_WORDS.intersection(words(name))]
    for at, label in enumerate(held) if reasons else ():
        if not LABEL_WORDS.intersection(words(label)[-1:]):
            continue
        about = [(where, name) for where, name in reasons if _about_the_same(label, name)]
        if about and about[0][0] > at:
            why = f"{quoted(label)} is written before {quoted(about[0][1])}: the model decides first."
            yield found("label_before_rationale", pointer, why)


def _about_the_same(label: str, reason: str) -> bool:
    subject = set(words(label)[:-1])
    about = set(words(reason)) - REASON_WORDS - LABEL_WORDS - {"for", "of", "the", "step", "by", "s"}
    return not subject or not about or bool(subject & about)


def _unclear(scope: Scope, site: Site) -> Iterator[Finding]:
    unclear = []
    paired = {"key", "name", "unit", "currency"} & {name.lower() for name in site.node["properties"]}
    for name, child in site.node["properties"].items():
        short = name.lower()
        vague = short in UNCLEAR_NAMES or (len(short) <= 2 and short not in CLEAR_SHORT_NAMES)
        told = any(key in part for part in scope.parts(child) for key in ("description", "title", "enum", "const"))
        if vague and not told and not (paired and short == "value") and scope.types(child) <= SCALARS:
            unclear.append(name)
    if unclear:
        yield found("unclear_name", site.pointer, f"Short names without a description: {names(unclear)}.")


def _negated(scope: Scope, site: Site) -> Iterator[Finding]:
    for name, child in site.node["properties"].items():
        spelt = words(name)
        start = spelt[1:] if spelt[:1] and spelt[0] in ("is", "has", "are", "was", "does") else spelt
        if len(start) > 1 and start[0] in _NEGATIVE and scope.types(child) - {"null"} == {"boolean"}:
            yield found("negated_boolean", site.pointer, f"{quoted(name)}: its false means that it is so.")
