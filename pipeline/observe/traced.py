"""Traced: what `extract` traces of a document, step by step, as plain JSON values."""

from __future__ import annotations

import dataclasses
import traceback
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import Completion, Draft
from pipeline.schema.storage import as_json


@dataclass(slots=True)
class Traced:
    """Collects what `extract` traces, as plain JSON values, and the completions themselves."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    last: Draft = field(default_factory=Draft)

    def __call__(self, name: str, made: Any) -> None:
        if name == "generate":
            self.completions.append(made)
            self.last = Draft()
            self.steps.append({"step": name, **_completion(made)})
        elif isinstance(made, Draft):
            self.steps.append({"step": name, **_draft(made, self.last)})
            self.last = made
        else:
            self.steps.append({"step": name, **_other(name, made)})


def _completion(made: Completion) -> dict[str, Any]:
    values = dataclasses.asdict(made)
    for name in ("token_ids", "token_ends", "logprobs", "unmasked"):
        values[name] = len(values[name])
    return values


def _draft(made: Draft, before: Draft) -> dict[str, Any]:
    """What a step made of the draft before it: only what is new."""
    said: dict[str, Any] = {"changed": made != before, "parsed": made.parsed, "salvaged": made.salvaged}
    if made.value != before.value or made.parsed != before.parsed:
        said["value"] = as_json(made.value)
    for name in ("problems", "repairs", "fields"):
        old = getattr(before, name)
        said[name] = [dataclasses.asdict(item) for item in getattr(made, name) if item not in old]
        said[f"{name}_gone"] = [dataclasses.asdict(item) for item in old if item not in getattr(made, name)]
    if made.confidence != before.confidence:
        said["confidence"] = made.confidence
    return said


def _other(name: str, made: Any) -> dict[str, Any]:
    if name == "clean":
        return {"changes": made.changes, "text": made.text}
    if name == "render":
        prompt, sampling = made
        return {"system": prompt.system, "user": prompt.user, "sampling": dataclasses.asdict(sampling)}
    if name == "route":
        chosen = {"attempt": made.attempt.number, "salvaged": made.draft.salvaged} if made else None
        return {"chosen": chosen}
    if isinstance(made, BaseException):
        return {"raised": "".join(traceback.format_exception(made))}
    return {"made": repr(made)}
