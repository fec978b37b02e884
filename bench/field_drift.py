"""How often does field drift call a shift that is none, and which planted shifts does it see?

    python -m bench.field_drift --part none --rounds 100 --json bench/results/field_drift.json
    python -m bench.field_drift --part planted --rounds 50 --json bench/results/field_drift.json

Records are the gold of the real document sets (GRISTMILL_SHARED or `../shared`). *None*: halves of one set, dealt at
random, and pairs of samples drawn from one set with replacement. *Planted*: two such samples, and in the second a share
of the documents is changed in one field. Nothing here needs a model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine
from pipeline.observe.profile import profile_of
from pipeline.observe.shift import ALPHA, Comparison, compare

Rows = list[tuple[str, Any]]
"""Keys of documents and their records."""

SHARED = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).parent.parent.parent / "shared")
SEED = 7_000
LEAST_DOCUMENTS = 20
SIZES = (50, 200, 1000)
SHARES = (0.05, 0.1, 0.2, 0.4)
LEVELS = (0.001, 0.01, 0.05, 0.2)
PASSAGE = 250
"""Characters of a text whose language is told."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A change of one field, and the set that it is made to."""

    name: str
    rows: Rows
    field: str
    change: Callable[[dict[str, Any], random.Random], None]


def shared_sets() -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of the real document sets, with the names of the sets."""
    for file in sorted(SHARED.glob("data/docs/*/docs.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield file.parent.name, json.loads(line)


def records_by_schema() -> dict[str, Rows]:
    """The gold records of the real sets, by set and schema."""
    found: dict[str, Rows] = defaultdict(list)
    for name, row in shared_sets():
        found[f"{name}/{row['schema_id']}"].append((row["id"], row["ground_truth"]))
    return {name: rows for name, rows in found.items() if len(rows) >= LEAST_DOCUMENTS}


def passages(language: str) -> Rows:
    """Records of one text, all in one language."""
    texts = [row["text"].strip() for _, row in shared_sets() if row["lang"] == language]
    return [(str(n), {"passage": text[-PASSAGE:]}) for n, text in enumerate(texts) if len(text) >= PASSAGE]


def plants() -> Iterator[Plant]:
    """A shift of each kind that is looked for."""
    sets = records_by_schema()

    def set_to(field: str, value: Any) -> Callable[[dict[str, Any], random.Random], None]:
        return lambda record, _: record.update({field: value})

    addresses, advisories = sets["addresses_opencage/postal_address"], sets["advisories_rustsec/security_advisory"]
    yield Plant("presence: a value is null", addresses, "/road", set_to("road", None))
    yield Plant("values: one of four kinds for all", advisories, "/kind", set_to("kind", "notice"))

    def halved(record: dict[str, Any], _: random.Random) -> None:
        record["title"] = record["title"][: len(record["title"]) // 2]

    yield Plant("length: a title is cut to half", advisories, "/title", halved)

    def tenfold(record: dict[str, Any], _: random.Random) -> None:
        record["calories_kcal"] *= 10

    recipes = sets["zh_recipes_howtocook/zh_recipe"]
    yield Plant("numbers: ten times as much", recipes, "/calories_kcal", tenfold)

    def first_only(record: dict[str, Any], _: random.Random) -> None:
        record["ingredients"] = record["ingredients"][:1]

    cooking = sets["recipes_based_cooking/recipe"]
    yield Plant("items: one of a list", cooking, "/ingredients", first_only)
    german = [record["passage"] for _, record in passages("de")]

    def other(record: dict[str, Any], generator: random.Random) -> None:
        record["passage"] = generator.choice(german)

    yield Plant("language: German for English", passages("en"), "/passage", other)


def drawn(rows: Rows, size: int, generator: random.Random, label: str) -> Rows:
    """A sample with replacement; each document is one of its own."""
    return [(f"{label}{n}", record) for n, (_, record) in enumerate(generator.choices(rows, k=size))]


def compared(before: Rows, now: Rows) -> Comparison:
    """As `gristmill drift` does with what it reads."""
    return compare({"s": profile_of("s", before)}, {"s": profile_of("s", now)})


def without_shift(rows: Rows, rounds: int, generator: random.Random) -> dict[str, Counter[str]]:
    """Pairs of samples of one set: halves, and samples of each size."""
    found: dict[str, list[Comparison]] = defaultdict(list)
    for _ in range(rounds):
        dealt = generator.sample(rows, len(rows))
        found["halves"].append(compared(dealt[: len(rows) // 2], dealt[len(rows) // 2 :]))
        for size in SIZES:
            pair = drawn(rows, size, generator, "a"), drawn(rows, size, generator, "b")
            found[f"samples of {size}"].append(compared(*pair))
    return {how: summed(some) for how, some in found.items()}


def summed(some: Sequence[Comparison]) -> Counter[str]:
    """Comparisons, those that call anything a shift, and how many p are at most some levels."""
    counts = Counter({"comparisons": len(some)})
    for one in some:
        counts["called shifted"] += bool(one.shifted)
        counts["beyond chance"] += any(f.verdict in ("shifted", "slight") for f in one.findings)
        tested = [f.p for f in one.findings if f.verdict != "few"]
        counts["tests"] += len(tested)
        counts["too few to test"] += len(one.findings) - len(tested)
        for level in LEVELS:
            counts[f"p <= {level}"] += sum(p <= level for p in tested)
    return counts


def planted(plant: Plant, size: int, share: float, rounds: int, generator: random.Random) -> Counter[str]:
    """In how many rounds the field is called shifted, and any other field."""
    counts = Counter({"rounds": rounds})
    for _ in range(rounds):
        before = drawn(plant.rows, size, generator, "a")
        now = [(key, json.loads(json.dumps(record))) for key, record in drawn(plant.rows, size, generator, "b")]
        for _, record in generator.sample(now, round(share * size)):
            plant.change(record, generator)
        shifted = compared(before, now).shifted
        mine = [f for f in shifted if f.pointer.startswith(plant.field)]
        counts["seen"] += bool(mine)
        counts["other fields called"] += len(mine) < len(shifted)
    return counts


def measured_none(rounds: int, generator: random.Random) -> dict[str, Any]:
    """Sets without a shift, each and all together."""
    none: dict[str, Any] = {}
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for name, rows in records_by_schema().items():
        found = without_shift(rows, rounds, generator)
        none[name] = {"documents": len(rows), **found}
        for how, counts in found.items():
            totals[how].update(counts)
        print(name, {how: counts["called shifted"] for how, counts in found.items()}, flush=True)
    for how, counts in totals.items():
        print(f"{how}: {dict(counts)}")
    return {"rounds without shift": rounds, "no shift, all sets": totals, "no shift": none}


def measured_planted(rounds: int, generator: random.Random) -> dict[str, Any]:
    """Every plant at every size and share."""
    power: list[dict[str, Any]] = []
    for plant in plants():
        for size in SIZES:
            for share in SHARES:
                counts = planted(plant, size, share, rounds, generator)
                power.append({"plant": plant.name, "field": plant.field, "size": size, "share": share, **counts})
                print(power[-1], flush=True)
    return {"planted": power}


PARTS = {"none": measured_none, "planted": measured_planted}


def main() -> None:
    """Measure, print, and add to what `--json` names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--part", choices=PARTS, action="append", help="repeatable; both if not given")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": machine.describe(), "seed": SEED, "alpha": ALPHA}
    if options.json and options.json.exists():
        found = {**json.loads(options.json.read_text(encoding="utf-8")), **found}
    for part in options.part or PARTS:
        found |= PARTS[part](options.rounds, random.Random(SEED))
        if options.json:
            options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
