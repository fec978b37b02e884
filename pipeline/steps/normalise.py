"""Normalise: what the schema declares under `x-normalise` is done to the values of a draft before they are judged.

A change is named in the draft's fields, where the raw value stays. It is no repair: it is declared, loses nothing, and
neither the layer nor the status tells of it.
"""

from __future__ import annotations

import dataclasses
import json

from pipeline.records import Draft, Field, JsonValue, Problem
from pipeline.schema.lately import Lately
from pipeline.schema.normalised import Normaliser
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import PatternTimeout

MAX_MISSED = 20
"""Problems of values that could not be read; a record that has more is told by these."""

_NORMALISERS: Lately[tuple[str, str], Normaliser] = Lately()
"""By schema name and digest. Bounded by the number of schemas of a job."""


def normalise(draft: Draft, plan: DecodingPlan, attempt: int) -> Draft:
    """The draft with its values normalised; the raw ones stay in its fields, as JSON text.

    What a normaliser cannot read for certain stays as it is, with the problem `not_normalised`, which only counts: the
    schema judges the value.
    """
    normaliser = _normaliser_of(plan)
    if not draft.parsed or normaliser.idle:
        return draft
    try:
        made = normaliser.of(draft.value)
    except (PatternTimeout, RecursionError) as error:
        words = str(error) if isinstance(error, PatternTimeout) else "the record nests too deeply to be normalised"
        problem = Problem("not_judged", message=words, attempt=attempt)
        return dataclasses.replace(draft, problems=(*draft.problems, problem))
    if not made.raw and not made.missed:
        return draft
    told = list(made.missed.items())[:MAX_MISSED]
    missed = [Problem("not_normalised", pointer, words, attempt) for pointer, words in told]
    fields = {known.pointer: known for known in draft.fields}
    for pointer, raw in made.raw.items():
        fields[pointer] = dataclasses.replace(fields.get(pointer) or Field(pointer), raw=_json(raw))
    return dataclasses.replace(
        draft, value=made.value, problems=(*draft.problems, *missed), fields=tuple(fields.values())
    )


def _normaliser_of(plan: DecodingPlan) -> Normaliser:
    return _NORMALISERS.get((plan.name, plan.schema_digest), lambda: Normaliser(plan.acceptance))


def _json(value: JsonValue) -> str:
    """JSON text that can be written: half a surrogate pair stays escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
