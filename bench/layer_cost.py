"""What a document costs after the model has answered, step by step: parse, repair, normalise, validate, rules, ground.

Receipts with everything declared that a schema can declare: normalisers, five business rules, a lookup, items that
must differ, dates that must not decrease, and grounding. The answers are right records as they are printed, so that
every step has all its work; `extract` runs as in a job, with its trace as the clock.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.documents import Receipt, receipts
from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.records import Completion, Document, Outcome, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import document_schema
from pipeline.steps.prompt import system_prompt

STEPS = ("parse", "repair", "normalise", "validate", "rules", "ground")
TEXTS = 200
ROUNDS = 5
TARGET_MILLIS = 2.0
MAX_LINES = 8
CURRENCIES = ("currencies.csv", "code")
CODES = [
    "MYR",
    "EUR",
    "USD",
    "GBP",
    "PLN",
    "JPY",
    "CNY",
    "TWD",
    "THB",
    "INR",
    "BRL",
    "CHF",
    "SEK",
    "AUD",
    "IDR",
    "HKD",
    "NZD",
    "SGD",
    "CAD",
    "KRW",
]
_AMOUNT = re.compile(r"(?<![\w.,/-])(?:0|[1-9]\d{0,4})\.\d{2}(?![\d.,/])")
_DAY = re.compile(r"\d{1,2}/(?:0?[1-9]|1[0-2])/(?:19|20)\d{2}|(?:19|20)\d{2}-\d{2}-\d{2}")
_DATE = {"type": ["string", "null"], "format": "date", "x-normalise": ["trim", {"date": {"locale": "en_GB"}}]}
_AMOUNTS = {"type": ["number", "null"], "minimum": 0, "x-normalise": ["trim", "decimal-point"]}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "company": {"type": ["string", "null"], "maxLength": 120, "x-normalise": ["trim", "collapse"]},
        "date": _DATE,
        "paid_on": _DATE,
        "address": {"type": ["string", "null"], "maxLength": 240, "x-normalise": ["collapse", "trim"]},
        "currency": {
            "type": "string",
            "pattern": "^[A-Z]{3}$",
            "x-normalise": ["trim", {"currency": {"locale": "en_MY"}}],
            "x-ground": False,
        },
        "total": _AMOUNTS,
        "lines": {
            "type": "array",
            "maxItems": 50,
            "x-unique-by": ["/number"],
            "items": {
                "type": "object",
                "properties": {"number": {"type": "integer", "x-ground": False}, "amount": _AMOUNTS},
                "required": ["number", "amount"],
            },
        },
    },
    "required": ["company", "date", "paid_on", "address", "currency", "total", "lines"],
    "x-order": ["/date", "/paid_on"],
    "x-validations": [
        {"rule": "self.total == null || self.total >= 0.0", "message": "a total is not negative", "pointer": "/total"},
        {"rule": "self.lines.all(l, l.amount == null || l.amount >= 0.0)", "message": "no line is negative"},
        {"rule": "size(self.lines) <= params.most", "message": "too many lines", "pointer": "/lines"},
        {"rule": "self.company == null || self.company != self.address", "message": "the company is no address"},
        {"rule": "self.currency in params.currencies", "message": "a known currency", "pointer": "/currency"},
    ],
}
CONFIG = ExtractConfig.model_validate(
    {
        "policy": {"ground": "degrade"},
        "retry": {"max_attempts": 1},
        "params": {"most": 50, "currencies": CODES},
        "lookups": [{"pointer": "/currency", "path": CURRENCIES[0], "column": CURRENCIES[1]}],
    }
)
LOOKUPS = {CURRENCIES: frozenset(CODES)}


@dataclass
class Clock:
    """A trace for `extract`: CPU microseconds (all threads of the process) between one step's end and the next's."""

    micros: dict[str, float] = field(default_factory=dict)
    last: int = 0

    def note(self, name: str, _made: object) -> None:
        now = time.process_time_ns()
        self.micros[name] = self.micros.get(name, 0.0) + (now - self.last) / 1e3
        self.last = time.process_time_ns()


@dataclass(frozen=True)
class _Answering:
    """Gives each document, told by its text, its answer."""

    answers: dict[str, str]

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        text = next(answer for known, answer in self.answers.items() if known in prompt.user)
        return Completion(text, "stop", constrained=True, output_tokens=len(text) // 3)


def measure(texts: int = TEXTS, rounds: int = ROUNDS) -> dict[str, Any]:
    """Medians and 99th percentiles per document, microseconds of CPU, over all rounds but a first one that warms."""
    schema = document_schema(SCHEMA, "receipt_with_rules@1")
    plan = build_plan(schema, system_prompt(schema), backend="xgrammar", compact_json=True)
    known = receipts(texts)
    clocks: list[Clock] = []
    outcomes: list[Outcome] = []
    for number in range(rounds + 1):
        for receipt in known:
            clock, outcome = _one(receipt, plan)
            if number:
                clocks.append(clock)
                outcomes.append(outcome)
    totals = [sum(clock.micros.get(step, 0.0) for step in STEPS) for clock in clocks]
    statuses = {s: sum(o.status == s for o in outcomes) for s in ("valid", "degraded", "rejected")}
    return {
        "documents": len(clocks),
        "characters_median": _quantile([float(len(one.text)) for one in known], 0.5),
        "leaves_median": _quantile([float(len(outcome.fields)) for outcome in outcomes], 0.5),
        "statuses": statuses,
        "codes": _codes(outcomes),
        "all_steps": _told(totals),
        "steps": {step: _told([clock.micros.get(step, 0.0) for clock in clocks]) for step in STEPS},
        "target_median_millis": TARGET_MILLIS,
    }


def _one(receipt: Receipt, plan: DecodingPlan) -> tuple[Clock, Outcome]:
    engine = _Answering({receipt.text: _answer(receipt)})
    clock = Clock()
    document = Document(receipt.id, receipt.text, "in.jsonl#1", plan.name)
    clock.last = time.process_time_ns()
    return clock, asyncio.run(extract(document, plan, engine, CONFIG, lookups=LOOKUPS, trace=clock.note))


def _answer(receipt: Receipt) -> str:
    """The record as a model writes it that was asked for what is printed."""
    record, amounts = receipt.record, _AMOUNT.findall(receipt.text)[:MAX_LINES]
    date = _DAY.search(record["date"] or "")
    day = date[0] if date else None
    total = None if record["total"] is None else f"{record['total']:.2f}"
    said = {
        "company": record["company"],
        "date": day,
        "paid_on": day,
        "address": record["address"],
        "currency": "RM" if record["currency"] in (None, "MYR") else record["currency"],
        "total": total,
        "lines": [{"number": number, "amount": amount} for number, amount in enumerate(amounts, 1)],
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _codes(outcomes: Sequence[Outcome]) -> dict[str, int]:
    found: dict[str, int] = {}
    for outcome in outcomes:
        for code in {problem.code for problem in outcome.problems}:
            found[code] = found.get(code, 0) + 1
    return found


def _told(micros: Sequence[float]) -> dict[str, float]:
    return {"median_micros": _quantile(micros, 0.5), "p99_micros": _quantile(micros, 0.99)}


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


def report(part: dict[str, Any]) -> str:
    """The same for a terminal."""
    median, worst = (part["all_steps"][key] / 1e3 for key in ("median_micros", "p99_micros"))
    verdict = "met" if median <= part["target_median_millis"] else "MISSED"
    lines = [
        "",
        f"after the answer, one thread: median {median:.2f} ms, P99 {worst:.2f} ms of CPU per document "
        f"(target <= {part['target_median_millis']:.0f} ms median: {verdict})",
        f"  {part['documents']} documents of {part['characters_median']:.0f} characters and "
        f"{part['leaves_median']:.0f} leaves (medians); {part['statuses']}, {part['codes']}",
    ]
    for step, row in part["steps"].items():
        lines.append(f"  {row['median_micros']:9.1f} µs, P99 {row['p99_micros']:9.1f} µs  {step}")
    return "\n".join(lines)
