"""Real processes killed at random moments: is every document there once, and what did it cost?

Rounds alternate: `local` (the command starts its own Ray) and `actors` (two nodes of `ray start`, engines in processes
of their own). In each, one to three of driver, worker, engine, raylet and control are killed, the first by turns, at
moments drawn by the round's number. A command that ends by it is given again, until the run is committed.

`python -m bench.chaos --rounds 20 --json bench/results/chaos.json`
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine
from bench.chaos.command import Command, prepare
from bench.chaos.herd import Herd
from bench.chaos.jobs import documents, job
from bench.chaos.judge import Row, answers, check, different, outcomes, repeated
from bench.chaos.nodes import Nodes
from bench.chaos.story import KINDS, MODEL_KINDS, POLL_SECONDS, RETRIED, Round, plan_round

ATTEMPTS = 3
DOCUMENTS = {"sampler": 2000, "vllm": 60}


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The same job in peace. With a model, outcomes are not comparable: its kernels are not batch-invariant."""

    seconds: float
    start_seconds: float
    answer_bytes: int
    outcomes: dict[str, Row] | None
    answers: Counter[str]


def main(argv: Sequence[str] | None = None) -> None:
    chosen = _arguments(argv)
    rows = documents(chosen.documents or DOCUMENTS[chosen.engine])
    print(machine.sentence(machine.describe()), flush=True)
    where = Path(tempfile.mkdtemp(prefix="bench-chaos-"))
    reference = undisturbed(where / "undisturbed", rows, chosen)
    print(f"undisturbed: {reference.seconds:.1f} s, {_statuses(reference)}", flush=True)
    rounds = []
    for number in range(chosen.first, chosen.first + chosen.rounds):
        rounds.append(play(number, where / f"round-{number:02d}", rows, reference, chosen))
        print(_line(rounds[-1]), flush=True)
    result = summary(rounds, reference, len(rows), chosen)
    print(json.dumps(result["totals"]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if any(one["failure"] for one in rounds):
        print(f"FAILED; logs and outputs are kept in {where}", flush=True)
        sys.exit(1)
    shutil.rmtree(where)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first round, which is also its seed")
    parser.add_argument("--documents", type=int, help="of a job; default 2000, with vllm 60")
    parser.add_argument("--engine", choices=tuple(DOCUMENTS), default="sampler")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one command may take")
    parser.add_argument("--json", type=Path, help="also write the results there")
    return parser.parse_args(argv)


def undisturbed(folder: Path, rows: list[dict[str, Any]], chosen: argparse.Namespace) -> Undisturbed:
    """Run the job once in peace, for what its outcomes and its duration are."""
    prepare(folder, job("local", chosen.engine), rows)
    for _ in range(ATTEMPTS):
        code, started, command = _peace(folder, chosen.limit)
        if code not in RETRIED:
            break
    wrong = check(folder) if code == 0 else command.words()[-3000:]
    if wrong:
        sys.exit(f"the undisturbed run ended with {code}:\n{wrong}")
    comparable = chosen.engine == "sampler"
    found = outcomes(folder) if comparable else None
    return Undisturbed(command.ended - command.started, started, command.answer_bytes(), found, answers(folder))


def _peace(folder: Path, limit: float) -> tuple[int | None, float, Command]:
    """One command on its own: its exit code, and the seconds until its engines started."""
    herd = Herd()
    nodes = Nodes(herd)
    try:
        command = Command(folder, nodes.environment, record=True)
        while not command.engines_started() and command.process.poll() is None and command.seconds < limit:
            time.sleep(POLL_SECONDS)
        started = command.seconds
        return command.wait(limit), started, command
    finally:
        herd.end()
        nodes.remove()


def play(
    number: int, folder: Path, rows: list[dict[str, Any]], reference: Undisturbed, chosen: argparse.Namespace
) -> dict[str, Any]:
    """One round with its verdict, as it stands in the results file."""
    model = chosen.engine == "vllm"
    placement = "local" if model or number % 2 == 0 else "actors"
    kinds = MODEL_KINDS if model else KINDS[placement]
    plan = plan_round(number, placement, reference.start_seconds, kinds)
    told = Round(plan, folder, Herd(), reference.answer_bytes, chosen.limit).play(job(placement, chosen.engine), rows)
    result = told.to_json()
    if not told.failure:
        result |= _verdict(folder, rows, reference)
    if not result["failure"]:
        shutil.rmtree(folder)
    return result


def _verdict(folder: Path, rows: list[dict[str, Any]], reference: Undisturbed) -> dict[str, Any]:
    found = outcomes(folder)
    others = different(found, reference.outcomes) if reference.outcomes is not None else []
    missing = {row["id"] for row in rows} ^ set(found)
    failure = check(folder)
    if missing:
        failure = failure or f"documents missing or made up: {sorted(missing)[:5]}"
    if others:
        failure = failure or f"{len(others)} documents have other outcomes than undisturbed: {others[:5]}"
    return {
        "failure": failure,
        "different": len(others),
        "poisons": sum(row.poison for row in found.values()),
        "answered_again": repeated(answers(folder), reference.answers),
    }


def summary(
    rounds: list[dict[str, Any]], reference: Undisturbed, count: int, chosen: argparse.Namespace
) -> dict[str, Any]:
    """The results file."""
    seconds = sorted(one["seconds"] for one in rounds)
    again = [one.get("answered_again", {"prompts": 0, "answers": 0}) for one in rounds]
    totals = {
        "rounds": len(rounds),
        "failed": sum(bool(one["failure"]) for one in rounds),
        "kills": dict(sorted(Counter(kill["kind"] for one in rounds for kill in one["kills"]).items())),
        "commands": sum(one["commands"] for one in rounds),
        "exit_codes": {str(code): n for code, n in Counter(c for one in rounds for c in one["exit_codes"]).items()},
        "tracebacks": sum(one["tracebacks"] for one in rounds),
        "seconds_median": seconds[len(seconds) // 2],
        "seconds_most": seconds[-1],
        "different": sum(one.get("different", 0) for one in rounds),
        "poisons_wrongly_found": sum(one.get("poisons", 0) for one in rounds),
        "prompts_answered_again": sum(one["prompts"] for one in again),
        "answers_too_many": sum(one["answers"] for one in again),
        "answers_needed": sum(reference.answers.values()) * len(rounds),
    }
    return {
        "benchmark": "chaos",
        "machine": machine.describe(),
        "date": time.strftime("%Y-%m-%d"),
        "settings": {"documents": count, "engine": chosen.engine, "first_seed": chosen.first},
        "load": round(os.getloadavg()[0], 2),
        "undisturbed": {
            "seconds": round(reference.seconds, 1),
            "seconds_to_engines": round(reference.start_seconds, 1),
            "statuses": _statuses(reference),
        },
        "totals": totals,
        "rounds": rounds,
    }


def _statuses(reference: Undisturbed) -> dict[str, int]:
    return dict(sorted(Counter(row.status for row in (reference.outcomes or {}).values()).items()))


def _line(one: dict[str, Any]) -> str:
    kills = (
        ", ".join(f"{kill['kind']} at {kill['seconds']} s {kill['when']}" for kill in one["kills"]) or "nothing in time"
    )
    verdict = (
        f"FAILED: {one['failure']}" if one["failure"] else f"whole; {one['answered_again']['answers']} answers again"
    )
    return f"{one['seed']:3} {one['placement']:6} {kills}; exits {one['exit_codes']}, {one['seconds']} s: {verdict}"


if __name__ == "__main__":
    main()
