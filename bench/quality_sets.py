"""The sets of `bench.quality`: public documents with gold, laid out as a job finds them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.schema.walk import escape

INSTRUCTIONS = "Take every value from the document as it is printed there. Answer null where it says nothing."
EXAMPLES = 2
"""Documents of each set that the model is shown, and that are not measured."""
MAX_EXAMPLE_CHARACTERS = 600
SEED = 20_269


@dataclass(frozen=True, slots=True)
class Set:
    """`folder` below `data/docs`; `max_tokens` of one answer."""

    name: str
    folder: str
    max_tokens: int


SETS = (
    Set("receipts", "receipts_sroie", 256),
    Set("addresses", "addresses_opencage", 256),
    Set("advisories", "advisories_rustsec", 512),
    Set("recipes_en", "recipes_based_cooking", 640),
    Set("recipes_zh", "zh_recipes_howtocook", 512),
    Set("contracts", "contracts_nda", 256),
    Set("products", "products_wdc_pave", 384),
)


@dataclass(frozen=True, slots=True)
class Laid:
    """Where a set lies: `documents` (JSONL), `gold` (JSONL), `schemas`; `count` documents of `there`."""

    documents: Path
    gold: Path
    schemas: Path
    count: int
    there: int


def lay_out(one: Set, documents: int, place: Path) -> Laid:
    """Write so many documents of a set, drawn with a fixed seed, its gold and its schemas below `place`.

    Raises:
        InputError: the set is not there.
    """
    shared = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).parents[2] / "shared")
    folder = shared / "data" / "docs" / one.folder
    try:
        bodies = json.loads((folder / "schemas.json").read_text(encoding="utf-8"))
        rows = [json.loads(line) for line in (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise InputError(f"no documents of {one.name}: {error}. Set GRISTMILL_SHARED.") from error
    random.Random(SEED).shuffle(rows)
    shown = {schema: _examples(rows, schema) for schema in bodies}
    left = [row for row in rows if row not in shown[row["schema_id"]]]
    chosen = left[:documents]
    schemas = place / "schemas"
    for name, body in bodies.items():
        _write_schema(schemas / name / "1", body, shown[name])
    laid = Laid(place / "documents.jsonl", place / "gold.jsonl", schemas, len(chosen), len(left))
    _write(laid.documents, [{**_key(row), "text": row["text"]} for row in chosen])
    _write(laid.gold, [{**_key(row), "record": row["ground_truth"], **_more(row)} for row in chosen])
    return laid


def _examples(rows: Sequence[dict[str, Any]], schema: str) -> list[dict[str, Any]]:
    """Short documents of a schema whose gold it accepts."""
    short = (row for row in rows if row["schema_id"] == schema and len(row["text"]) <= MAX_EXAMPLE_CHARACTERS)
    return [row for row in short if row["ground_truth_valid"]][:EXAMPLES]


def _key(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], "schema": f"{row['schema_id']}@1"}


def _more(row: dict[str, Any]) -> dict[str, Any]:
    acceptable = row.get("meta", {}).get("acceptable") or {}
    return {"lang": row["lang"], "acceptable": {f"/{escape(key)}": values for key, values in acceptable.items()}}


def _write_schema(folder: Path, body: Any, examples: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.json").write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
    (folder / "instructions.md").write_text(INSTRUCTIONS, encoding="utf-8")
    _write(folder / "examples.jsonl", [{"document": row["text"], "record": row["ground_truth"]} for row in examples])


def _write(path: Path, rows: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
