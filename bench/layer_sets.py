"""The documents of `bench.layers`: real ones with gold, and what is declared of them beyond their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.gold import INSTRUCTIONS, Gold, gold
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import document_schema
from pipeline.steps.prompt import system_prompt


@dataclass(frozen=True, slots=True)
class Declared:
    """What a job would add to a set's schema: `max_tokens` of one answer, business rules, annotations of leaves."""

    max_tokens: int
    rules: tuple[Mapping[str, str], ...]
    leaves: Mapping[str, Mapping[str, Any]]


def _rule(pointer: str, rule: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "rule": rule, "message": message}


SETS: dict[str, Declared] = {
    "receipts_sroie": Declared(
        256,
        (
            _rule("/total", "self.total == null || self.total.matches('[0-9]')", "a total holds a digit"),
            _rule("/date", "self.date == null || self.date.matches('[0-9]')", "a date holds a digit"),
            _rule("/address", "self.address == null || self.address != self.company", "an address is not the company"),
        ),
        {},
    ),
    "addresses_opencage": Declared(
        256,
        (
            _rule("/postcode", "self.postcode == null || self.postcode.matches('[0-9]')", "a postcode holds a digit"),
            _rule("/road", "self.road == null || self.road != self.country", "a road is not the country"),
        ),
        {},
    ),
    "zh_recipes_howtocook": Declared(
        320,
        (
            _rule("/calories_kcal", "self.calories_kcal == null || self.calories_kcal < 10000", "below 10,000 kcal"),
            _rule("/dish", "size(self.dish) > 0", "a dish has a name"),
        ),
        {"dish": {"x-language": "zh"}},
    ),
}


@dataclass(frozen=True, slots=True)
class Set:
    """Some documents of one schema, decoded under one plan."""

    name: str
    plan: DecodingPlan
    items: tuple[Gold, ...]
    max_tokens: int


def load(name: str, documents: int, backend: str, *, compact: bool) -> Set:
    """The first `documents` short documents of a set.

    Raises:
        InputError: the set is not there.
    """
    declared, items = SETS[name], gold(name, documents)
    plan = _plan(items[0].plan, declared, backend, compact)
    return Set(name, plan, tuple(replace(item, plan=plan) for item in items), declared.max_tokens)


def _plan(bare: DecodingPlan, declared: Declared, backend: str, compact: bool) -> DecodingPlan:
    """The plan of a set's schema with the declarations added."""
    properties = {
        name: {**body, **declared.leaves.get(name, {})} for name, body in bare.acceptance["properties"].items()
    }
    body = {**bare.acceptance, "properties": properties, "x-validations": list(declared.rules)}
    schema = document_schema(body, bare.name, instructions=INSTRUCTIONS)
    return build_plan(schema, system_prompt(schema), backend=backend, compact_json=compact)
