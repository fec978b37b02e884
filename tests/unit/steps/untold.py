"""Invariant 2 as a function: differences between what a model wrote and the record that nothing in an outcome names.

Where the answer is JSON, or the beginning of some, record and answer are walked side by side. Where it is not, every
key and scalar of the record has to stand in the answer's text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from begun import CUT, CutList, begun

from pipeline.records import Outcome
from pipeline.schema.walk import escape

_NUMBER = re.compile(r"(?<![\w.+-])-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
"""As JSON writes it, and not a part of something longer: 00123 holds none."""
_NOTHING = re.compile(r"\"\"|''|“”|‘’|＂＂")
MISSING = object()


def untold(outcome: Outcome) -> list[str]:
    """One line per change that the outcome does not own up to; none of an outcome without record."""
    if outcome.status == "rejected" or not outcome.record_attempt:
        return []
    attempt = next(a for a in outcome.attempts if a.number == outcome.record_attempt)
    text = attempt.raw_text
    named = (*outcome.problems, *outcome.repairs)
    told = {item.pointer for item in named if item.attempt in (0, outcome.record_attempt)}
    told |= {field.pointer for field in outcome.fields if field.touched or field.raw is not None}
    told |= {f"{item.pointer}/…" for item in outcome.repairs if item.kind == "rest_left_out"}
    raw = _json(text, cut=attempt.finish_reason != "stop")
    if raw is not MISSING:
        return list(_walk(raw, outcome.record, "", told))
    return [
        f"{pointer or '/'}: {leaf!r} does not stand in the answer"
        for pointer, leaf in leaves(outcome.record)
        if pointer not in told and not stands_in(text, leaf)
    ]


def _json(text: str, *, cut: bool) -> Any:
    """The JSON value of an answer, also a cut one and one inside a JSON string; MISSING if it is not one."""
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
        return json.loads(value, parse_float=Decimal, parse_int=Decimal) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        pass
    try:
        return begun(text) if cut else MISSING
    except (ValueError, RecursionError):
        return MISSING


def _walk(raw: Any, kept: Any, pointer: str, told: set[str]) -> Iterator[str]:
    if isinstance(raw, CutList) and kept is not MISSING and pointer not in told:
        yield f"{pointer or '/'}: was cut"  # of an object, the members that are not there are named
    if isinstance(raw, dict) and isinstance(kept, dict):
        for key in {**raw, **kept}:
            if key not in kept and f"{pointer}/…" in told:
                continue  # it may have stood in the rest, of which only declared members have names
            yield from _walk(raw.get(key, MISSING), kept.get(key, MISSING), f"{pointer}/{escape(key)}", told)
    elif isinstance(raw, list) and isinstance(kept, list):
        yield from _walk_lists(raw, kept, pointer, told)
    elif pointer not in told and not _same(raw, kept):
        yield f"{pointer or '/'}: the answer has {str(raw)[:60]!r}, the record {str(kept)[:60]!r}"


def _walk_lists(raw: list[Any], kept: list[Any], pointer: str, told: set[str]) -> Iterator[str]:
    """Items of a list that is named may be left out; those that stay are the answer's, in its order."""
    if len(raw) == len(kept):
        for index, (was, now) in enumerate(zip(raw, kept, strict=True)):
            yield from _walk(was, now, f"{pointer}/{index}", told)
        return
    if pointer not in told:
        yield f"{pointer or '/'}: {len(raw)} items in the answer, {len(kept)} in the record"
    rest = iter(raw)
    for index, now in enumerate(kept):
        place = f"{pointer}/{index}"
        if not any(not list(_walk(was, now, place, told)) for was in rest):
            yield f"{place}: not an item of the answer"


def _same(raw: Any, kept: Any) -> bool:
    if raw is CUT:
        return False
    if isinstance(kept, bool) or isinstance(raw, bool):
        return raw is kept
    if isinstance(raw, Decimal) and isinstance(kept, int | float):
        return raw == kept or float(raw) == float(kept)
    return type(raw) is type(kept) and bool(raw == kept)


def leaves(value: Any, pointer: str = "", *, keys: bool = True) -> Iterator[tuple[str, Any]]:
    """(pointer, scalar) of every scalar, and (pointer, key) of every key."""
    if isinstance(value, dict):
        for key, child in value.items():
            if keys:
                yield f"{pointer}/{escape(key)}", key
            yield from leaves(child, f"{pointer}/{escape(key)}", keys=keys)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, f"{pointer}/{index}", keys=keys)
    else:
        yield pointer, value


def stands_in(text: str, leaf: Any) -> bool:
    """Whether a text holds a scalar, as itself or as JSON writes it."""
    if leaf is None or isinstance(leaf, bool):
        return str(leaf).casefold() in text.casefold() or json.dumps(leaf) in text.casefold()
    if leaf == "":
        return bool(_NOTHING.search(text))
    if isinstance(leaf, str):
        spelled = {leaf, json.dumps(leaf)[1:-1], json.dumps(leaf, ensure_ascii=False)[1:-1]}
        return any(one in text for one in spelled) or leaf in _unescaped(text)
    try:
        return any(float(Decimal(number)) == float(leaf) for number in _NUMBER.findall(text))
    except (InvalidOperation, OverflowError):
        return False


def _unescaped(text: str) -> str:
    return re.sub(r"(?:\\u[0-9a-fA-F]{4})+|\\[\"\\/bfnrt]", lambda found: str(json.loads(f'"{found[0]}"')), text)
