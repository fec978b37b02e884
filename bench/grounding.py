"""How often true values find support in their documents, and how often wrong ones do.

`python -m bench.grounding --json bench/results/grounding.json`

Three kinds of values: the gold of a document; the gold of another document of the same set and field (left out where
it is also this one's); and gold with one digit changed. A foreign value that stands in the document word for word is
counted as `exact`: no search can tell that it answers another question.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import machine
from pipeline.schema.walk import escape
from pipeline.steps.support.source import Source, hits_of

SHARED = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).parent.parent.parent / "shared")
SETS = (
    "receipts_sroie",
    "addresses_opencage",
    "zh_recipes_howtocook",
    "contracts_nda",
    "products_wdc_pave",
    "zh_finance_events_fewfc",
    "advisories_rustsec",
    "longdocs_extract_bench",
)
KINDS = ("exact", "normalised", "fuzzy", "none")
ORIGINS = ("own", "foreign", "digit")
SWEEP = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
SEED = 20
MAX_FIELDS = 20
"""Sets of more fields are reported as a whole only."""

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Try:
    """One value that was looked for: `origin` says whose it is."""

    field: str
    origin: str
    match: str
    score: float
    length: int


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.grounding", description=__doc__)
    parser.add_argument("--set", choices=SETS, action="append", help="only this one; may be given more than once")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    result: dict[str, Any] = {
        "benchmark": "grounding",
        "machine": machine.describe(),
        "settings": {"seed": SEED, "chosen_on": "even rows", "reported_on": "odd rows"},
        "load_before": round(os.getloadavg()[0], 2),
        "sets": {},
    }
    print(machine.sentence(result["machine"]))
    tuning: list[Try] = []
    for name in chosen.set or SETS:
        path = SHARED / "data" / "docs" / name / "docs.jsonl"
        if not path.is_file():
            print(f"{name} is left out: set GRISTMILL_SHARED to the folder that holds data/docs.")
            continue
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        tuning += tried(rows, 0, min(SWEEP))
        reported = tried(rows, 1, None)
        result["sets"][name] = {"fields": _fields(reported), "time": _timed(rows)}
        _show(name, result["sets"][name])
    result["sweep"] = _swept(tuning)
    for row in result["sweep"]:
        print(row)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def tried(rows: list[dict[str, Any]], half: int, least: float | None) -> list[Try]:
    """All values of every second document."""
    draw = random.Random(SEED)
    gold = [list(leaves(row["ground_truth"])) for row in rows]
    pool: dict[tuple[str, str], list[Value]] = defaultdict(list)
    for row, values in zip(rows, gold, strict=True):
        for field, value in values:
            pool[row["schema_id"], field].append(value)
    found = []
    for row, values in list(zip(rows, gold, strict=True))[half::2]:
        source = Source(row["text"], least)
        own = {str(value).casefold() for _, value in values}
        for field, value in values:
            found.append(_try(source, field, "own", value))
            foreign = draw.choice(pool[row["schema_id"], field])
            if str(foreign).casefold() not in own:
                found.append(_try(source, field, "foreign", foreign))
            changed = _other_digit(value, draw)
            if changed is not None and str(changed).casefold() not in own:
                found.append(_try(source, field, "digit", changed))
    return found


def leaves(value: Any, field: str = "") -> Iterator[tuple[str, Value]]:
    """(field without indexes, value) of every text and number."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{field}/{escape(key)}")
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, f"{field}/*")
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        yield field, value


def _other_digit(value: Value, draw: random.Random) -> Value | None:
    text = str(value)
    places = [match.start() for match in re.finditer("[0-9]", text)]
    if not places:
        return None
    place = draw.choice(places)
    text = text[:place] + draw.choice([d for d in "123456789" if d != text[place]]) + text[place + 1 :]
    return text if isinstance(value, str) else type(value)(text)


def _try(source: Source, field: str, origin: str, value: Value) -> Try:
    hits = hits_of(source, value)
    match, score = (hits[0].match, hits[0].score) if hits else ("none", 0.0)
    return Try(field, origin, match, score, len(str(value)))


def _fields(tries: Sequence[Try]) -> dict[str, Any]:
    """For each field and each origin of values: how many, and the share found by each kind."""
    table: dict[str, Any] = {}
    names = list(dict.fromkeys(each.field for each in tries))
    for field in ["all", *(names if len(names) <= MAX_FIELDS else [])]:
        table[field] = {
            origin: _shares([each for each in tries if field in ("all", each.field) and each.origin == origin])
            for origin in ORIGINS
        }
    return table


def _shares(tries: Sequence[Try]) -> dict[str, Any]:
    counts = Counter(each.match for each in tries)
    return {"values": len(tries), **{kind: round(counts[kind] / max(1, len(tries)), 4) for kind in KINDS}}


def _swept(tries: Sequence[Try]) -> list[dict[str, Any]]:
    """What a fuzzy threshold would find of the values that are found in no other way, by their length."""
    rows = []
    for low, high in ((6, 11), (12, 24), (25, 10_000)):
        some = [each for each in tries if low <= each.length <= high and each.match in ("fuzzy", "none")]
        for least in SWEEP:
            row: dict[str, Any] = {"characters": [low, high], "threshold": least}
            for origin in ORIGINS:
                mine = [each for each in some if each.origin == origin]
                row[origin] = [sum(each.score >= least for each in mine), len(mine)]
            rows.append(row)
    return rows


def _timed(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Milliseconds of CPU for all gold values of one document."""
    spent = []
    for row in rows:
        started = time.process_time()
        source = Source(row["text"])
        for _, value in leaves(row["ground_truth"]):
            hits_of(source, value)
        spent.append((time.process_time() - started) * 1e3)
    return {
        "median_ms": round(median(spent), 3),
        "p90_ms": round(quantiles(spent, n=10)[-1], 3),
        "max_ms": round(max(spent), 3),
    }


def _show(name: str, part: dict[str, Any]) -> None:
    print(f"\n{name}: {part['time']}")
    print(
        f"{'field':34} {'values':>7}  "
        + "  ".join(f"{origin + ': ' + ' '.join(k[:5] for k in KINDS):>30}" for origin in ORIGINS)
    )
    for field, origins in part["fields"].items():
        cells = ["  ".join(f"{100 * origins[origin][kind]:5.1f}" for kind in KINDS) for origin in ORIGINS]
        print(f"{field[:34]:34} {origins['own']['values']:7}  " + "  ".join(f"{cell:>30}" for cell in cells))


if __name__ == "__main__":
    main()
