"""Gristmill against bare vLLM and against ray.data.llm: same documents, prompts, constraint, engine and machine.

`python -m bench.overhead --rounds 5 --documents 192 --json bench/results/overhead.json`
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.documents import source
from bench.intervals import Ratio, paired_ratio
from bench.processes import run_and_clear
from bench.systems.measured import Measured
from bench.workload import ENGINE_SETTINGS, ENVIRONMENT, MAX_TOKENS, WARM_DOCUMENTS, Workload, make, plan
from pipeline.records import Draft
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.parse import Unparsable, loads
from pipeline.steps.validate import validate

SYSTEMS = {"bare": "bench.systems.bare", "ours": "bench.systems.ours", "ray.data.llm": "bench.systems.ray_llm"}
TARGETS = {"bare": 0.95, "ray.data.llm": 1.0}
TOKENS_AGREE = 0.01
PAUSE_SECONDS = 3

Round = dict[str, Measured]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="each runs every system once, in rotating order")
    parser.add_argument("--documents", type=int, default=192)
    parser.add_argument("--only", choices=SYSTEMS, action="append", help="leave the other systems out (no ratios)")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    names = chosen.only or list(SYSTEMS)
    work = make(chosen.documents)
    print(machine.sentence(machine.describe()))
    rounds = list(_rounds(work, names, chosen.rounds))
    result = summarise(rounds, chosen.documents)
    print(_report(result))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _rounds(work: Workload, names: list[str], count: int) -> Iterator[Round]:
    """Another system goes first in each round, so that none always finds the machine coldest."""
    for number in range(count):
        turn = number % len(names)
        measured: Round = {}
        for name in names[turn:] + names[:turn]:
            measured[name] = _measure(name, work)
            print(f"round {number + 1} {name:12}: {measured[name].rate:6.2f} docs/s", flush=True)
        yield measured


def _measure(name: str, work: Workload) -> Measured:
    """Run one system in a process of its own, so that no engine's memory is in another's way."""
    time.sleep(PAUSE_SECONDS)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-overhead-") as folder:
        path = Path(folder, "workload.json")
        replace(work, started=time.time()).save(path)
        command = [sys.executable, "-m", SYSTEMS[name], str(path)]
        code, output, errors = run_and_clear(command, Path(folder), ENVIRONMENT)
    found = Measured.find(output)
    if found is None:
        raise SystemExit(f"{name} gave no measurement (exit code {code}):\n{errors[-4000:]}")
    return replace(found, extra={**found.extra, "load_before": round(load, 2)})


def summarise(rounds: Sequence[Round], documents: int) -> dict[str, Any]:
    """Everything that is reported, as plain JSON values. Model texts are judged here and not kept."""
    names = list(SYSTEMS) if len(rounds[0]) > 1 else list(rounds[0])
    names = [name for name in names if name in rounds[0]]
    chosen = plan()
    result: dict[str, Any] = {
        "benchmark": "overhead",
        "machine": machine.describe(),
        "settings": _settings(documents),
        "rounds": [{name: _row(one[name], one.get("bare"), chosen) for name in one} for one in rounds],
        "systems": {name: _system([one[name] for one in rounds]) for name in names},
        "ratios": {},
        "steady_ratios": {},
        "tokens_agree": tokens_agree(rounds),
    }
    for other in ("bare", "ray.data.llm"):
        if other not in names or "ours" not in names:
            continue
        ratio = paired_ratio([one["ours"].rate for one in rounds], [one[other].rate for one in rounds])
        result["ratios"][other] = {**asdict(ratio), "target": TARGETS[other], "met": ratio.median >= TARGETS[other]}
        if all(one[name].steady_rate for one in rounds for name in ("ours", other)):
            steady = [[one[name].steady_rate for one in rounds] for name in ("ours", other)]
            result["steady_ratios"][other] = asdict(paired_ratio(*steady))
    return result


def _settings(documents: int) -> dict[str, Any]:
    return {
        "documents": documents,
        "warm_documents": WARM_DOCUMENTS,
        "source": "receipts_sroie" if source().parent.name == "receipts_sroie" else "jobs/samples",
        "engine": ENGINE_SETTINGS,
        "environment": ENVIRONMENT,
        "model": "embedded",
        "max_tokens": MAX_TOKENS,
        "temperature": 0.0,
    }


def _row(measured: Measured, bare: Measured | None, chosen: DecodingPlan) -> dict[str, Any]:
    values = asdict(measured)
    texts: dict[str, str] = values.pop("texts")
    same = sum(text == bare.texts.get(key) for key, text in texts.items()) if bare else None
    return {
        **{key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()},
        "extra": {key: round(value, 4) for key, value in measured.extra.items()},
        "rate": round(measured.rate, 4),
        "valid": sum(is_valid(text, chosen) for text in texts.values()),
        "same_text_as_bare": same,
    }


def is_valid(text: str, chosen: DecodingPlan) -> bool:
    """One rule for all systems: strict JSON that satisfies the acceptance schema."""
    try:
        value = loads(text)
    except Unparsable:
        return False
    return not validate(Draft(value=value, parsed=True), chosen, 1).problems


def _system(measured: Sequence[Measured]) -> dict[str, float]:
    return {
        "docs_per_second": round(median(one.rate for one in measured), 3),
        "steady_docs_per_second": round(median(one.steady_rate for one in measured), 3),
        "start_seconds": round(median(one.start_seconds for one in measured), 1),
        "prompt_tokens": median(one.prompt_tokens for one in measured),
        "output_tokens": median(one.output_tokens for one in measured),
    }


def tokens_agree(rounds: Sequence[Round]) -> bool:
    """Whether all systems read and wrote the same number of tokens, within a hundredth."""
    for one in rounds:
        for counts in zip(*((m.prompt_tokens, m.output_tokens) for m in one.values()), strict=True):
            if max(counts) - min(counts) > TOKENS_AGREE * max(counts):
                return False
    return True


def _report(result: dict[str, Any]) -> str:
    lines = ["", f"{'round':>5}  {'system':12} {'docs/s':>7} {'steady':>7} {'start s':>8} {'valid':>9} {'tokens':>15}"]
    for number, one in enumerate(result["rounds"], 1):
        for name, row in one.items():
            tokens = f"{row['prompt_tokens']}+{row['output_tokens']}"
            valid = f"{row['valid']}/{row['documents']}"
            numbers = f"{row['rate']:7.2f} {row['steady_rate']:7.2f} {row['start_seconds']:8.1f}"
            lines.append(f"{number:5}  {name:12} {numbers} {valid:>9} {tokens:>15}")
    lines.append("")
    for title, key in (("first submission to last result", "ratios"), ("steady window", "steady_ratios")):
        for other, value in result[key].items():
            ratio = Ratio(**{name: value[name] for name in ("median", "low", "high", "rounds")})
            verdict = f", target >= {value['target']}: {'met' if value['met'] else 'MISSED'}" if "met" in value else ""
            lines.append(f"ours / {other} ({title}): {ratio}{verdict}")
    lines.append(f"token totals agree within 1 %: {'yes' if result['tokens_agree'] else 'NO'}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
