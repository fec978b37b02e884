"""Confidence: a rank for each leaf and for the record, from token probabilities, support, layer and repairs.

    leaf    support x (1 + probability of its least certain token) / 2 x touched x salvaged
    record  the mean of its leaves

It orders values by how likely they are right, and is no probability itself. docs/confidence.md says what each factor
is and what the whole was measured to be worth. Tokens never outweigh support: a value that stands in the document
ranks above one that does not, however sure the model was, since small models repeat an invention ever more surely.
"""

from __future__ import annotations

import dataclasses
import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.records import Completion, Draft, Field, JsonValue
from pipeline.schema.walk import escape
from pipeline.steps.answer.spans import MAX_POINTER_CHARACTERS, Span, scan

SUPPORT = {"exact": 1.0, "normalised": 1.0, "": 0.8, "none": 0.3}
"""Factor of a leaf by how the document supports it. Of a fuzzy match it is the match's score; empty: nobody looked."""

TOUCHED = 0.5
"""Factor of a leaf that a repair changed."""

SALVAGED = 0.8
"""Factor of every leaf of a record that layer 3 made."""


@dataclass(frozen=True, slots=True)
class Certainty:
    """What the tokens that wrote one value say: how many they are, and the mean and the lowest of their natural
    logarithms of probability."""

    tokens: int
    mean: float
    lowest: float


def score(draft: Draft, completion: Completion) -> Draft:
    """The draft with the confidence of each leaf and of the record, where the completion carries logprobs.

    A leaf that the answer does not hold as it stands, while it holds others, has 0: a repairer made it.
    """
    if not completion.logprobs or not draft.parsed:
        return draft
    known = {field.pointer: field for field in draft.fields}
    leaves = leaves_of(draft.value)
    said = certainties(completion, leaves, known)
    if not said:
        return draft
    scored = {}
    for pointer in leaves:
        field = known.get(pointer, Field(pointer))
        scored[pointer] = dataclasses.replace(field, confidence=_confidence(said.get(pointer), field, draft.salvaged))
    fields = [*(scored.get(field.pointer, field) for field in draft.fields)]
    fields += [field for pointer, field in scored.items() if pointer not in known]
    mean = math.fsum(field.confidence or 0.0 for field in scored.values()) / len(scored)
    return dataclasses.replace(draft, fields=tuple(fields), confidence=mean)


def certainties(
    completion: Completion, leaves: Mapping[str, JsonValue], known: Mapping[str, Field]
) -> dict[str, Certainty]:
    """What the tokens say of each leaf that stands in the answer, by pointer; empty if tokens and text do not fit."""
    logprobs = _chosen(completion)
    ends = completion.token_ends
    if len(ends) != len(logprobs):
        return {}
    text = completion.text
    spans = scan(text, _start(text)).spans
    found = {}
    for pointer, span in spans.items():
        raw = known[pointer].raw if pointer in known else None
        if pointer not in leaves or not (raw is not None or _says(text, span, leaves[pointer])):
            continue
        tokens = logprobs[slice(*tokens_of(span, ends))]
        if tokens:
            found[pointer] = Certainty(len(tokens), sum(tokens) / len(tokens), min(tokens))
    return found


def tokens_of(span: Span, ends: tuple[int, ...]) -> tuple[int, int]:
    """The tokens [first, after) that wrote a span: all that hold any of it, and those before that only began its first
    character. Of an empty string those that wrote its quotes."""
    start, end = span if span[0] < span[1] else (span[0] - 1, span[1] + 1)
    first = bisect_right(ends, start)
    while first > 0 and ends[first - 1] == start and (ends[first - 2] if first > 1 else 0) == start:
        first -= 1
    return first, min(bisect_left(ends, end) + 1, len(ends))


def _confidence(said: Certainty | None, field: Field, salvaged: bool) -> float:
    if said is None:
        return 0.0
    support = (field.score or 0.0) if field.match == "fuzzy" else SUPPORT[field.match]
    tokens = (1.0 + math.exp(said.lowest)) / 2.0
    return support * tokens * (TOUCHED if field.touched else 1.0) * (SALVAGED if salvaged else 1.0)


def _chosen(completion: Completion) -> list[float]:
    """The log probability of each token of the answer. Engines put the chosen token first, whatever others follow."""
    rows = completion.logprobs
    if len(completion.token_ids) == len(rows):
        values = [row.get(token, -math.inf) for token, row in zip(completion.token_ids, rows, strict=True)]
    else:
        values = [next(iter(row.values()), -math.inf) for row in rows]
    return [-math.inf if math.isnan(value) else min(value, 0.0) for value in values]


def _start(text: str) -> int:
    """Where the answer's JSON begins: at its first bracket, or at the text's beginning if it has none."""
    found = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    return min(found, default=0)


def _says(text: str, span: Span, value: JsonValue) -> bool:
    """Whether the text at a span is the value that the record holds there."""
    written = text[slice(*span)]
    try:
        if isinstance(value, str) or value is None or isinstance(value, bool):
            return bool(json.loads(f'"{written}"' if isinstance(value, str) else written) == value)
        return float(written) == float(value)
    except (ValueError, OverflowError):
        return False


def leaves_of(value: JsonValue) -> dict[str, JsonValue]:
    """The values that hold no others, by pointer, in order; empty if their pointers take more than is reasonable."""
    found: dict[str, JsonValue] = {}
    waiting: list[tuple[str, JsonValue]] = [("", value)]
    characters = 0
    while waiting:
        pointer, here = waiting.pop()
        children: Iterable[tuple[Any, JsonValue]] = ()
        if isinstance(here, dict):
            children = ((escape(key), child) for key, child in here.items())
        elif isinstance(here, list):
            children = enumerate(here)
        else:
            found[pointer] = here
            continue
        characters += (len(pointer) + 1) * len(here) + sum(map(len, here) if isinstance(here, dict) else ())
        if characters > MAX_POINTER_CHARACTERS:
            return {}
        waiting += reversed([(f"{pointer}/{key}", child) for key, child in children])
    return found
