"""The answer: changes, each with three classes, and how classes of several changes add up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Class = Literal["compatible", "widening", "narrowing", "breaking"]
ModelClass = Literal["compatible", "retest", "widening", "narrowing", "breaking"]

_READERS: tuple[Class, ...] = ("compatible", "narrowing", "widening", "breaking")
_WORST: tuple[ModelClass, ...] = ("compatible", "retest", "widening", "narrowing", "breaking")
MAX_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    `pointer` leads to the place in the new schema (in the old one for what is gone); for `column_…` kinds it is the
    path of the column, with `*` for the items of a list. `before` and `after` are JSON text, cut to 160 characters,
    or empty where there is nothing. `why` is for a person.
    """

    pointer: str
    kind: str
    before: str
    after: str
    language: Class
    readers: Class
    model: ModelClass
    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """All changes and what they add up to.

    `language` speaks of the records that are accepted, `readers` of programs that read the output, `model` of what the
    model is told and may answer. `same_grammar`: compiled grammars can be used again. `same_prompt`: the model is told
    exactly the same. `same_recordings`: recorded completions still match (both, and the schema digest is the same).
    """

    changes: tuple[Change, ...]
    language: Class
    readers: Class
    model: ModelClass
    same_grammar: bool
    same_prompt: bool
    same_recordings: bool


def language_class(keeps: bool, adds_nothing: bool) -> Class:
    """The class of a change from what is proven: every old record is still accepted; no new record was refused."""
    if keeps:
        return "compatible" if adds_nothing else "widening"
    return "narrowing" if adds_nothing else "breaking"


def language_of(classes: Iterable[ModelClass]) -> Class:
    """What several changes of the accepted records add up to: widening and narrowing together are breaking."""
    found = set(classes)
    broken = "breaking" in found
    return language_class(not broken and "narrowing" not in found, not broken and "widening" not in found)


def readers_of(classes: Iterable[Class]) -> Class:
    """The worst for a reader, to whom values that no longer occur are harmless and new ones are not."""
    return max(classes, key=_READERS.index, default="compatible")


def model_of(classes: Iterable[ModelClass]) -> ModelClass:
    """What several changes mean for the model; any change of its prompt is at least `retest`."""
    found = list(classes)
    language = language_of(found)
    return "retest" if language == "compatible" and "retest" in found else language


def worst(drift: Drift) -> ModelClass:
    """The one word for a whole comparison: compatible < retest < widening < narrowing < breaking."""
    return max((drift.language, drift.readers, drift.model), key=_WORST.index)


def to_json(drift: Drift) -> dict[str, Any]:
    """The comparison as a JSON object: the fields of `Drift`, its changes as objects, and `worst`."""
    return {**asdict(drift), "changes": [asdict(change) for change in drift.changes], "worst": worst(drift)}


def shown(value: Any) -> str:
    """A value as JSON text, cut: a change must not carry half a schema."""
    return cut(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def cut(text: str) -> str:
    """At most MAX_SHOWN characters of a text, marked where it was cut."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
