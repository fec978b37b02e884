"""Validate: a parsed value against the acceptance schema (2020-12, formats on) and against its columns.

On a constrained path a violation of what the grammar was to hold is no business finding but an alarm. That is judged as
the model wrote it, against what it was asked: abstentions, sites that the plan leaves, values that a normaliser changed
or a repair touched raise none.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from pipeline.records import Draft, JsonValue, Problem
from pipeline.schema.columns import misfits
from pipeline.schema.normalised import restored
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.shape.policy import NOT_APPLICABLE, Abstain
from pipeline.schema.validator import PatternTimeout
from pipeline.schema.walk import escape
from pipeline.steps.judge import Judge, judge_of

MAX_PROBLEMS = 20
MAX_REASON = 120
MAX_ERRORS = 1000


def validate(draft: Draft, plan: DecodingPlan, attempt: int, *, constrained: bool = False) -> Draft:
    """The draft with every violation added as a problem, the first MAX_PROBLEMS of them."""
    if not draft.parsed:
        return draft
    # What no normaliser could read is told as that: "must be a date" would have the model rewrite what is printed.
    missed = {problem.pointer: problem.message for problem in draft.problems if problem.code == "not_normalised"}
    if plan.abstain == "document" and _says_not_applicable(draft.value, plan):
        found = [Problem("not_applicable", message="the model answered that it is not", attempt=attempt)]
    else:
        judged = find_problems(draft.value, judge_of(plan), attempt, may_abstain=plan.abstain)
        found = list(_bounded(iter(dict.fromkeys(_as_missed(problem, missed) for problem in judged))))
        if constrained and not draft.repairs and any(problem.code == "schema_violation" for problem in found):
            found = _with_leaks(found, draft, plan, attempt)
    return dataclasses.replace(draft, problems=(*draft.problems, *found)) if found else draft


def find_problems(value: JsonValue, judge: Judge, attempt: int, *, may_abstain: Abstain = "none") -> Iterator[Problem]:
    """Everything wrong with a value, as problems with JSON pointers.

    Where the model may abstain, a null that the schema refuses is an abstention: true, and less than was asked for.
    """
    violations: dict[Problem, None] = {}  # `required` reports once per missing key
    try:
        for error in islice(judge.validator.iter_errors(value), MAX_ERRORS):
            abstained = may_abstain == "nullable" and _is_abstention(error)
            place, why = _pointer(error), _reason(error)
            problem = Problem("schema_violation", place, why, attempt)
            violations[Problem("abstained", place, why, attempt) if abstained else problem] = None
    except Exception as error:  # whatever the library or a format check trips over costs this record, not the job
        words = str(error) if isinstance(error, PatternTimeout) else f"the validator failed: {type(error).__name__}"
        yield Problem("not_judged", message=words, attempt=attempt)
        return
    halves = list(_surrogates(value))
    if all(problem.code == "abstained" for problem in violations):
        told = {problem.pointer for problem in violations} | set(halves)
        for pointer, reason in misfits(judge.column, value):
            if pointer not in told:
                yield Problem("value_not_storable", pointer, reason, attempt)
    yield from violations
    for pointer in halves:
        yield Problem("lone_surrogate", pointer, "holds half of a UTF-16 surrogate pair", attempt)


def _as_missed(problem: Problem, missed: Mapping[str, str]) -> Problem:
    if problem.code != "schema_violation" or problem.pointer not in missed:
        return problem
    return dataclasses.replace(problem, message=missed[problem.pointer])


def _with_leaks(found: Sequence[Problem], draft: Draft, plan: DecodingPlan, attempt: int) -> list[Problem]:
    """The problems, where those that a grammar should have prevented are said to be that."""
    raw = {known.pointer: json.loads(known.raw) for known in draft.fields if known.raw is not None}
    touched = {known.pointer for known in draft.fields if known.touched}
    leaks: dict[str, Problem] = {}
    try:
        for error in islice(judge_of(plan).asked.iter_errors(restored(draft.value, raw)), MAX_ERRORS):
            place = _pointer(error)
            if place in touched or place in leaks or (plan.abstain == "nullable" and _is_abstention(error)):
                continue
            for site in unannounced(plan.asked or plan.acceptance, [error], plan.left):
                words = f"{_reason(error)}; the grammar was to hold {site[0] or '/'} {site[1]}"
                leaks[place] = Problem("constraint_leaked", place, words[: 2 * MAX_REASON], attempt)
    except (PatternTimeout, RecursionError):  # then nobody knows; the violation stands as one
        return list(found)
    rest = [problem for problem in found if problem.code != "schema_violation" or problem.pointer not in leaks]
    return [*leaks.values(), *rest][:MAX_PROBLEMS]


def _says_not_applicable(value: JsonValue, plan: DecodingPlan) -> bool:
    """Whether a value is the record that means so, and not one that the schema itself knows."""
    said = isinstance(value, dict) and value.keys() == {NOT_APPLICABLE} and value[NOT_APPLICABLE] is True
    return said and not judge_of(plan).validator.is_valid(value)


def _is_abstention(error: ValidationError) -> bool:
    """Whether nothing is wrong but a null in a field; of a union, in the fields of one branch."""
    if not error.absolute_path and not error.context:
        return False
    if error.instance is None:  # a constant was never offered null: it tells which branch this is
        return isinstance(error.absolute_path[-1], str) and error.validator != "const" if error.absolute_path else False
    branches: dict[int | str, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0] if inner.relative_schema_path else "", []).append(inner)
    return any(all(map(_is_abstention, inside)) for inside in branches.values())


def _bounded(problems: Iterator[Problem]) -> Iterator[Problem]:
    for number, problem in enumerate(problems):
        if number == MAX_PROBLEMS:
            return
        yield problem


def _pointer(error: ValidationError) -> str:
    return "".join(f"/{escape(str(part))}" for part in error.absolute_path)


def _reason(error: ValidationError) -> str:
    """`keyword: expectation`, short, without the offending value (it is in the raw text, and it is untrusted)."""
    expected: Any = error.validator_value
    instance: Any = error.instance
    keyword: Any = error.validator
    if keyword is None:
        text = "false: nothing is allowed here"
    elif keyword == "required":
        text = f"required: {', '.join(name for name in expected if name not in instance)} missing"
    elif keyword == "additionalProperties":
        text = "additionalProperties: a key that the schema does not declare"
    elif isinstance(expected, dict) or len(str(expected)) > MAX_REASON:
        text = f"{keyword}: not satisfied"
    else:
        text = f"{keyword}: must {'match' if keyword == 'pattern' else 'be'} {expected}"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def _surrogates(value: JsonValue, path: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(value, str):
        if not _is_unicode(value):
            yield _joined(path)
    elif isinstance(value, Mapping):
        for key, child in value.items():
            if not _is_unicode(key):
                yield _joined(path)
            yield from _surrogates(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _surrogates(child, (*path, str(index)))


def _joined(path: tuple[str, ...]) -> str:
    """The pointer of a path; made where one is told only, since a long key above many items would cost its square."""
    return "".join(f"/{escape(step)}" for step in path)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
