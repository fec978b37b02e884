"""What models extract rightly from public documents with gold, with the constraint and without it.

`python -m bench.quality --work DIR --json bench/results/quality.json`

For each set, engine and arm (`constrained`, or `free`: the same prompt, no grammar, repairs allowed) a job is run and
held against the gold by `gristmill evaluate`; every rate has its count, its whole and a 95 % interval. An arm that is
done is kept in DIR and not run again, so that a measurement can be stopped and continued; other settings are other
arms. `--engine LABEL=FILE.yaml` names engine configs, `--documents N` how many documents of each set there are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from bench import machine
from bench.documents import ROOT
from bench.quality_sets import SETS, Laid, Set, lay_out
from pipeline.evaluate.build import Asked, evaluate
from pipeline.evaluate.gold import GoldConfig
from pipeline.evaluate.shown import as_document
from pipeline.jobfile import load_engine
from pipeline.schema.fingerprint import digest

ARMS = ("constrained", "free")
EMBEDDED = f"embedded={ROOT / 'serve_configs' / 'cpu_embedded.yaml'}"
DOCUMENTS = 60
MAX_ITEMS = 40
"""Items of a list under the grammar: small models do not end lists of their own accord."""
OVERALL = ("f1", "f1_exact", "whole", "completeness", "abstention", "ungrounded")
FIELDS = ("precision", "recall", "f1", "f1_exact", "completeness", "abstention", "ungrounded")
SLICES = ("f1", "f1_exact", "completeness", "coverage", "valid")


@dataclass(frozen=True, slots=True)
class Arm:
    """One job: a set under an engine, with the constraint or free."""

    set: Set
    engine: str
    config: dict[str, Any]
    arm: str
    documents: int

    def job(self, laid: Laid, place: Path) -> dict[str, Any]:
        """The job file."""
        return {
            "name": f"quality-{self.set.name}",
            "input": {"path": str(laid.documents), "schema_column": "schema"},
            "output": str(place / "out"),
            "schemas": str(laid.schemas),
            "engine": self.config,
            "sampling": {
                "max_tokens": self.set.max_tokens,
                "constrained": self.arm == "constrained",
                "narrow": {"max_items": MAX_ITEMS},
            },
        }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="where arms are run and kept")
    parser.add_argument("--engine", action="append", metavar="LABEL=FILE.yaml", help=f"default: {EMBEDDED}")
    parser.add_argument("--set", choices=[one.name for one in SETS], action="append", help="only this one")
    parser.add_argument("--arm", choices=ARMS, action="append", help="only this one")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help=f"of each set; default {DOCUMENTS}")
    parser.add_argument("--json", type=Path, help="also write the results there")
    chosen = parser.parse_args(argv)
    described, load = machine.describe(), round(os.getloadavg()[0], 2)
    print(machine.sentence(described), flush=True)
    found = []
    for arm in _arms(chosen):
        found.append(_measured(arm, chosen.work))
        _show(found[-1])
    if chosen.json:
        settings = {"documents": chosen.documents, "max_items": MAX_ITEMS}
        result = {
            "benchmark": "quality",
            "machine": described,
            "load_before": load,
            "settings": settings,
            "arms": found,
        }
        chosen.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _arms(chosen: argparse.Namespace) -> Iterator[Arm]:
    engines = [text.partition("=") for text in chosen.engine or [EMBEDDED]]
    for one in SETS:
        for label, _, path in engines:
            for arm in ARMS:
                if (chosen.set is None or one.name in chosen.set) and (chosen.arm is None or arm in chosen.arm):
                    yield Arm(one, label, load_engine(path).model_dump(mode="json"), arm, chosen.documents)


def _measured(arm: Arm, work: Path) -> dict[str, Any]:
    """What became of an arm: kept, or run now."""
    inputs = work.resolve() / f"{arm.set.name}-{arm.documents}"
    inputs.mkdir(parents=True, exist_ok=True)
    laid = lay_out(arm.set, arm.documents, inputs)
    place = inputs / f"{arm.engine}-{arm.arm}"
    job = arm.job(laid, place)
    settings = digest(job)
    kept = place / f"result-{settings}.json"
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    place.mkdir(parents=True, exist_ok=True)
    path = place / "job.yaml"
    path.write_text(yaml.safe_dump(job, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "run", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    result = _rounded(_evaluated(arm, laid, str(path)))
    kept.write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")
    return result


def _evaluated(arm: Arm, laid: Laid, path: str) -> dict[str, Any]:
    found = evaluate(Asked(path, GoldConfig(str(laid.gold), by=("lang",))))
    told, manifest = as_document(found), found.run.manifest
    begun, ended = map(datetime.fromisoformat, (manifest.started, manifest.committed))
    return {
        "set": arm.set.name,
        "engine": arm.engine,
        "arm": arm.arm,
        "documents": laid.count,
        "of": laid.there,
        "seconds": (ended - begun).total_seconds(),  # from the run's beginning, through interruptions, to its commit
        "tokens": {
            name: manifest.totals[name] for name in ("prompt_tokens", "output_tokens", "wasted_tokens", "attempts")
        },
        "gold": told["gold"]["rows"],
        "overall": told["overall"],
        "fields": {name: _few(one["fields"], FIELDS) for name, one in told["schemas"].items()},
        "slices": {kind: _few(values, SLICES) for kind, values in told["slices"].items()},
        "published": told["published"],
        "mistakes": [
            {name: group[name] for name in ("pointer", "kind", "leaves", "documents", "ungrounded")}
            for group in told["mistakes"][:20]
        ],
        "notes": told["notes"],
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_rounded(child) for child in value]
    return round(value, 4) if isinstance(value, float) else value


def _few(scores: dict[str, Any], rates: Sequence[str]) -> dict[str, Any]:
    """Scores with some of their rates: a results file is to be read."""
    return {key: {**one, "rates": {name: one["rates"][name] for name in rates}} for key, one in scores.items()}


def _show(found: dict[str, Any]) -> None:
    rates = found["overall"]["rates"]
    print(f"{found['set']}, {found['engine']}, {found['arm']}: {found['documents']} of {found['of']} documents", end="")
    print(f", {found['seconds']} s, {found['tokens']['output_tokens']} tokens written")
    layers = ("coverage", "first_pass_format", "post_repair_format", "schema", "semantic", "valid", "rejected")
    print("  " + "; ".join(f"{name} {_rate(rates[name])}" for name in layers))
    print("  " + "; ".join(f"{name} {_rate(rates[name])}" for name in OVERALL))
    for metric, parts in (found["published"] or {}).items():
        print(f"  {metric}: F1 {_rate(parts['f1'])}")
    sys.stdout.flush()


def _rate(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "-"
    return f"{rate['value']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}] of {rate['of']:g}"


if __name__ == "__main__":
    main()
