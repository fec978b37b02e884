"""Repair: make JSON of a finished but malformed answer, and leave a trace of every change.

Only answers that ended with `stop` off the constrained path get here. Taking wrapper prose or fences away leaves the
values as the model wrote them; whatever json-repair changes makes the document degraded at best.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator

from pipeline.records import Completion, Draft, JsonValue, Problem, Repair
from pipeline.steps.parse import Unparsable, check_bounds, loads

MAX_REPAIRABLE_CHARACTERS = 1 << 12
"""json-repair's time grows with the square of the text and worse: at this size the worst found takes half a second."""
MAX_NAMED_REPAIRS = 20
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")
_NUMBER = re.compile(r"(?<![\w.+-])-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_PUNCTUATION = re.compile(r"[\s{}\[\]:,\"'\\`“”]+")


def repair(draft: Draft, completion: Completion, attempt: int) -> Draft:
    """The draft with a value, where one can be had; otherwise the draft as it came."""
    if draft.parsed or completion.finish_reason != "stop" or [p.code for p in draft.problems] != ["not_json"]:
        return draft
    candidate = _unwrap(completion.text)
    if candidate is None:
        return draft
    around = len(completion.text.strip()) - len(candidate)
    repairs = [Repair("wrapper_removed", detail=f"{around} characters around the JSON")] if around else []
    try:
        return Draft(value=loads(candidate), parsed=True, repairs=tuple(repairs))
    except Unparsable as error:
        if error.code != "not_json":
            return dataclasses.replace(draft, problems=(Problem(error.code, message=str(error), attempt=attempt),))
    return _with_json_repair(draft, candidate, repairs, attempt)


def _unwrap(text: str) -> str | None:
    """The one JSON candidate in an answer: the only fenced block, or the only thing in brackets. None if ambiguous.

    Brackets that never close run to the end of the text.
    """
    blocks = _FENCED.findall(text)
    if len(blocks) > 1:
        return None
    inner = (blocks[0] if blocks else text).strip()
    start = re.search(r"[{\[]", inner)
    if start is None:
        return None
    end = _end_of_brackets(inner, start.start())
    return None if re.search(r"[{\[]", inner[end:]) else inner[start.start() : end]


def _end_of_brackets(text: str, start: int) -> int:
    depth, in_string = 0, False
    for match in _MARK.finditer(text, start):
        mark = match[0]
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            depth += 1 if mark in "{[" else -1
            if depth == 0:
                return match.end()
    return len(text)


def _with_json_repair(draft: Draft, text: str, repairs: list[Repair], attempt: int) -> Draft:
    import json_repair

    if len(text) > MAX_REPAIRABLE_CHARACTERS:
        return draft
    try:
        check_bounds(text)
        value, log = json_repair.loads(text, skip_json_loads=True, logging=True)
        value = loads(json.dumps(value))  # strict again: json-repair makes infinities, and halves surrogate pairs
    except (Unparsable, ValueError, RecursionError, IndexError, TypeError, AttributeError, KeyError) as error:
        # json-repair promises to raise nothing; its issue tracker knows better. The document keeps its problem.
        return dataclasses.replace(draft, repairs=(Repair("repair_failed", detail=repr(error)[:200]),))
    if not isinstance(value, dict | list) or not value:
        return draft
    if not _says_the_same(text, value):
        return dataclasses.replace(draft, repairs=(Repair("repair_refused", detail="it changed or dropped content"),))
    notes = [str(entry.get("text", entry))[:200] for entry in log] or ["punctuation changed, without further notes"]
    named = [Repair("json_repair", detail=note) for note in notes[:MAX_NAMED_REPAIRS]]
    if len(notes) > MAX_NAMED_REPAIRS:
        named.append(Repair("json_repair", detail=f"{len(notes) - MAX_NAMED_REPAIRS} further changes"))
    problem = Problem("json_repaired", message=f"{len(notes)} changes made the answer JSON", attempt=attempt)
    return Draft(value=value, parsed=True, problems=(problem,), repairs=(*repairs, *named))


def _says_the_same(text: str, value: JsonValue) -> bool:
    """Whether a repaired value holds every key, scalar and container of the text, in order, and none besides.

    json-repair reads 00123 as 123, keeps the last of two equal keys, invents "" where a value is missing, and makes a
    list of an object that lacks one. A repair may add quotes, commas and closers; it may not do that.
    """
    openers = json.dumps(value)
    if any(text.count(opener) != openers.count(opener) for opener in "{["):
        return False
    scalars = list(_scalars(value))
    invented = scalars.count("") > sum(text.count(quotes) for quotes in ('""', "''"))
    return not invented and _substance(_ESCAPED.sub(_unescaped, text)) == _substance(", ".join(scalars))


def _scalars(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from _scalars(child)
    elif isinstance(value, list):
        for child in value:
            yield from _scalars(child)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _substance(text: str) -> str:
    """What is left of JSON, or of its keys and scalars, without punctuation, blanks and case; numbers in one form."""
    text = _PUNCTUATION.sub("", _NUMBER.sub(_canonical_number, text)).casefold()
    return text.replace("none", "null")


def _canonical_number(match: re.Match[str]) -> str:
    number = match[0]
    return number if number.lstrip("-").isdigit() else repr(float(number))


def _unescaped(match: re.Match[str]) -> str:
    try:
        return str(json.loads(f'"{match[0]}"'))
    except ValueError:
        return match[0]
