"""The report of a set for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.coverage.measure import BACKENDS

MAX_LISTED = 12
MAX_TEXT = 150
TARGET_SECONDS = {"p50": 0.5, "p99": 10.0}

Report = Mapping[str, Any]

_RAW = (("", "handed", "failed"), (", vLLM admits", "handed_with_vllm", "failed_or_refused_by_vllm"))


def show(console: Console, name: str, report: Report) -> None:
    """Print one set."""
    console.rule(f"[bold]{escape(name)}")
    for line in _summary(report):
        console.print(line, highlight=False)
    console.print(_instances(report), _sites(report), _times(report))
    for kind, meaning in (("lost", "Legal, and out of reach"), ("unannounced", "Let through, and not announced")):
        _list(console, meaning, report["cases"][kind])
    for fault in report["cases"]["broken"][:MAX_LISTED]:
        place = f"{fault['id']} {fault['backend']}: {fault['kind']} in {fault['where']}: {fault['words'][:MAX_TEXT]}"
        console.print(f"  {place}", markup=False)


def _summary(report: Report) -> list[str]:
    plans, handed, whole = report["plans"], report["instances"], report["seconds"]["whole"]
    missed = [name for name, most in TARGET_SECONDS.items() if whole.get(name, 0) > most]
    return [
        f"{report['schemas']} schemas, {report['loaded']} loaded; not loaded: {_told(report['not_loaded'])}",
        f"plans made: {plans['made']} ({_told(plans['chosen'])}); no plan: {_told(plans['refused'])}",
        f"crashed {_zero(report['crashed'])}, hung {_zero(report['hung'])} (targets 0)",
        f"handed instances: {handed['handed']}, accepted {handed['accepted']}, unjudged {handed['unjudged']}; labelled "
        f"valid but refused: {_told(handed['labelled_valid_but_refused'])}; labelled invalid but accepted: "
        f"{_told(handed['labelled_invalid_but_accepted'])}",
        f"seconds per schema, load and both trials: {_told(whole)} "
        f"({'targets met' if not missed else 'MISSED: ' + ', '.join(missed)}: P50 ≤ 0.5, P99 ≤ 10)",
    ]


def _instances(report: Report) -> Table:
    columns = ("system", "schemas failed", "valid", "lost", "without plan", "invalid", "announced", "unannounced")
    table = _table("Handed instances", columns)
    failed = len(report["cases"]["no_plan"])
    for name, found in (("chosen", report["chosen"]), *((b, report["backends"][b]["handed"]) for b in BACKENDS)):
        if name != "chosen":
            failed = sum(count for kind, count in report["plans"]["by_backend"][name].items() if kind != "ok")
        cells = [found[key] for key in ("valid", "lost", "without_plan", "invalid", "announced", "unannounced")]
        table.add_row(f"ours, {name}", str(failed), *(str(cell) for cell in cells))
    for backend, raw in report["raw"].items():
        for admitted, key, failures in _RAW:
            found = raw[key]["by_our_validator"]
            without = sum(raw[key]["of_failed_schemas"].values())
            cells = [raw[failures], found["valid"], found["lost"], f"({without})", found["invalid"], "-"]
            table.add_row(f"raw {backend}{admitted}", *(str(cell) for cell in [*cells, found["let_through"]]))
    table.caption = "raw: the untouched schema, judged by our validator; in brackets all instances of failed schemas"
    return table


def _sites(report: Report) -> Table:
    kinds = ("enforced", "dropped", "over_tight", "refused", "unproven")
    table = _table("Keyword sites, by the probe", ("system", "sites", *kinds, "left"))
    for backend in BACKENDS:
        ours = report["backends"][backend]
        cells = [ours["sites"].get(kind, 0) for kind in ("sites", *kinds)]
        table.add_row(f"ours, {backend}", *(str(cell) for cell in cells), str(ours["left"]["sites"]))
        if backend in report["raw"]:
            for admitted, key, _ in _RAW:
                found = report["raw"][backend][key.replace("handed", "sites")]
                table.add_row(f"raw {backend}{admitted}", *(str(found.get(kind, 0)) for kind in ("sites", *kinds)), "-")
    return table


def _times(report: Report) -> Table:
    columns = ("", "compile P50 s", "P99", "max", "mask P50 µs", "P99", "P99.9", "trial P50 s", "P99", "max")
    table = _table("Times", columns)
    for backend in BACKENDS:
        found, trial = report["backends"][backend], report["seconds"]["trial"][backend]
        cells = [found["compile_seconds"].get(name, "") for name in ("p50", "p99", "max")]
        cells += [found["mask_micros"].get(name, "") for name in ("p50", "p99", "p999")]
        cells += [trial.get(name, "") for name in ("p50", "p99", "max")]
        table.add_row(backend, *(str(cell) for cell in cells))
    return table


def _list(console: Console, meaning: str, cases: list[Report]) -> None:
    if cases:
        console.print(f"[bold]{meaning}: {len(cases)}[/bold]", highlight=False)
    for case in cases[:MAX_LISTED]:
        sites = f" at {case['sites'][:2]}" if "sites" in case else ""
        place = f"{case['id']} ({case['backend']}, {case['from']}){sites}: {case['text'][:MAX_TEXT]}"
        console.print(f"  {place}", markup=False, highlight=False)


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    return table


def _told(counts: Mapping[str, Any]) -> str:
    return escape(", ".join(f"{name} {count}" for name, count in counts.items())) or "none"


def _zero(count: int) -> str:
    return str(count) if count == 0 else f"[bold red]{count}[/bold red]"
