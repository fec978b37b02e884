"""Real documents with the records that they should give (from GRISTMILL_SHARED or `../shared`), and when a value is
right."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.records import Document
from pipeline.schema.closing import close_objects
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan, build_plan
from pipeline.schema.registry import DocumentSchema, Example
from pipeline.schema.shape.policy import Policy
from pipeline.schema.walk import resolve
from pipeline.steps.prompt import system_prompt

SETS = ("receipts_sroie", "addresses_opencage", "zh_recipes_howtocook", "products_wdc_pave")
MAX_CHARACTERS = 1000
"""Of a document: longer ones cost the little model most of the time and teach no more."""
MAX_EXAMPLE_CHARACTERS = 600
EXAMPLES = 2
NARROW = Policy(max_items=10)
"""A list without a bound is one that a small model does not end."""
INSTRUCTIONS = "Take every value from the document as it is printed there. Answer null where it says nothing."

_EDGES = " \t\r\n.,;:!?'\"()[]。，；：、"


@dataclass(frozen=True, slots=True)
class Gold:
    """A document, its plan, its record, and other values that are as right, by key."""

    document: Document
    plan: DecodingPlan
    record: dict[str, Any]
    acceptable: Mapping[str, Any]

    def is_right(self, pointer: str, value: Any) -> bool | None:
        """Whether a leaf is right; None if the gold record says nothing of its key. An item of a list is right if the
        gold list holds it, at whatever place."""
        parent, _, last = pointer.rpartition("/")
        try:
            expected = resolve(self.record, f"#{parent}" if last.isdigit() else f"#{pointer}")
        except (KeyError, IndexError, TypeError, ValueError, LookupError):
            return None
        allowed = expected if isinstance(expected, list) else [expected, *self.acceptable.get(last, ())]
        return any(same(value, one) for one in allowed)


def same(one: Any, other: Any) -> bool:
    """Equal but for case, width, blanks, and punctuation at the ends; 9.0 and "9.00" are equal."""
    if one is None or other is None:
        return one is other
    return _normal(one) == _normal(other)


def gold(name: str, documents: int) -> list[Gold]:
    """The first `documents` short ones of a set. Two others of each schema are the examples that the model is shown.

    Raises:
        InputError: the set is not there.
    """
    folder = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).parents[2] / "shared") / "data" / "docs" / name
    try:
        bodies = json.loads((folder / "schemas.json").read_text(encoding="utf-8"))
        lines = (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"no documents with gold: {error}. Set GRISTMILL_SHARED.") from error
    rows = [row for row in map(json.loads, lines) if len(row["text"]) <= MAX_CHARACTERS]
    examples: dict[str, list[Example]] = {schema: [] for schema in bodies}
    asked = []
    for row in rows:
        shown = examples[row["schema_id"]]
        if len(shown) < EXAMPLES and len(row["text"]) <= MAX_EXAMPLE_CHARACTERS:
            shown.append(Example(row["text"], row["ground_truth"]))
        else:
            asked.append(row)

    @cache
    def plan(schema: str) -> DecodingPlan:
        closed, pointers = close_objects(bodies[schema])
        one = DocumentSchema(f"{schema}@1", closed, INSTRUCTIONS, tuple(examples[schema]), pointers, digest(closed))
        return build_plan(one, system_prompt(one), backend="xgrammar", compact_json=True, policy=NARROW)

    return [
        Gold(
            Document(row["id"], row["text"], f"{name}#{row['id']}", f"{row['schema_id']}@1"),
            plan(row["schema_id"]),
            row["ground_truth"],
            row.get("meta", {}).get("acceptable", {}),
        )
        for row in asked[:documents]
    ]


def _normal(value: Any) -> str:
    text = unicodedata.normalize("NFKC", str(value)).casefold().strip(_EDGES)
    if re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text) and len(text) < 20:
        return repr(float(text))
    return re.sub(r"\s+", "", text)
