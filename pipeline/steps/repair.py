"""Repair: make JSON of a finished but malformed answer, and leave a trace of every change.

Only answers that ended with `stop` off the constrained path get here. Taking fences and blanks away leaves the answer
as the model gave it. JSON that stands in prose may be an example or a draft rather than the answer, and json-repair
changes text: either makes the document degraded at best.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator

from pipeline.records import Completion, Draft, JsonValue, Problem, Repair
from pipeline.steps.parse import Unparsable, check_bounds, loads

MAX_REPAIRABLE_CHARACTERS = 1 << 12
"""json-repair's time grows with the square of the text and worse: at this size the worst found should
take about half a second (scaled from 7 s at 16 kB; tests hold it below 4 s)."""
MAX_NAMED_REPAIRS = 20
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_NO_PROSE = re.compile(r"^[ \t]*```[A-Za-z0-9_-]*[ \t]*$|[\s\ufeff]+", re.MULTILINE)  # half a fence is no prose either
_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.")
_NUMBER = re.compile(r"(?<![\w.+-])-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
_PUNCTUATION = re.compile(r"[\s{}\[\]:,\"'\\`“”]+")


def repair(draft: Draft, completion: Completion, attempt: int) -> Draft:
    """The draft with a value, where one can be had; otherwise the draft as it came."""
    if draft.parsed or completion.finish_reason != "stop" or [p.code for p in draft.problems] != ["not_json"]:
        return draft
    found = _unwrap(completion.text)
    if found is None:
        return draft
    candidate, prose = found
    around = len(completion.text.strip()) - len(candidate)
    removed = Repair("wrapper_removed", detail=f"{around} characters around the JSON", attempt=attempt)
    message = f"{prose} characters of other text stood around the JSON"
    unwrapped = Draft(
        problems=(Problem("wrapped_in_prose", message=message, attempt=attempt),) if prose else (),
        repairs=(removed,) if around else (),
    )
    try:
        return dataclasses.replace(unwrapped, value=loads(candidate), parsed=True)
    except Unparsable as error:
        if error.code != "not_json":
            return dataclasses.replace(draft, problems=(Problem(error.code, message=str(error), attempt=attempt),))
    return _with_json_repair(draft, candidate, unwrapped, attempt)


def _unwrap(text: str) -> tuple[str, int] | None:
    """The one JSON candidate in an answer, and how many characters of prose, not fences and blanks, are around it.

    The candidate is the only fenced block, or the only thing in brackets; None if that is ambiguous. Brackets that
    never close run to the end of the text.
    """
    blocks = list(_FENCED.finditer(text))
    if len(blocks) > 1:
        return None
    inner = blocks[0][1] if blocks else text
    outside = [text[: blocks[0].start()], text[blocks[0].end() :]] if blocks else []
    start = re.search(r"[{\[]", inner)
    if start is None:
        return None
    end = _end_of_brackets(inner, start.start())
    if re.search(r"[{\[]", inner[end:]):
        return None
    prose = _NO_PROSE.sub("", "\n".join([*outside, inner[: start.start()], inner[end:]]))
    return inner[start.start() : end].rstrip(), len(prose)


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


def _with_json_repair(draft: Draft, text: str, unwrapped: Draft, attempt: int) -> Draft:
    import json_repair

    if len(text) > MAX_REPAIRABLE_CHARACTERS:
        return draft
    try:
        check_bounds(text)
        value, log = json_repair.loads(text, skip_json_loads=True, logging=True)
        value = loads(json.dumps(value))  # strict again: json-repair makes infinities, and halves surrogate pairs
    except (Unparsable, ValueError, RecursionError, IndexError, TypeError, AttributeError, KeyError) as error:
        # json-repair promises to raise nothing; its issue tracker knows better. The document keeps its problem.
        return _not_repaired(draft, "repair_failed", repr(error)[:200], attempt)
    if not isinstance(value, dict | list) or not value:
        return draft
    if not _says_the_same(text, value):
        return _not_repaired(draft, "repair_refused", "it changed or dropped content", attempt)
    notes = [str(entry.get("text", entry))[:200] for entry in log] or ["punctuation changed, without further notes"]
    count = len(notes)
    if count > MAX_NAMED_REPAIRS:
        notes[MAX_NAMED_REPAIRS:] = [f"{count - MAX_NAMED_REPAIRS} further changes"]
    named = [Repair("json_repair", detail=note, attempt=attempt) for note in notes]
    problem = Problem("json_repaired", message=f"{count} changes made the answer JSON", attempt=attempt)
    problems, repairs = (*unwrapped.problems, problem), (*unwrapped.repairs, *named)
    return Draft(value=value, parsed=True, problems=problems, repairs=repairs)


def _not_repaired(draft: Draft, kind: str, detail: str, attempt: int) -> Draft:
    return dataclasses.replace(draft, repairs=(*draft.repairs, Repair(kind, detail=detail, attempt=attempt)))


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
