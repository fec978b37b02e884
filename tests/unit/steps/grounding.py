"""Grounded drafts of bare records, for the tests of `ground`."""

from __future__ import annotations

from typing import Any

from support import plan_of

from pipeline.job import ExtractConfig, PolicyConfig
from pipeline.records import Draft
from pipeline.steps.clean import Cleaned
from pipeline.steps.ground import ground

TEXT = "Ann & Co\n29 February 2024\ntea 2.50\nsalt 3.00\nTotal 19.90 EUR"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def grounded(body: Any, record: Any, text: str = TEXT, policy: Any = "degrade", **values: Any) -> Draft:
    abstain, cite = values.pop("abstain", "none"), values.pop("cite", "none")
    config = ExtractConfig(policy=PolicyConfig(ground=policy, abstain=abstain), cite=cite)
    draft = Draft(value=record, parsed=True, **{k: v for k, v in values.items() if k != "cleaned"})
    return ground(draft, values.get("cleaned", Cleaned(text)), plan_of(body), config, 1)


def spans(draft: Draft, text: str = TEXT) -> dict[str, Any]:
    return {f.pointer: (f.match, text[f.start : f.end] if f.start is not None else None) for f in draft.fields}


STRING = {"type": "string"}
NUMBER = {"type": "number"}
