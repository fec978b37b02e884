"""Parse: an engine's completion becomes a Draft. The finish reason is judged before a single character is parsed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from pipeline.records import Completion, Draft, JsonValue, Problem

MAX_CHARACTERS = 1 << 20
MAX_DEPTH = 64

ENGINE_ERRORS = {
    "prompt_too_long": "document_too_long",
    "deadline": "deadline_exceeded",
    "schema_refused": "schema_refused",
    "recording_missing": "recording_missing",
    "recording_stale": "recording_stale",
}
"""Completion.error as problem codes; any other error is `engine_error`."""


class Unparsable(ValueError):
    """Text that is not one JSON value by the rules here; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def parse(completion: Completion, attempt: int) -> Draft:
    """The draft of one completion. Never raises: whatever is wrong with the text is a problem of the draft."""
    problem = _finish_problem(completion, attempt)
    if problem is not None:
        return Draft(problems=(problem,))
    try:
        return Draft(value=loads(completion.text), parsed=True)
    except Unparsable as error:
        return Draft(problems=(_text_problem(completion, error, attempt),))


def _finish_problem(completion: Completion, attempt: int) -> Problem | None:
    """What the finish reason alone decides, or None for `stop`."""
    reason: str = completion.finish_reason
    detail = completion.detail
    if reason == "error" or completion.error:
        code = ENGINE_ERRORS.get(completion.error, "engine_error")
        return Problem(code, message=detail or "the engine reported an error", attempt=attempt)
    if reason == "abort":
        return Problem("engine_abort", message=detail or "the engine aborted the request", attempt=attempt)
    if reason == "length":
        message = f"the answer was cut after {completion.output_tokens} tokens; keep it shorter"
        return Problem("truncated", message=message, attempt=attempt)
    if reason == "repetition":
        return Problem("repetition", message="the answer repeated itself until it was stopped", attempt=attempt)
    if reason != "stop":  # an engine that knows more reasons than this module: none of them means finished
        return Problem("engine_error", message=f"unknown finish reason {reason!r}", attempt=attempt)
    return None


def _text_problem(completion: Completion, error: Unparsable, attempt: int) -> Problem:
    if completion.constrained and error.code in ("empty_output", "not_json"):
        # The grammar cannot have ended here, so the engine is at fault: never repaired, never the document's.
        return Problem("constraint_failed", message=f"finished under the constraint, but {error}", attempt=attempt)
    if error.code == "empty_output" and completion.reasoning.strip():
        return Problem("empty_output", message="text came in the reasoning channel only", attempt=attempt)
    return Problem(error.code, message=str(error), attempt=attempt)


def loads(text: str) -> JsonValue:
    """Strict JSON: one value, no duplicate keys, finite numbers, bounded size and depth.

    Raises:
        Unparsable: with the problem code of what is wrong.
    """
    check_bounds(text)
    if not text.strip():
        raise Unparsable("empty_output", "the answer is empty")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise Unparsable("not_json", f"the answer is not JSON: {error.msg} at character {error.pos}") from error
    except Unparsable:
        raise
    except ValueError as error:  # CPython refuses integers of more than 4300 digits
        raise Unparsable("number_not_finite", "an integer has thousands of digits") from error


def check_bounds(text: str) -> None:
    """Refuse text that would cost a parser unbounded memory or stack. Brackets inside strings are not depth.

    Raises:
        Unparsable: with code `json_too_large`.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unparsable(
            "json_too_large", f"the answer has {len(text)} characters; at most {MAX_CHARACTERS} are parsed"
        )
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = in_string = escaped = 0
    for character in text:
        if in_string:
            in_string, escaped = (1, 0) if escaped else (character != '"', character == "\\")
        elif character == '"':
            in_string = 1
        elif character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Unparsable("json_too_large", f"the answer nests deeper than {MAX_DEPTH} levels")
        elif character in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Unparsable("duplicate_key", f"the key {repeated[:40]!r} occurs more than once in one object")
    return value


def _no_constant(name: str) -> None:
    raise Unparsable("number_not_finite", f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unparsable("number_not_finite", f"{text[:40]} is beyond the range of a double")
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise Unparsable("number_not_finite", f"{text[:40]} is too small for a double")
    return value
