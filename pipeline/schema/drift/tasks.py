"""A pair of subschemas with its place, and how a finding there becomes a change with its three classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.schema.drift.found import ABSENT, Finding, Pair
from pipeline.schema.drift.kinds import HARMLESS, KINDS
from pipeline.schema.drift.report import Change, Class, ModelClass, language_class, shown
from pipeline.schema.walk import escape

_MAX_TOKEN = 200
ENTANGLED = "it stands where the effect on accepted values cannot be told"

At = tuple["At", str] | None
"""A pointer, from its last token back: short to make, however deep."""


@dataclass(frozen=True, slots=True)
class Task:
    """A pair to compare. `at` leads to it in the new schema. `polarity`: 1, -1 below a `not`, 0 where nothing can be
    told; `frozen`: what it evaluates matters to an `unevaluated…` keyword above."""

    old: Any
    new: Any
    at: At = None
    polarity: int = 1
    frozen: bool = False


def below(task: Task, pair: Pair, stirs: bool) -> Task:
    """A pair below a task. `stirs`: what the pair evaluates matters."""
    at = task.at
    for token in pair.steps:
        at = (at, token)
    polarity = {"same": task.polarity, "flip": -task.polarity, "exact": 0}[pair.turn]
    return Task(pair.old, pair.new, at, polarity, frozen=pair.in_place and stirs)


def change(task: Task, found: Finding) -> Change:
    """What a finding at a task means."""
    kind = KINDS[found.kind]
    keeps, adds_nothing = found.keeps, found.adds_nothing
    why = f"{kind.why} ({found.why})" if found.why else kind.why
    if task.polarity < 0 and found.kind not in HARMLESS:
        keeps, adds_nothing = adds_nothing, keeps
    if (task.polarity == 0 or task.frozen) and found.kind not in HARMLESS:
        keeps = adds_nothing = False
        why = f"{kind.why} ({found.why or ENTANGLED})"
    language = language_class(keeps, adds_nothing)
    readers: Class = "widening" if language == "breaking" else language
    if found.readers and (task.polarity > 0 or found.readers == "breaking"):
        readers = found.readers
    model: ModelClass = "compatible"
    if kind.model != "compatible":
        model = "retest" if kind.model == "retest" or language == "compatible" else language
    return Change(
        pointer=_pointer(task.at, found.steps),
        kind=found.kind,
        before="" if found.before is ABSENT else shown(found.before),
        after="" if found.after is ABSENT else shown(found.after),
        language=language,
        readers=readers,
        model=model,
        why=why,
    )


def _pointer(at: At, steps: tuple[str, ...]) -> str:
    tokens = list(reversed(steps))
    while at is not None:
        at, token = at
        tokens.append(token)
    return "".join("/" + escape(token[:_MAX_TOKEN] + "…" * (len(token) > _MAX_TOKEN)) for token in reversed(tokens))
