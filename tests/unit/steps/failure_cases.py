"""Published failure cases: the file, its recipes, and how one becomes a document, an answer and a schema.

A case is `{id, layer, kind, input, expected}`. `input` may hold `schema`, `document`, `model_output` and `engine_event`
(`finish_reason`, `reasoning_content`, `outputs`). Recipes: `{"$repeat": [s, n]}`, `{"$concat": […]}`, `{"$hex": …}`;
in schemas `{"$recipe": …}`. The file that is read may be another than the one these lines were written for.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import Answers, completion, plan_of
from support import config as config_of

from pipeline.errors import SchemaError
from pipeline.flow import extract
from pipeline.job import ExtractConfig, InputConfig
from pipeline.records import Completion, Document, Outcome
from pipeline.runtime.input.documents import document as read_document
from pipeline.runtime.input.formats import Row
from pipeline.schema.plan import DecodingPlan, refused_plan
from pipeline.schema.registry import check_schema

ROOT = Path(__file__).resolve().parents[3]
LAYERS = frozenset({"parse", "repair", "validate", "retry", "extraction_practice"})
ANY: dict[str, Any] = {"type": ["object", "array"]}
MOST_TOKENS = 512
"""Of one answer: what `settings` allow."""
MAX_STRINGS = 2000
"""Members of a generated enum: what a document meets does not depend on how many there are."""


class UnknownRecipe(ValueError):
    """A case is written in a notation that is not known here."""


@dataclass(frozen=True)
class Seen:
    """One case as it went through `extract`. `sent` are the completions in turn, `engine` knows what it was asked."""

    case: dict[str, Any]
    document: Document
    plan: DecodingPlan
    engine: Answers
    outcome: Outcome
    sent: tuple[Completion, ...]
    config: ExtractConfig
    seconds: float = field(default=0.0)

    @property
    def text(self) -> str:
        return self.sent[0].text

    @property
    def reason(self) -> str:
        return self.sent[0].finish_reason

    @property
    def codes(self) -> set[str]:
        return {problem.code for problem in self.outcome.problems}


@cache
def cases() -> dict[str, dict[str, Any]]:
    """All cases by id; none where the file is absent."""
    path = ROOT / os.environ.get("GRISTMILL_SHARED", "../shared") / "cases" / "failures.jsonl"
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    return {row["id"]: row for row in rows}


def expressible(case: dict[str, Any]) -> bool:
    """Whether a case says what a model answered, or is of a layer that is all about that."""
    given = case.get("input", {})
    answered = "model_output" in given or "outputs" in given.get("engine_event", {})
    return answered or str(case.get("layer", "")).split(":")[0] in LAYERS


def parameters() -> list[Any]:
    """One parameter per case that is expressible; where there are none, one that is skipped and says why."""
    told = {key: case for key, case in cases().items() if expressible(case)}
    if not told:
        reason = "the shared failure cases are absent: set GRISTMILL_SHARED"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    return [pytest.param(case, id=f"{key}-{case['kind']}") for key, case in told.items()]


def case_of(key: str) -> dict[str, Any]:
    """The case with an id that a test has more to say about; skips where it is absent."""
    if key not in cases():
        pytest.skip(f"the shared failure cases do not hold {key}")
    return cases()[key]


def bytes_of(recipe: Any) -> bytes:
    """Text or bytes that a case writes out or describes."""
    if isinstance(recipe, str):
        return recipe.encode("utf-8", "surrogatepass")
    if isinstance(recipe, list):
        return b"".join(map(bytes_of, recipe))
    if isinstance(recipe, dict) and len(recipe) == 1:
        (name, given), *_ = recipe.items()
        if name == "$repeat":
            return bytes_of(given[0]) * int(given[1])
        if name == "$concat":
            return b"".join(map(bytes_of, given))
        if name == "$hex":
            return bytes.fromhex(given)
    raise UnknownRecipe(f"{json.dumps(recipe)[:80]} describes no text")


def text_of(recipe: Any) -> str:
    """The same as an engine hands it out: detokenisers put U+FFFD for what is not UTF-8."""
    data = bytes_of(recipe)
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def schema_of(recipe: Any) -> Any:
    """A schema with its recipes carried out."""
    if isinstance(recipe, list):
        return [schema_of(item) for item in recipe]
    if not isinstance(recipe, dict):
        return recipe
    if "$recipe" not in recipe:
        return {key: schema_of(value) for key, value in recipe.items()}
    if recipe["$recipe"] == "strings":
        return [recipe["format"] % number for number in range(min(recipe["count"], MAX_STRINGS))]
    if recipe["$recipe"] == "vary_annotation":
        return {**schema_of(recipe["base"]), recipe["key"]: "one of many"}
    raise UnknownRecipe(f"the recipe {recipe['$recipe']!r} of a schema is not known")


def plan_for(case: dict[str, Any]) -> DecodingPlan:
    """The plan that a job would have: a refused one where the schema cannot be used."""
    body = case["input"].get("schema", ANY)
    body = schema_of(body[0] if isinstance(body, list) else body)
    name = f"{case['id']}@1"
    try:
        check_schema(body, name)
        return plan_of(body, name)
    except SchemaError as error:
        return refused_plan(name, "", error.message)


def completions_of(case: dict[str, Any], **changed: Any) -> tuple[Completion, ...]:
    """What the model answers, in turn: `outputs`, or one answer for ever. `changed` are fields of completions."""
    given = case["input"]
    event = given.get("engine_event", {})
    texts = event.get("outputs", [given.get("model_output", "")])
    reason = changed.pop("finish_reason", event.get("finish_reason", "stop"))
    told: dict[str, Any] = {
        "reasoning": text_of(event.get("reasoning_content") or ""),
        "refusal": event.get("refusal") or "",
    }
    return tuple(
        completion(text, reason, **{"output_tokens": min(len(text), MOST_TOKENS), **told, **changed})
        for text in map(text_of, texts)
    )


def document_for(case: dict[str, Any], plan: DecodingPlan) -> Document:
    """The document as it comes out of reading, with what reading finds."""
    recipe = case["input"].get("document", "a document")
    if isinstance(recipe, dict) and not recipe.keys() & {"$repeat", "$concat", "$hex"}:
        recipe = json.dumps(recipe)
    data = bytes_of(recipe)
    row = Row(0, 0, len(data), id=case["id"], schema=plan.name, text=data)
    return read_document(row, "in.jsonl", "in.jsonl#1", InputConfig(path="x", schema=plan.name), duplicate=False)


def settings(*, ground: str = "observe", **values: Any) -> ExtractConfig:
    """A job's settings; nothing waits between attempts."""
    config = config_of(**{"backoff_seconds": 0, **values})
    return config.model_copy(update={"policy": config.policy.model_copy(update={"ground": ground})})


def seen(case: dict[str, Any], config: ExtractConfig | None = None, **changed: Any) -> Seen:
    """Send a case through `extract`. `changed` are fields of its completions.

    Raises:
        UnknownRecipe: the case is written in a notation that is not known here.
    """
    import asyncio

    plan, config = plan_for(case), config or settings()
    sent, doc = completions_of(case, **changed), document_for(case, plan)
    engine = Answers(*sent)
    started = time.process_time()
    outcome = asyncio.run(extract(doc, plan, engine, config))
    return Seen(case, doc, plan, engine, outcome, sent, config, time.process_time() - started)
