"""How often does the gate of `gristmill compare` ring where nothing changed, and which planted regressions does it see?

    python -m bench.gate collect --work DIR [--engine serve_configs/cpu_embedded.yaml] [--other ENGINE.yaml]
    python -m bench.gate derive --work DIR
    python -m bench.gate none --work DIR --rounds 1000 --json bench/results/gate.json
    python -m bench.gate planted --work DIR --rounds 100 --json bench/results/gate.json

`collect` extracts real documents under several seeds, and with one thing made worse at a time (`gate_arms.py`);
`derive` makes such outcomes from gold, with errors of stated rates, in place of a model (`gate_derived.py`). `none`
and `planted` need no model: a round draws documents, and for each a side A and a side B: two different seeds of the job
as it is, or, on a share of the documents, B of the arm that is worse. Documents are compared and gated
as by the command. Bounds of shares are exact (Clopper and Pearson).
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.gate_arms import PLANTS, collect, pools
from bench.gate_derived import derive
from pipeline.errors import GristmillError
from pipeline.evaluate.bounds import share_bounds
from pipeline.evaluate.comparison import Pairing, RunComparison, Side
from pipeline.evaluate.gate import Gated, gate
from pipeline.evaluate.measured import Seen
from pipeline.evaluate.paired import About, Pair, compare_pairs
from pipeline.jobfile import load_engine
from pipeline.jobgate import GateConfig

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "serve_configs" / "cpu_embedded.yaml"
SEED = 9_000
SIZES = (50, 200)
DRAWN = (50, 100, 200, 400, 800)
SHARES = (1.0, 0.3)
STOP = 0.98
"""Power from which no more documents are tried."""
GATED = 200
"""Rounds without a change that are gated, too, which takes most of the time."""
RULES = GateConfig(on_constraint_lost="ignore", min_documents=1)
"""Blind to what engines say of their constraint, and ready to judge however few documents there are."""

Pools = Mapping[str, Mapping[str, Seen]]


def drawn(found: Pools, plant: str, share: float, size: int, generator: random.Random) -> Iterator[Pair]:
    """A round's pairs: every document once before any comes again. An arm that is worse is one sample of so many
    documents; drawn more often than that, what is chance in it would look like an effect."""
    base = [name for name in found if name.startswith("base")]
    ids = sorted(set.intersection(*(set(pool) for pool in found.values())))
    dealt = [document for _ in range(0, size, len(ids)) for document in generator.sample(ids, len(ids))]
    for number, document in enumerate(dealt[:size]):
        one, two = generator.sample(base, 2)
        if plant and generator.random() < share:
            two = plant
        mine, theirs = (dataclasses.replace(found[name][document], document_id=f"d{number}") for name in (one, two))
        yield mine, theirs


def compared(pairs: Sequence[Pair]) -> RunComparison:
    """As `gristmill compare` does."""
    side = Side("", "", "", "", len(pairs))
    return compare_pairs(pairs, About(side, side, Pairing(len(pairs))), alpha=RULES.alpha)


def alarms(found: RunComparison) -> bool:
    """Whether anything at all is called changed."""
    shifted = any(one.verdict in ("shifted", "slight") for one in found.shifts.findings)
    return shifted or any(one.verdict == "changed" for one in found.measures)


def rings(gated: Gated) -> list[str]:
    """The rules that keep B from being promoted for something that was found, not for want of documents."""
    return [rule.name for rule in gated.rules if rule.state == "broken" or (rule.state == "open" and rule.alarm)]


def without_change(found: Pools, size: int, rounds: int, before: Mapping[str, int]) -> dict[str, Any]:
    """A/A: two seeds of the job as it is. `before` are the counts of the rounds that were played already."""
    counts = Counter({name: count for name, count in before.items() if isinstance(count, int)})
    for number in range(counts["rounds"], counts["rounds"] + rounds):
        generator = random.Random(f"{SEED} none {size} {number}")
        comparison = compared(list(drawn(found, "", 0.0, size, generator)))
        counts["called changed"] += alarms(comparison)
        if number < GATED:
            gated = gate(comparison, RULES)
            counts["gated"] += 1
            counts["gate rang"] += rings(gated) != []
            counts[gated.decision] += 1
        counts["tests"] += comparison.tests
        counts["p <= 0.01, uncorrected"] += sum(one.p <= 0.01 for one in comparison.measures if one.verdict != "few")
        counts["rounds"] += 1
    called, of = counts["called changed"], counts["rounds"]
    low, high = share_bounds(called, of, 0.05)
    bounds = {"at least": round(low, 5), "at most": round(high, 5), "level": "95 %, each side"}
    return {**counts, "family-wise false alarms": {"rate": called / of, **bounds}}


def whole_runs(found: Pools) -> list[dict[str, Any]]:
    """The seeds as they are, each pair of runs once: no drawing."""
    base = [name for name in found if name.startswith("base")]
    results = []
    for place, one in enumerate(base):
        for two in base[place + 1 :]:
            ids = sorted(found[one].keys() & found[two].keys())
            comparison = compared([(found[one][name], found[two][name]) for name in ids])
            verdict = gate(comparison, RULES).decision
            told = {"called changed": alarms(comparison), "verdict": verdict, "tests": comparison.tests}
            results.append({"runs": [one, two], "documents": len(ids), **told})
    return results


def planted(found: Pools, plant: str, share: float, size: int, rounds: int) -> dict[str, Any]:
    """In how many rounds the gate rings, by which rules, and how large the effect was."""
    decisions: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    caught = 0
    for number in range(rounds):
        generator = random.Random(f"{SEED} {plant} {share} {size} {number}")
        comparison = compared(list(drawn(found, plant, share, size, generator)))
        gated = gate(comparison, RULES)
        decisions[gated.decision] += 1
        rang = rings(gated)
        caught += bool(rang)
        rules.update(rang)
        for name in ("valid", "first_format", "first_semantic", "completeness", "unsupported", "truncated", "tokens"):
            measure = comparison.measure(name)
            sums[name] += measure.change if measure else 0.0  # type: ignore[assignment]
        differ = sum(one.differ for one in comparison.fields) / max(1, sum(one.documents for one in comparison.fields))
        sums["values that differ"] += differ  # type: ignore[assignment]
    low, high = share_bounds(caught, rounds, 0.025)
    effect = {name: round(value / rounds, 4) for name, value in sums.items()}
    told = {"caught": caught, "rounds": rounds, "power": caught / rounds, "95 %": [round(low, 3), round(high, 3)]}
    return {**told, **decisions, "rang": dict(rules.most_common(6)), "mean effect": effect}


def study(
    found: Pools, plants: Sequence[str], shares: Sequence[float], sizes: Sequence[int], rounds: int
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Plants at every share, with growing numbers of documents until the gate catches it."""
    for plant in (one for one in plants if one in found):
        for share in shares:
            steps: dict[str, Any] = {}
            for size in (one for one in sizes if one <= len(found[plant])):
                steps[str(size)] = planted(found, plant, share, size, rounds)
                if steps[str(size)]["power"] >= STOP:
                    break
            told = f"{plant}, {share:.0%} of documents: " + ", ".join(
                f"{n}: {s['power']:.2f}" for n, s in steps.items()
            )
            print(told, file=sys.stderr, flush=True)
            yield plant, f"{share:.0%} of documents", steps


def described(found: Pools) -> dict[str, Any]:
    """What the arms are like by themselves."""
    return {
        name: {
            "documents": len(pool),
            **Counter(one.status for one in pool.values()),
            "truncated": sum(one.values.get("truncated", 0.0) for one in pool.values()),
        }
        for name, pool in found.items()
    }


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gate", description=__doc__)
    parser.add_argument("part", choices=("collect", "derive", "none", "planted"))
    parser.add_argument("--work", type=Path, required=True, help="folder of the arms' outcomes; a part run goes on")
    parser.add_argument("--engine", type=Path, default=ENGINE)
    parser.add_argument("--other", type=Path, help="engine of the arm `other model`, which is left out without it")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=240, help="collect: begin no further arm after so long")
    parser.add_argument("--rounds", type=int, default=100, help="none: that many more")
    parser.add_argument("--plants", nargs="+", choices=PLANTS, default=PLANTS, help="planted: only these")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="planted: of the documents")
    parser.add_argument("--sizes", type=int, nargs="+", help=f"numbers of documents, if not {SIZES} and {DRAWN}")
    parser.add_argument("--name", default="real", help="under which the results are kept")
    parser.add_argument("--json", type=Path, help="file of results, to which this part is added")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
    asked = arguments(argv)
    try:
        if asked.part == "collect":
            engines = load_engine(asked.engine), load_engine(asked.other) if asked.other else None
            left = asyncio.run(collect(asked.work, engines, asked.documents, asked.seconds))
            print(f"still to run: {', '.join(left) or 'none'}")
            return 0
        if asked.part == "derive":
            derive(asked.work, asked.documents)
            return 0
    except GristmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    found, began = pools(asked.work), time.monotonic()
    kept = json.loads(asked.json.read_text(encoding="utf-8")) if asked.json and asked.json.exists() else {}
    result = kept.setdefault(f"{asked.part}, {asked.name}", {})
    result |= {"seed": SEED, "alpha": RULES.alpha, "arms": described(found)}
    if asked.part == "none":
        result["whole runs"] = whole_runs(found)
        sizes = result.setdefault("sizes", {})
        for size in map(str, asked.sizes or SIZES):
            sizes[size] = without_change(found, int(size), asked.rounds, sizes.get(size, {}))
            print(f"{size} documents: {sizes[size]}", file=sys.stderr, flush=True)
    else:
        for plant, share, steps in study(found, asked.plants, asked.shares, asked.sizes or DRAWN, asked.rounds):
            result.setdefault("plants", {}).setdefault(plant, {}).setdefault(share, {}).update(steps)
    result["seconds"] = round(result.get("seconds", 0) + time.monotonic() - began, 1)
    text = json.dumps({**kept, "machine": machine.describe()}, indent=1, ensure_ascii=False)
    if asked.json:
        asked.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
