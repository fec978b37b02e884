"""Outcomes for `bench.gate` that no model made: gold records with errors of stated rates.

They stand in for a model that is mostly right, under a real schema and with real values: what an error does to the
comparison is real, how often it comes is assumed (`RATES`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.gate_arms import KINDS, SEEDS, TEXTS, save
from bench.gate_arms import NAME as SCHEMA
from bench.gate_arms import SET as DOCUMENTS
from bench.gold import Gold, gold
from pipeline.records import Attempt, Field, Outcome, Problem

CHARACTERS = 3
"""Of a token, about."""
BUDGET = 48
"""Tokens that the short budget leaves."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Chances: that a value is left out, that it is another document's, that the first answer is no JSON as it came.
    `longer` is how much longer answers are."""

    left_out: float = 0.03
    wrong: float = 0.03
    prose: float = 0.0
    longer: float = 1.0
    kinds: tuple[str, ...] = KINDS
    short: bool = False


RATES = {
    **{f"base {number}": Rates() for number in range(len(SEEDS))},
    "worse prompt": Rates(left_out=0.10, wrong=0.08),
    "order reversed": Rates(wrong=0.10),
    "constraint off": Rates(prose=0.10),
    "enum dropped": Rates(kinds=KINDS[1:]),
    "short budget": Rates(short=True),
    "other model": Rates(left_out=0.06, wrong=0.06, prose=0.05, longer=1.1),
}


def derive(folder: Path, most: int) -> None:
    """Write the outcomes of every arm. Of more documents than there are, some come again, with other errors.

    Raises:
        InputError: the set is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = gold(DOCUMENTS, most)
    items = [_again(known[number % len(known)], number // len(known)) for number in range(most)]
    for name, rates in RATES.items():
        generator = random.Random(f"derived {name}")
        save(folder, name, [_outcome(item, items, rates, generator) for item in items])


def _again(item: Gold, time: int) -> Gold:
    return replace(item, document=replace(item.document, id=f"{item.document.id} {time}"))


def _outcome(item: Gold, others: Sequence[Gold], rates: Rates, generator: random.Random) -> Outcome:
    kind = KINDS[0] if item.record["house_number"] else KINDS[1] if item.record["road"] else KINDS[2]
    record: dict[str, Any] = {"kind": kind if kind in rates.kinds else rates.kinds[0]}
    fields = []
    for name in TEXTS:
        value, drawn = item.record[name], generator.random()
        if value is not None and drawn < rates.left_out:
            value = None
        elif value is not None and drawn < rates.left_out + rates.wrong:
            value = generator.choice([one.record[name] for one in others if one.record[name]])
        record[name] = value
        if value is not None:
            fields.append(Field(f"/{name}", "exact" if str(value) in item.document.text else "none"))
    problems, cut = [], False
    tokens = round(len(json.dumps(record)) / CHARACTERS * rates.longer)
    if generator.random() < rates.prose:
        problems.append(Problem("wrapped_in_prose", attempt=1))
    if rates.short and tokens > BUDGET:
        cut, tokens = True, BUDGET
        record |= dict.fromkeys(TEXTS[-2:])
        problems.append(Problem("truncated", attempt=1))
    if record["postcode"] and not any(letter.isdigit() for letter in record["postcode"]):
        problems.append(Problem("rule_broken", "/postcode", attempt=1, severity="degrade"))
    words = "length" if cut else "stop"
    attempt = Attempt(1, "derived", "", True, words, "", 300, 0, tokens, 0.0, 0.0, "")
    place = (item.document.id, item.document.source, SCHEMA)
    status, layer = ("degraded" if problems else "valid"), (3 if cut else 1)
    found = {"problems": tuple(problems), "attempts": (attempt,), "fields": tuple(fields), "record_attempt": 1}
    return Outcome(*place, status, layer, record, **found)  # type: ignore[arg-type]
