"""What is said of one keyword site after an engine was tried, and how sure that is.

`leaked`      an answer under the constraint broke the keyword: a fact
`proven`      the same requests broke the keyword where it was taken away (or not yet stricter) and did not where it was
              in the schema; or answers followed a schema that was changed under one prompt. The chance of that with
              an engine that ignores the keyword is at most LEVEL
`suggested`   answers kept to the keyword, and nobody showed that they would have broken it otherwise
`undecided`   no answer could be judged, or some strayed: they are nothing that the grammar writes, which is a leak of
              the whole answer, and nobody can say of which keyword
`left`        the plan leaves the keyword to the validator, so nothing was asked of the engine
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipeline.observe.tails import fisher

if TYPE_CHECKING:
    from pipeline.evaluate.in_force_answers import Judged
    from pipeline.records import Completion

LEVEL = 0.001
"""Chance of a proof by one comparison, of which a site has two at most, with an engine that ignores the keyword."""
TRIALS = 12
"""Requests on each side of a comparison, if nobody says how many."""
ROOM = 96
"""Tokens that an answer may have beyond the characters of what is asked for. Reasoning models need more."""
MAX_SHOWN = 200

Verdict = Literal["leaked", "proven", "suggested", "undecided", "left"]
VERDICTS: tuple[Verdict, ...] = ("leaked", "undecided", "suggested", "left", "proven")
"""In the order in which they are shown."""
Require = Literal["no-leak", "tried", "proven"]
_SHORT: dict[Require, tuple[Verdict, ...]] = {
    "no-leak": ("leaked",),
    "tried": ("leaked", "undecided"),
    "proven": ("leaked", "undecided", "suggested"),
}
How = Literal["", "taken away", "made stricter", "one at a time"]


@dataclass(frozen=True, slots=True)
class ForceRow:
    """One site, or one part of it (`detail`). `how` names the comparison that counts are of.

    Under the constraint `broke` of `asked` answers broke the site and `strayed` were nothing that the grammar writes.
    `other_broke` of `other_asked` broke it by the same requests without the keyword; one at a time, `other_broke` is 0
    and `other_asked` the number of schemas. `unanswered` were cut, refused, failed, or had nothing at the site.
    `chance` is that of a proof by an engine that ignores the keyword. `example` is an answer that broke it or strayed.
    """

    pointer: str
    keyword: str
    detail: str = ""
    verdict: Verdict = "undecided"
    how: How = ""
    asked: int = 0
    broke: int = 0
    other_asked: int = 0
    other_broke: int = 0
    strayed: int = 0
    unanswered: int = 0
    chance: float = 1.0
    example: str = ""

    def told(self) -> str:
        """The row in words."""
        place = f"{self.pointer or '/'} {self.keyword}" + (f" {self.detail}" if self.detail else "")
        cut = f"; {self.unanswered} requests without an answer" if self.unanswered else ""
        return f"{self.verdict:9} {place}: {self._seen()}{cut}"

    def _seen(self) -> str:
        if self.verdict == "left":
            return "left to the validator"
        if self.verdict == "leaked":
            return f"{self.broke} of {self.asked} answers broke it, such as {self.example}"
        if self.strayed:
            return f"{self.strayed} of {self.asked} answers are nothing that the grammar writes, such as {self.example}"
        if self.how == "one at a time":
            return f"{self.asked} answers, each of the one of {self.other_asked} that its schema allowed"
        if not self.asked and not self.unanswered:
            return "no value was found that could be asked for"
        if not self.how:
            return f"{self.broke} of {self.asked} answers broke it"
        without = "with the keyword taken away" if self.how == "taken away" else "before it was made stricter"
        return (
            f"{self.broke} of {self.asked} answers broke it; {without} the same requests did in {self.other_broke} of "
            f"{self.other_asked}"
        )


@dataclass(slots=True)
class Counts:
    """What is counted of one comparison; the fields of a row."""

    asked: int = 0
    broke: int = 0
    other_asked: int = 0
    other_broke: int = 0
    strayed: int = 0
    unanswered: int = 0
    example: str = ""

    def note(
        self,
        completions: Sequence[Completion],
        judged: Sequence[Judged],
        broken: Sequence[bool],
        counted: Sequence[bool] | None = None,
    ) -> None:
        """Count answers under the constraint; those that are not `counted` say nothing of the site."""
        for completion, one, is_broken, counts in zip(
            completions, judged, broken, counted or [True] * len(judged), strict=True
        ):
            there = counts and one.kind != "none"
            self.asked += there
            self.unanswered += not there
            self.broke += there and is_broken
            self.strayed += there and one.strays and not is_broken
            if there and (is_broken or one.strays):
                self.example = self.example or shown(completion.text)

    def of_pair(self) -> float:
        """The chance of so few broken answers under the constraint if it were ignored (Fisher's exact test)."""
        if not self.asked or self.broke * self.other_asked >= self.other_broke * self.asked:
            return 1.0
        kept, others = self.asked - self.broke, self.other_asked - self.other_broke
        chance = fisher((self.broke, kept), (self.other_broke, others))
        return 1.0 if chance is None else chance

    def verdict(self, chance: float) -> Verdict:
        """What the counts say."""
        if self.broke:
            return "leaked"
        if not self.asked or self.strayed:
            return "undecided"
        return "proven" if chance <= LEVEL else "suggested"


def chance_of_following(schemas: int, rounds: int) -> float:
    """The chance that answers which do not depend on the schema are, `rounds` times over, each of the one of so many
    languages that its own schema allows, no two of which share an answer: the product of chances that sum to one is
    greatest where they are equal."""
    return float(schemas) ** -(schemas * rounds) if schemas else 1.0


def rounds_for(schemas: int) -> int:
    """The least rounds after which that chance is at most LEVEL; 0 for fewer than two schemas, which prove nothing."""
    return next(n for n in range(1, 64) if chance_of_following(schemas, n) <= LEVEL) if schemas > 1 else 0


def totals(rows: Iterable[ForceRow]) -> dict[str, int]:
    """Rows by verdict, in the order of VERDICTS."""
    counts = Counter(row.verdict for row in rows)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def falls_short(rows: Iterable[ForceRow], require: Require) -> bool:
    """Whether some row is less than what is required of all; what is left to the validator never is."""
    return any(row.verdict in _SHORT[require] for row in rows)


def rendered(rows: Iterable[ForceRow]) -> list[str]:
    """The rows in words, what matters most first."""
    return [row.told() for row in sorted(rows, key=lambda row: VERDICTS.index(row.verdict))]


def shown(text: str) -> str:
    """An answer as it is quoted: one line of ASCII, cut."""
    return json.dumps(text[:MAX_SHOWN])[1:-1] + ("…" if len(text) > MAX_SHOWN else "")
