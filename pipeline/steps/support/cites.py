"""The citations of a record: which passages support which field, and ids that were never given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.records import JsonValue, Problem
from pipeline.schema.walk import unescape
from pipeline.steps.cite import Passages, cited, regions
from pipeline.steps.support.leaves import Leaf
from pipeline.steps.support.source import Region

MAX_UNKNOWN = 5
"""Unknown ids that one problem names."""


@dataclass(frozen=True, slots=True)
class Citations:
    """What the citing leaves of a record say. `targets`: the field that is supported → the passages, and the pointer of
    what cites them."""

    given: Passages
    targets: Mapping[str, tuple[Sequence[int], str]] = field(default_factory=dict)
    problems: Sequence[Problem] = ()

    def regions(self, pointer: str) -> list[Region] | None:
        """Where a field has to stand by what is cited for it, or for what holds it; None if nothing is cited."""
        target = self._target(pointer)
        if target is None:
            return None
        return [Region(start, end) for start, end in regions(self.given, tuple(sorted(set(self.targets[target][0]))))]

    def unsupported(self, leaf: Leaf, attempt: int) -> Problem:
        """The problem of a field that the passages cited for it do not hold."""
        numbers, citing = self.targets[self._target(leaf.pointer) or ""]
        ids = ", ".join(f"{self.given.letters}{number}" for number in sorted(set(numbers))[:MAX_UNKNOWN])
        words = f"{ids} does not hold what {leaf.pointer} says: cite the passage that does, or none"
        return Problem("citation_unsupported", citing, words, attempt)

    def _target(self, pointer: str) -> str | None:
        if not self.targets:
            return None
        while pointer not in self.targets:
            if not pointer:
                return None
            pointer = pointer.rpartition("/")[0]
        return pointer


def citations_of(leaves: Sequence[Leaf], record: JsonValue, given: Passages, attempt: int) -> Citations:
    """The citations of a record; none where the job gave no ids to cite."""
    if not given.letters:
        return Citations(given)
    targets: dict[str, tuple[list[int], str]] = {}
    unknown: dict[str, list[str]] = {}
    for leaf in leaves:
        if leaf.cites is None:
            continue
        named = cited(given, leaf.value)
        if named.unknown:
            unknown.setdefault(leaf.pointer, []).extend(named.unknown)
        target = target_of(record, leaf.citing, leaf.cites)
        if named.numbers and target is not None:
            targets.setdefault(target, ([], leaf.citing))[0].extend(named.numbers)
    last = f"{given.letters}{len(given)}"
    problems = [
        Problem(
            "citation_unknown",
            pointer,
            f"no passage has the id {', '.join(words[:MAX_UNKNOWN])}: the last one is {last}",
            attempt,
        )
        for pointer, words in unknown.items()
    ]
    return Citations(given, targets, problems)


def target_of(record: JsonValue, citing: str, pointer: str) -> str | None:
    """The field that `x-cites` names: its pointer is read from the innermost object around the citing leaf that has
    such a field, so that items of a list cite for themselves. None if no object has it."""
    around = citing.rpartition("/")[0]
    while True:
        if _has(record, around + pointer):
            return around + pointer
        if not around:
            return None
        around = around.rpartition("/")[0]


def _has(record: JsonValue, pointer: str) -> bool:
    for token in pointer.split("/")[1:]:
        key = unescape(token)
        if isinstance(record, dict) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(record):
            record = record[int(key[:9])]
        else:
            return False
    return True
