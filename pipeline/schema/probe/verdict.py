"""Verdict: what a real matcher does with instances, told by keyword site.

`enforced`    every violation that proves something was rejected
`dropped`     a violation was accepted
`over_tight`  a valid value was rejected, and the site is to blame
`refused`     there is no matcher: the back end's words are in the report
`unproven`    no violation that proves something, and nothing over-tight

A rejected violation proves something only if the valid value that it was made from is accepted. Over-tight is a site if
the matcher takes one of two values that differ only where the site was aimed at, both valid; and a subschema all of
whose valid values are rejected while others are taken. Of several such subschemas with the same values the innermost is
blamed, with all its sites.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pipeline.errors import SchemaError
from pipeline.schema.probe.blame import over_tight
from pipeline.schema.probe.found import Instances, Violation
from pipeline.schema.probe.spelling import Speller
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.shape.shapes import Left, Site
from pipeline.schema.validator import validator_of

Kind = Literal["enforced", "dropped", "over_tight", "refused", "unproven"]

VALID_SHARE = 0.6
"""Of the time, for valid values; the rest is for violations."""

MAX_SHOWN = 200
"""Characters of an instance that a verdict quotes."""


class Matcher(Protocol):
    """The state of one answer, as `pipeline.engines.grammar` makes them."""

    def mask(self) -> Any: ...
    def accept(self, token_id: int) -> bool: ...
    def finished(self) -> bool: ...
    def error(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found at a site, with the instance that shows it, shortened."""

    kind: Kind
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Leak:
    """A violation that the matcher accepted although nobody announced its sites."""

    text: str
    sites: tuple[Site, ...]


@dataclass(frozen=True)
class Report:
    """All verdicts of one schema under one grammar. `lost`: valid texts that were rejected. `mask_seconds`: sorted.

    `respelled`: texts that are accepted only if they are cut into tokens in another way than the tokenizer would. The
    answer can be given, but the model has to take tokens that it seldom took in training.
    """

    verdicts: Mapping[Site, Verdict]
    lost: tuple[str, ...] = ()
    leaks: tuple[Leak, ...] = ()
    refused: str = ""
    mask_seconds: tuple[float, ...] = ()
    complete: bool = True
    respelled: tuple[str, ...] = ()

    def mask_quantile(self, share: float) -> float:
        """Seconds under which that share of the masks took; 0 without masks."""
        count = len(self.mask_seconds)
        return self.mask_seconds[min(count - 1, int(share * count))] if count else 0.0


def probe(
    matcher_of: Callable[[], Matcher],
    encode: Callable[[str], Sequence[int]],
    instances: Instances,
    left: Iterable[Left] = (),
    budget_seconds: float = 10.0,
    speller: Speller | None = None,
) -> Report:
    """Walk all instances through fresh matchers. `encode` gives the tokens of a text without any special ones.

    A text that is rejected in those tokens is tried in others, with the `speller`'s or else character by character.

    When the time is up the rest is left out, and the report is not `complete`: what was not tried is unproven.
    """
    try:
        matcher_of()
    except SchemaError as error:
        words = error.message
        return Report(dict.fromkeys(instances.sites, Verdict("refused", words[:MAX_SHOWN])), refused=words)
    return _Probe(matcher_of, encode, instances, tuple(left), time.process_time() + budget_seconds, speller).report()


@dataclass
class _Probe:
    matcher_of: Callable[[], Matcher]
    encode: Callable[[str], Sequence[int]]
    instances: Instances
    left: tuple[Left, ...]
    until: float
    speller: Speller | None = None
    masks: list[float] = field(default_factory=list)
    respelled: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Some tokenizers put a blank before every text: then tokens of parts do not add up to those of the whole.
        pairs = (('"', "a"), ("1", "a"), ("}", "x"), ("-", "Z"))
        self.separable = any([*self.encode(a), *self.encode(b)] == [*self.encode(a + b)] for a, b in pairs)

    def report(self) -> Report:
        accepted: dict[int, bool] = {}
        start = time.process_time()
        for index, valid in enumerate(self.instances.valid):
            late = time.process_time() - start > VALID_SHARE * (self.until - start)
            taken = None if late else self._accepts(valid.text)
            if taken is None:
                break
            accepted[index] = taken
        verdicts: dict[Site, Verdict] = {site: Verdict("unproven") for site in self.instances.sites}
        passed: list[Violation] = []
        complete = len(accepted) == len(self.instances.valid)
        for site, violations in self.instances.violations.items():
            tried = [(violation, self._gets_through(violation.text)) for violation in violations]
            complete = complete and all(taken is not None for _, taken in tried)
            passed += [violation for violation, taken in tried if taken]
            verdicts[site] = _of_site(tried, accepted)
        verdicts |= {
            site: Verdict("over_tight", text[:MAX_SHOWN]) for site, text in over_tight(self.instances, accepted).items()
        }
        lost = dict.fromkeys(self.instances.valid[index].text for index, taken in accepted.items() if not taken)
        leaks = tuple(self._leaks(passed))
        masks = tuple(sorted(self.masks))
        return Report(verdicts, tuple(lost), leaks, "", masks, complete, tuple(self.respelled))

    def _leaks(self, violations: Iterable[Violation]) -> Iterable[Leak]:
        validator = validator_of(self.instances.body)
        for violation in violations:
            found = unannounced(self.instances.body, validator.iter_errors(violation.value), self.left)
            if found:
                yield Leak(violation.text, tuple(found))

    def _accepts(self, text: str) -> bool | None:
        """Whether a text can be decoded, in the tokenizer's tokens or else character by character. None: too late."""
        taken = self._takes(self.encode(text))
        if taken is False and self.speller is not None:
            taken = self._spells(text, self.speller)
        elif taken is False and self.separable:
            taken = self._takes([token for char in text for token in self.encode(char)])
        else:
            return taken
        if taken:
            self.respelled[text] = None
        return taken

    def _spells(self, text: str, speller: Speller) -> bool | None:
        """As `_takes`, with the longest allowed token that goes on with the text, from where the tokenizer's fail."""
        matcher, rest, usual = self.matcher_of(), text.encode(), list(reversed(self.encode(text)))
        while rest:
            if time.process_time() > self.until:
                return None
            mask = matcher.mask()
            if usual and is_allowed(mask, usual[-1]):
                chosen: int | None = usual.pop()
            else:
                usual.clear()
                chosen = next((token for token in speller.starts(rest) if is_allowed(mask, token)), None)
            if chosen is None or not matcher.accept(chosen):
                return False
            rest = rest[len(speller.texts[chosen]) :]
        return matcher.finished() and not matcher.error()

    def _takes(self, tokens: Sequence[int]) -> bool | None:
        """Whether every token is allowed and accepted, without an error, and the end is accepting. None: too late."""
        matcher = self.matcher_of()
        if matcher.error():
            return False
        for number, token in enumerate(tokens):
            if time.process_time() > self.until:
                return None
            start = time.perf_counter()
            mask = matcher.mask()
            self.masks.append(time.perf_counter() - start)
            if (number == 0 and matcher.error()) or not is_allowed(mask, token) or not matcher.accept(token):
                return False
        return matcher.finished() and not matcher.error()

    def _gets_through(self, text: str) -> bool | None:
        """As `_accepts`; masks are only looked at where the tokens are accepted one by one."""
        if time.process_time() > self.until:
            return None
        matcher = self.matcher_of()
        if matcher.error() or not all(map(matcher.accept, self.encode(text))) or not matcher.finished():
            return False if self.speller is None else self._spells(text, self.speller)
        return self._takes(self.encode(text))


def _of_site(tried: Sequence[tuple[Violation, bool | None]], accepted: Mapping[int, bool]) -> Verdict:
    for violation, taken in tried:
        if taken:
            return Verdict("dropped", violation.text[:MAX_SHOWN])
    for violation, taken in tried:
        if taken is False and violation.base is not None and accepted.get(violation.base):
            return Verdict("enforced", violation.text[:MAX_SHOWN])
    return Verdict("unproven")


def is_allowed(mask: Any, token: int) -> bool:
    """Whether a packed mask (bit i % 32 of word i // 32) has a token."""
    return token >> 5 < len(mask) and bool(int(mask[token >> 5]) & (1 << (token & 31)))
