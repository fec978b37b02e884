"""Lenient: what is wrong with the part of a record that was kept, when what is absent is no fault.

The schema is the acceptance schema without `required`, `minItems`, `minProperties` and `dependentRequired`, but for
what stands inside `not`, `if` and `contains`. Where alternatives then overlap (`oneOf`), the value is refused, and is
not kept: too little rather than a guess.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pipeline.records import JsonValue, Problem
from pipeline.schema.alongside import Part, parts
from pipeline.schema.lately import Lately
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import Undeclared
from pipeline.schema.walk import LISTS, MAPS, SINGLES, escape
from pipeline.steps.judge import judge_of
from pipeline.steps.validate import find_problems

MAX_ERRORS = 1000
_ABSENCE = ("required", "minItems", "minProperties", "dependentRequired")
_NEVER_LENIENT = ("not", "if", "contains")
REQUIRED, MIN_ITEMS = "x-absent-required", "x-absent-minItems"

_PLANS: Lately[tuple[str, str], DecodingPlan] = Lately()
"""By schema name and digest. Bounded by the number of schemas of a job."""


@dataclass(frozen=True, slots=True)
class Findings:
    """`refused` are pointers with reasons: what may not be kept as it is; `abstained` the nulls that may."""

    refused: dict[str, str] = field(default_factory=dict)
    abstained: tuple[Problem, ...] = ()


def find(value: JsonValue, plan: DecodingPlan, attempt: int) -> Findings:
    """What the schema has against a value besides what is missing in it, as deep as it can be told."""
    judge = judge_of(_lenient_plan(plan))
    problems = list(find_problems(value, judge, attempt, may_abstain=plan.abstain))
    refused = {p.pointer: p.message for p in problems if p.code not in ("abstained", "schema_violation")}
    if any(problem.code == "schema_violation" for problem in problems):
        errors = islice(judge.validator.iter_errors(value), MAX_ERRORS)
        refused |= {pointer: why for error in errors for pointer, why in _deepest(error, plan)}
    return Findings(refused, tuple(problem for problem in problems if problem.code == "abstained"))


def known_parts(value: JsonValue, plan: DecodingPlan) -> Iterator[Part]:
    """The value and all inside it with the subschemas that judge them; `required_names` says what those require.

    Raises:
        PatternTimeout: a pattern takes too long.
    """
    lenient = _lenient_plan(plan)
    yield from parts(lenient.acceptance, value, judge_of(lenient).accepts)


def required_names(part: Part) -> list[str]:
    """The keys that a part has to have, in the order of the schema."""
    return list(dict.fromkeys(name for node in part.nodes for name in node.get(REQUIRED, ())))


def declared_names(part: Part) -> list[str]:
    """The keys that are declared for a part."""
    return list(dict.fromkeys(name for node in part.nodes for name in node.get("properties", ())))


def is_open(part: Part) -> bool:
    """Whether an object may have keys that are not declared."""
    return not any(
        node.get("additionalProperties") is False or node.get("unevaluatedProperties") is False for node in part.nodes
    )


def least_items(part: Part) -> int:
    """How many items a list has to have."""
    return max((int(node.get(MIN_ITEMS, 0)) for node in part.nodes), default=0)


def _lenient_plan(plan: DecodingPlan) -> DecodingPlan:
    def made() -> DecodingPlan:
        schema = _lenient(plan.acceptance)
        digest = f"{plan.schema_digest} lenient"
        return dataclasses.replace(plan, acceptance=schema, asked=schema, schema_digest=digest)

    return _PLANS.get((plan.name, plan.schema_digest), made)


def _lenient(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    copy: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _ABSENCE:
            copy[f"x-absent-{keyword}"] = value
        elif keyword in MAPS and isinstance(value, Mapping):
            copy[keyword] = {name: _lenient(child) for name, child in value.items()}
        elif keyword in LISTS and isinstance(value, list):
            copy[keyword] = [_lenient(child) for child in value]
        elif keyword in SINGLES and keyword not in _NEVER_LENIENT:
            copy[keyword] = _lenient(value)
        else:
            copy[keyword] = value
    return copy


def _deepest(error: Any, plan: DecodingPlan) -> Iterator[tuple[str, str]]:
    """Where an error sits: of alternatives, inside the only one that takes the value's own type."""
    if plan.abstain == "nullable" and error.instance is None and error.absolute_path:
        return
    branches: dict[Any, list[Any]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    meant = [inside for inside in branches.values() if all(inner.relative_path for inner in inside)]
    if error.validator in ("anyOf", "oneOf") and len(meant) == 1:
        for inner in meant[0]:
            yield from _deepest(inner, plan)
        return
    pointer = "".join(f"/{escape(str(step))}" for step in error.absolute_path)
    if isinstance(error, Undeclared):
        for key in error.keys:
            yield f"{pointer}/{escape(key)}", f"{error.validator}: a key that the schema does not declare"
        return
    yield pointer, f"{error.validator}: not satisfied"
