"""Order of choices: do answers hang on the order in which a schema lists the members of its enums?

The same documents are extracted again with every enum's members in another order, in the prompt and for the engine
alike: what a record means is the same. Engines are not quite steady by themselves, so what changes is held against
what changes when the very same is run again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.evaluate.intervals import RESAMPLES, Rate, Slice
from pipeline.evaluate.match import RIGHT, match
from pipeline.evaluate.side_rates import Gap, SideRates
from pipeline.evaluate.sides import Beside, Part, together
from pipeline.runtime.output.browse import Browsed
from pipeline.schema.fingerprint import digest
from pipeline.schema.reading import read_json
from pipeline.schema.walk import rebuild

MAX_FIELDS = 400
OTHER = "(other)"
AGAIN, ORDER = "again", "order"
_FILES = ("instructions.md", "examples.jsonl")


@dataclass(frozen=True, slots=True)
class Moved:
    """How much of one field (of whole records, if both names are empty) is another value than in the first run: when
    the same is run `again`, and under another `order`; `gap` is the difference."""

    schema: str
    pointer: str
    again: Rate
    order: Rate
    gap: Gap


@dataclass(frozen=True, slots=True)
class Ordered:
    """What other orders change, over the documents of all runs. `orders` is how many were tried, `enums` how many
    lists of members that put in another order."""

    documents: int
    orders: int
    enums: int
    records: Moved
    fields: Sequence[Moved]


def reordered(schema: Any, seed: int) -> tuple[Any, int]:
    """A schema with the members of each enum in another order, which hangs on the seed and the place alone; and how
    many enums were changed. One of a single member stays as it is."""
    changed = 0

    def change(pointer: str, node: Any) -> Any:
        nonlocal changed
        members = node.get("enum") if isinstance(node, dict) else None
        if not isinstance(members, list) or len(members) < 2:
            return node
        changed += 1
        drawn = sorted(members, key=lambda member: digest([seed, pointer, member]))
        # Equality of lists would take 1 for true: the order is what counts, so it is compared as text.
        same = json.dumps(drawn) == json.dumps(members)
        return {**node, "enum": [*drawn[1:], drawn[0]] if same else drawn}

    return rebuild(schema, change), changed


def write_reordered(source: str, names: Iterable[str], seed: int, target: Path) -> int:
    """Write a directory of schemas in another order, prompts and examples as they are; how many enums were changed.

    Raises:
        OSError: it cannot be written.
        SchemaError: a schema cannot be read.
    """
    enums = 0
    for name in names:
        parts = name.split("@")
        folder, made = Path(source, *parts), target.joinpath(*parts)
        made.mkdir(parents=True, exist_ok=True)
        schema, changed = reordered(read_json(folder / "schema.json"), seed)
        (made / "schema.json").write_text(json.dumps(schema, ensure_ascii=False, indent=2), encoding="utf-8")
        for file in _FILES:
            if (folder / file).is_file():
                shutil.copyfile(folder / file, made / file)
        enums += changed
    return enums


def ordered(
    runs: tuple[Browsed, Browsed],
    permuted: Sequence[Browsed],
    bodies: Mapping[str, Mapping[str, Any]],
    *,
    enums: int,
    most: int,
) -> Ordered:
    """Hold a run against the same again, and against runs under other orders, over the documents of all.

    Raises:
        OutputError: a run cannot be read, or they have no document in common.
    """
    found = together([*runs, *permuted], bodies, most)
    rates, places = SideRates(resamples=RESAMPLES), dict[tuple[str, str], None]()
    for key, (first, again, *others) in found.documents.items():
        body, parts = bodies.get(key[0], {}), dict[Slice, Part]()
        for what, side in ((AGAIN, again), *((ORDER, other) for other in others)):
            for place, moved in _moved(key[0], first, side, body):
                if place not in places and len(places) >= MAX_FIELDS:
                    place = (key[0], OTHER)
                places[place] = None
                count, of = parts.get((what, *place), (0.0, 0.0))
                parts[what, *place] = (count + moved, of + 1)
        rates.add("\0".join(key), parts)
    told = [_told(rates, *place) for place in places]
    whole = next(one for one in told if not one.schema)
    fields = sorted((one for one in told if one.schema), key=lambda one: (-(one.gap.value or 0.0), one.pointer))
    return Ordered(len(found.documents), len(permuted), enums, whole, fields)


def _moved(schema: str, first: Beside, side: Beside, body: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], bool]]:
    """By place whether it says something else; the record as a whole is the last."""
    one, other = first.seen.record, side.seen.record
    differs = first.seen.status != side.seen.status
    if one is not None and other is not None:
        for leaf in match(one, other, body).fields:
            if leaf.verdict != "abstained":
                moved = leaf.verdict not in RIGHT
                differs = differs or moved
                yield (schema, leaf.pointer), moved
    yield ("", ""), differs


def _told(rates: SideRates, schema: str, pointer: str) -> Moved:
    again, order = (AGAIN, schema, pointer), (ORDER, schema, pointer)
    return Moved(schema, pointer, rates.rate(again), rates.rate(order), rates.difference(again, order))
