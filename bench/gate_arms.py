"""The arms of `bench.gate`: one job as it is, under several seeds, and the same with one thing made worse.

Documents are real addresses (GRISTMILL_SHARED or `../shared`), with a schema of six fields that has an enum and a rule.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.gold import gold
from pipeline.engines import Engine, build
from pipeline.evaluate.measured import Seen, seen_of
from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.records import Document, Outcome
from pipeline.runtime.output.outcomes import from_bytes, outcome_of, to_bytes
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import Example, document_schema
from pipeline.steps.prompt import system_prompt

SET = "addresses_opencage"
NAME = "address@1"
KINDS = ("building", "street", "settlement", "area")
TEXTS = ("house_number", "road", "city", "postcode", "country")
INSTRUCTIONS = """Read the address and fill one record. Take every value from the text as it is printed there.

- kind: building if there is a house number or the name of a house, street if only a road, settlement if only a place,
  area for anything larger.
- house_number, road, city, postcode, country: null where the text has none."""
POOR = "Write a record."
MAX_TOKENS, SHORT = 96, 40
TEMPERATURE = 0.7
SEEDS = (0, 100, 200, 300)


@dataclass(frozen=True, slots=True)
class Arm:
    """What differs from the job as it is. `other`: by the second engine."""

    name: str
    seed: int
    sampling: Mapping[str, Any]
    kinds: tuple[str, ...] = KINDS
    backwards: bool = False
    instructions: str = INSTRUCTIONS
    examples: int = 2
    other: bool = False


PLANTS = ("worse prompt", "order reversed", "constraint off", "enum dropped", "short budget", "other model")


def arms(common: str) -> list[Arm]:
    """All arms. `common` is the kind that the job as it is answers most, which the dropped enum lacks."""
    same = {"max_tokens": MAX_TOKENS, "temperature": TEMPERATURE}
    base = [Arm(f"base {number}", seed, same) for number, seed in enumerate(SEEDS)]
    seed = 400
    planted = (
        Arm("worse prompt", seed, same, instructions=POOR, examples=0),
        Arm("order reversed", seed, same, backwards=True),
        Arm("constraint off", seed, {**same, "constrained": False}),
        Arm("enum dropped", seed, same, kinds=tuple(kind for kind in KINDS if kind != common)),
        Arm("short budget", seed, {**same, "max_tokens": SHORT}),
        Arm("other model", seed, same, other=True),
    )
    assert tuple(arm.name for arm in planted) == PLANTS
    return [*base[:2], *planted, *base[2:]]  # two seeds are enough to begin with


def plan_of(arm: Arm, shown: Sequence[Example], backend: str) -> DecodingPlan:
    """The plan of an arm; its examples are of the kinds that it has."""
    names = ("kind", *TEXTS)
    leaves: dict[str, Any] = {name: {"type": ["string", "null"], "maxLength": 40} for name in TEXTS}
    leaves["kind"] = {"type": "string", "enum": list(arm.kinds)}
    order = names[::-1] if arm.backwards else names
    rule = "self.postcode == null || self.postcode.matches('[0-9]')"
    body = {
        "type": "object",
        "properties": {name: leaves[name] for name in order},
        "required": list(order),
        "additionalProperties": False,
        "x-validations": [
            {"pointer": "/postcode", "rule": rule, "message": "a postcode holds a digit", "severity": "degrade"}
        ],
    }
    schema = document_schema(body, NAME, instructions=arm.instructions)
    kept = tuple(
        Example(one.document, {name: one.record[name] for name in order})
        for one in shown[: arm.examples]
        if one.record["kind"] in arm.kinds
    )
    schema = replace(schema, examples=kept)
    return build_plan(schema, system_prompt(schema), backend=backend, compact_json=True)


def documents(most: int) -> tuple[list[Document], list[Example]]:
    """Documents, and two others as examples.

    Raises:
        InputError: the set is not there.
    """
    items = gold(SET, most + 2)
    shown = []
    for item in items[:2]:
        kind = "building" if item.record["house_number"] else "street" if item.record["road"] else "settlement"
        shown.append(Example(item.document.text, {"kind": kind, **{name: item.record[name] for name in TEXTS}}))
    return [replace(item.document, schema=NAME) for item in items[2:]], shown


async def collect(folder: Path, engines: tuple[Any, Any], most: int, seconds: float) -> list[str]:
    """Run the arms that the folder does not hold yet, for at most about so long; returns the names of those missing.
    Without a second engine its arm is left out.

    Raises:
        GristmillError: an engine does not start, or dies; or the documents are not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts, shown = documents(most)
    began = time.monotonic()
    for second in (False, True):
        config, names = engines[second], [name for name in missing(folder) if (name == "other model") == second]
        if config is None or not names or time.monotonic() - began > seconds:
            continue
        backend = config.backend if config.backend != "auto" else "xgrammar"
        every = [plan_of(arm, shown, backend) for kind in KINDS for arm in arms(kind) if arm.name in names]
        engine = build(config)
        try:
            await engine.start(list({plan.digest: plan for plan in every}.values()))
            for name in names:
                if time.monotonic() - began > seconds:
                    break
                arm = next(one for one in arms(_common(folder)) if one.name == name)
                await _run(engine, arm, plan_of(arm, shown, backend), texts, folder)
                print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        finally:
            await engine.close()
    return missing(folder)


def missing(folder: Path) -> list[str]:
    """The names of the arms that the folder does not hold."""
    return [arm.name for arm in arms("") if not _file(folder, arm.name).exists()]


async def _run(engine: Engine, arm: Arm, plan: DecodingPlan, texts: Sequence[Document], folder: Path) -> None:
    config = ExtractConfig.model_validate(
        {"sampling": {**arm.sampling, "seed": arm.seed}, "retry": {"max_attempts": 1}, "policy": {"ground": "observe"}}
    )
    room = asyncio.Semaphore(64)

    async def one(document: Document) -> Outcome:
        async with room:
            return await extract(document, plan, engine, config)

    save(folder, arm.name, await asyncio.gather(*map(one, texts)))


def save(folder: Path, name: str, outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes of an arm: all of them or none."""
    made = _file(folder, name).with_suffix(".part")
    made.write_bytes(b"".join(to_bytes(one) + b"\n" for one in outcomes))
    os.replace(made, _file(folder, name))


def pools(folder: Path) -> dict[str, dict[str, Seen]]:
    """By arm and document id, what is kept of each outcome."""
    found: dict[str, dict[str, Seen]] = {}
    for arm in arms(""):
        if (path := _file(folder, arm.name)).exists():
            outcomes = (outcome_of(from_bytes(line)) for line in path.read_bytes().splitlines())
            found[arm.name] = {one.document_id: seen_of(one) for one in outcomes}
    return found


def _common(folder: Path) -> str:
    """The kind that the job as it is answers most; the first one before it has run."""
    path = _file(folder, "base 0")
    if not path.exists():
        return KINDS[0]
    records = [(json.loads(line)["record"] or {}).get("kind") for line in path.read_bytes().splitlines()]
    return max(KINDS, key=records.count)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.replace(' ', '_')}.jsonl"
