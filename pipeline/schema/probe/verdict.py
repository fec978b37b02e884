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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pipeline.errors import SchemaError
from pipeline.schema.probe.found import Instances, Valid, Violation
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
        return (
            self.mask_seconds[min(len(self.mask_seconds) - 1, int(share * len(self.mask_seconds)))]
            if self.mask_seconds
            else 0.0
        )


def probe(
    matcher_of: Callable[[], Matcher],
    encode: Callable[[str], Sequence[int]],
    instances: Instances,
    left: Iterable[Left] = (),
    budget_seconds: float = 10.0,
) -> Report:
    """Walk all instances through fresh matchers. `encode` gives the tokens of a text without any special ones.

    When the time is up the rest is left out, and the report is not `complete`: what was not tried is unproven.
    """
    try:
        matcher_of()
    except SchemaError as error:
        words = error.message
        return Report(dict.fromkeys(instances.sites, Verdict("refused", words[:MAX_SHOWN])), refused=words)
    return _Probe(matcher_of, encode, instances, tuple(left), time.monotonic() + budget_seconds).report()


@dataclass
class _Probe:
    matcher_of: Callable[[], Matcher]
    encode: Callable[[str], Sequence[int]]
    instances: Instances
    left: tuple[Left, ...]
    until: float
    masks: list[float] = field(default_factory=list)
    respelled: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Some tokenizers put a blank before every text: then tokens of parts do not add up to those of the whole.
        pairs = (('"', "a"), ("1", "a"), ("}", "x"), ("-", "Z"))
        self.separable = any([*self.encode(a), *self.encode(b)] == [*self.encode(a + b)] for a, b in pairs)

    def report(self) -> Report:
        accepted: dict[int, bool] = {}
        start = time.monotonic()
        for index, valid in enumerate(self.instances.valid):
            late = time.monotonic() - start > VALID_SHARE * (self.until - start)
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
        verdicts |= _over_tight(self.instances, accepted)
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
        if taken is False and self.separable:
            taken = self._takes([token for char in text for token in self.encode(char)])
            if taken:
                self.respelled[text] = None
        return taken

    def _takes(self, tokens: Sequence[int]) -> bool | None:
        """Whether every token is allowed and accepted, without an error, and the end is accepting. None: too late."""
        matcher = self.matcher_of()
        if matcher.error():
            return False
        for number, token in enumerate(tokens):
            if time.monotonic() > self.until:
                return None
            start = time.perf_counter()
            mask = matcher.mask()
            self.masks.append(time.perf_counter() - start)
            if (number == 0 and matcher.error()) or not is_allowed(mask, token) or not matcher.accept(token):
                return False
        return matcher.finished() and not matcher.error()

    def _gets_through(self, text: str) -> bool | None:
        """As `_accepts`; masks are only looked at where the tokens are accepted one by one."""
        if time.monotonic() > self.until:
            return None
        matcher = self.matcher_of()
        if matcher.error() or not all(map(matcher.accept, self.encode(text))) or not matcher.finished():
            return False
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


def _over_tight(instances: Instances, accepted: Mapping[int, bool]) -> dict[Site, Verdict]:
    found: dict[Site, Verdict] = {}
    for index, valid in enumerate(instances.valid):
        if valid.base is None or valid.aim is None or index not in accepted or valid.base not in accepted:
            continue
        if accepted[index] != accepted[valid.base]:
            lost = valid if accepted[valid.base] else instances.valid[valid.base]
            found.setdefault(valid.aim, Verdict("over_tight", lost.text[:MAX_SHOWN]))
    return found | _never_taken(instances.valid, accepted, found.keys())


def _never_taken(valid: Sequence[Valid], accepted: Mapping[int, bool], blamed: Collection[Site]) -> dict[Site, Verdict]:
    """The sites of the innermost subschemas none of whose valid values is accepted while others are.

    Values that a site already `blamed` judges say nothing more: they may be lost for that alone.
    """
    if not any(accepted.values()):
        return {}
    told = {index for index, taken in accepted.items() if taken or not valid[index].sites & set(blamed)}
    reached: dict[str, set[int]] = {}
    sites: dict[str, set[Site]] = {}
    for index in accepted:
        for site in valid[index].sites:
            reached.setdefault(site[0], set()).add(index)
            sites.setdefault(site[0], set()).add(site)
    never = {
        pointer: found & told
        for pointer, found in reached.items()
        if found & told and not any(accepted[index] for index in found)
    }
    innermost = [
        pointer
        for pointer, found in never.items()
        if not any(other != pointer and other.startswith(f"{pointer}/") and never[other] >= found for other in never)
    ]
    return {
        site: Verdict("over_tight", valid[min(never[pointer])].text[:MAX_SHOWN])
        for pointer in innermost
        for site in sites[pointer]
    }
