"""Parse: an engine's completion becomes a Draft. The finish reason is judged before a single character is parsed.

error, or an engine's error code   the engine's problem, whatever text there is
abort                              engine_abort
refusal                            model_refused
length, repetition                 why it was cut, from the raw text: nothing, blanks, a loop, or want of tokens
anything but stop                  engine_error: no reason unknown here means finished
stop                               strict JSON, or why it is not; then what is odd about the value
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.records import Completion, Draft, JsonValue, Problem
from pipeline.steps.answer.degenerate import MIN_BLANKS, periodic_tail, trailing_blanks
from pipeline.steps.answer.invisible import invisible_places
from pipeline.steps.answer.scan import places
from pipeline.steps.answer.strict import (
    CANONICAL_NUMBER,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_QUOTED,
    SAFE_INTEGER,
    Read,
    Unparsable,
    check_bounds,
    is_inexact,
    loads,
    read,
)

__all__ = ["ENGINE_ERRORS", "MAX_CHARACTERS", "MAX_DEPTH", "Unparsable", "check_bounds", "loads", "odd", "parse"]

MAX_WORDS = 500
"""Characters of what an engine or a model says of itself."""
MAX_ODD = 20
"""Of each kind of oddity so many places are named; the last one says how many more there are."""

ENGINE_ERRORS = {
    "prompt_too_long": "document_too_long",
    "prompt_truncated": "prompt_truncated",
    "deadline": "deadline_exceeded",
    "schema_refused": "schema_refused",
    "recording_missing": "recording_missing",
    "recording_stale": "recording_stale",
    "poison": "poison",
}
"""Completion.error as problem codes; any other error is `engine_error`."""


def parse(completion: Completion, attempt: int) -> Draft:
    """The draft of one completion. Never raises: whatever is wrong with the text is a problem of the draft."""
    problem = _finish_problem(completion, attempt)
    if problem is not None:
        return Draft(problems=(problem,))
    try:
        found = read(completion.text)
    except Unparsable as error:
        return Draft(problems=(_text_problem(completion, error, attempt),))
    return Draft(value=found.value, parsed=True, problems=odd(completion.text, found, attempt))


def odd(text: str, found: Read, attempt: int) -> tuple[Problem, ...]:
    """What is odd about a value that was read from a text, though nothing is wrong with it."""
    problems = list(_first(_numbers(text, attempt))) if found.has_long_numbers else []
    if not text.isascii() or "\\" in text or "\x7f" in text:
        problems += _first(_invisible(found.value, attempt))
    return tuple(problems)


def _finish_problem(completion: Completion, attempt: int) -> Problem | None:
    """What the finish reason alone decides, or None for `stop`."""
    reason: str = completion.finish_reason
    detail = completion.detail[:MAX_WORDS]
    if reason == "error" or completion.error:
        code = ENGINE_ERRORS.get(completion.error, "engine_error")
        return Problem(code, message=detail or "the engine reported an error", attempt=attempt)
    if reason == "abort":
        return Problem("engine_abort", message=detail or "the engine aborted the request", attempt=attempt)
    if completion.refusal.strip():
        return Problem("model_refused", message=completion.refusal.strip()[:MAX_WORDS], attempt=attempt)
    if reason in ("length", "repetition"):
        return _cut_problem(completion, attempt)
    if reason != "stop":  # an engine that knows more reasons than this module: none of them means finished
        return Problem("engine_error", message=f"unknown finish reason {reason[:MAX_QUOTED]!r}", attempt=attempt)
    return None


def _cut_problem(completion: Completion, attempt: int) -> Problem:
    """Why an answer did not end by itself."""
    text, tokens = completion.text, completion.output_tokens
    blanks = trailing_blanks(text)
    if blanks >= MIN_BLANKS:
        message = f"the answer was cut after {blanks} blanks in a row; write compact JSON"
        return Problem("runaway_whitespace", message=message, attempt=attempt)
    if not text.strip() and completion.finish_reason == "length":
        if completion.reasoning.strip():  # room, not another prompt: the answer was still to come
            message = f"{tokens} tokens went into reasoning; there is no answer yet"
            return Problem("truncated", message=message, attempt=attempt)
        return Problem("empty_output", message="the answer was cut before it held anything", attempt=attempt)
    tail = periodic_tail(text[-MAX_CHARACTERS:], sure=completion.finish_reason == "repetition")
    if tail is not None:
        times = (len(text[-MAX_CHARACTERS:]) - tail.start) // tail.period
        message = f"the answer repeated {tail.period} characters {times} times until it was cut"
        return Problem("repetition", message=message, attempt=attempt)
    if completion.finish_reason == "repetition":
        return Problem("repetition", message="the answer repeated itself until it was stopped", attempt=attempt)
    return Problem("truncated", message=f"the answer was cut after {tokens} tokens; keep it shorter", attempt=attempt)


def _text_problem(completion: Completion, error: Unparsable, attempt: int) -> Problem:
    if error.code == "empty_output" and completion.reasoning.strip():
        # Before the constraint is blamed: where the reasoning parser swallows the answer, the grammar did its work.
        message = "no answer, but text in the reasoning channel, which is not read as one"
        return Problem("channel_mismatch", message=message, attempt=attempt)
    if completion.constrained and not error.is_json:
        # The grammar cannot have ended here, so the engine is at fault: never repaired, never the document's.
        return Problem("constraint_failed", message=f"finished under the constraint, but {error}", attempt=attempt)
    return Problem(error.code, error.pointer, str(error), attempt)


def _numbers(text: str, attempt: int) -> Iterator[Problem]:
    for place in places(text):
        literal = text[place.start : place.end]
        if place.is_key or len(literal) < 6 or not CANONICAL_NUMBER.fullmatch(literal):
            continue
        if not literal.lstrip("-").isdigit():
            if is_inexact(literal, float(literal)):
                message = f"{literal[:MAX_QUOTED]} became {float(literal)!r}, the nearest double"
                yield Problem("number_inexact", place.pointer, message, attempt)
        elif abs(int(literal)) > SAFE_INTEGER:
            message = f"{literal[:MAX_QUOTED]} is beyond 2^53: other readers of JSON may round it"
            yield Problem("integer_beyond_double", place.pointer, message, attempt)


def _invisible(value: JsonValue, attempt: int) -> Iterator[Problem]:
    for pointer, character in invisible_places(value):
        yield Problem("invisible_characters", pointer, f"holds {character}", attempt)


def _first(problems: Iterator[Problem]) -> list[Problem]:
    """The first MAX_ODD, and how many more there are."""
    found = list(problems)
    if len(found) <= MAX_ODD:
        return found
    last = found[MAX_ODD - 1]
    more = f"and {len(found) - MAX_ODD + 1} places more"
    return [*found[: MAX_ODD - 1], Problem(last.code, "", more, last.attempt)]
