"""JSON inside a JSON string: taken out where the schema wants what is inside and not the string."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pipeline.records import Draft, JsonValue, Problem, Repair
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.walk import escape, unescape
from pipeline.steps.answer.strict import Unparsable, read
from pipeline.steps.judge import judge_of

MAX_STRINGS = 20
MAX_LEVELS = 3


def take_out(draft: Draft, plan: DecodingPlan, attempt: int) -> Draft:
    """The draft with the objects and arrays that stood escaped in strings, the record itself included.

    A string is opened only if the schema refuses it where it stands, and does not refuse what is inside there.
    """
    value, opened = draft.value, []
    suspects = list(islice(_suspects(value), MAX_STRINGS))
    refused = _refused(plan, value) if suspects else set()
    for pointer in suspects:
        if not _is_in(refused, pointer) or (inside := _inside(_at(value, pointer))) is None:
            continue
        changed = _put(value, pointer, inside)
        left = _refused(plan, changed)
        if not _is_in(left, pointer):
            value, refused = changed, left
            opened.append(pointer)
    if not opened:
        return draft
    message = "the answer held this as JSON inside a string"
    return dataclasses.replace(
        draft,
        value=value,
        problems=(*draft.problems, *(Problem("json_in_string", at, message, attempt) for at in opened)),
        repairs=(*draft.repairs, *(Repair("unescaped", at, "JSON inside a string", attempt) for at in opened)),
    )


def _suspects(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Pointers of the strings that begin like JSON; none is made for other leaves, since keys may be long."""
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "[", '"'):
            yield "".join(f"/{escape(step)}" for step in path)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _suspects(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _suspects(child, (*path, str(index)))


def _inside(value: JsonValue) -> JsonValue:
    """The object or array that a string holds, MAX_LEVELS strings deep at most; None if it holds none."""
    for _ in range(MAX_LEVELS):
        try:
            value = read(value).value
        except Unparsable:
            return None
        if isinstance(value, dict | list):
            return value
        if not isinstance(value, str):
            return None
    return None


def _refused(plan: DecodingPlan, value: JsonValue) -> set[tuple[str, ...]] | None:
    """The places that the schema objects to themselves, for the whole value at once: each time is a validation."""
    try:
        return {tuple(str(step) for step in error.absolute_path) for error in _errors(plan, value)}
    except Exception:  # what the validator trips over is told by validation; nothing is taken out here
        return None


def _is_in(refused: set[tuple[str, ...]] | None, pointer: str) -> bool:
    return pointer != "" if refused is None else tuple(_steps(pointer)) in refused


def _errors(plan: DecodingPlan, value: JsonValue) -> Iterable[Any]:
    return judge_of(plan).validator.iter_errors(value)


def _steps(pointer: str) -> list[str]:
    return [unescape(step) for step in pointer.split("/")[1:]]


def _at(value: JsonValue, pointer: str) -> JsonValue:
    for step in _steps(pointer):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _put(value: JsonValue, pointer: str, new: JsonValue) -> JsonValue:
    """A copy of a value with another one at a pointer."""
    if pointer == "":
        return new
    first, _, rest = pointer[1:].partition("/")
    step = unescape(first)
    below = f"/{rest}" if "/" in pointer[1:] else ""
    if isinstance(value, list):
        index = int(step)
        return [*value[:index], _put(value[index], below, new), *value[index + 1 :]]
    return {**value, step: _put(value[step], below, new)}
