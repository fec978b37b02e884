"""What `gristmill check` shows a person: one schema's report, as JSON, becomes tables. Nothing is decided here.

Pointers, names, evidence and the words of compilers come from schemas that nobody vouches for: all of it is shown as
text on one line (`safe`), never as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.observe.checked_numbers import budget_lines, cost_table, raw_table, safe

MAX_ROWS = 60
"""Rows of one table that are shown unless all are asked for."""

MAX_PLACES = 20

_STYLES = {"nobody": "red", "validator": "yellow", "grammar": "green"}
_VERDICTS = {"dropped": "yellow", "over_tight": "red", "refused": "red", "unproven": "yellow", "enforced": "green"}
_ORDER = ("nobody", "validator", "grammar")

Report = Mapping[str, Any]


def rendered(report: Report, *, everything: bool = False) -> Iterator[RenderableType]:
    """The parts of one schema's report in the order in which a person should read them."""
    yield from _head(report)
    if not report["backends"]:
        return
    yield from _alarms(report)
    yield from _sites(report, everything)
    yield from _left(report, everything)
    yield cost_table(report)
    if any(trial["raw"] for trial in report["backends"].values()):
        yield raw_table(report)
    for words in budget_lines(report["budget"]):
        yield Text(safe(words, 600), "red" if words.startswith("refused") else "")
    yield from _lint(report, everything)
    yield _table("columns", ("column", "type", "null", "note"), map(_column, report["columns"]), everything)
    yield from _policies(report)
    yield from _drift(report, everything)
    yield from _lock(report, everything)
    for reason in report["strict"]:
        yield Text(f"strict: {safe(reason['code'])}: {safe(reason['words'])}", "yellow")


def line(brief: Mapping[str, Any]) -> Text:
    """The short form of one schema's plan, for `gristmill run`. Keys as in `compile.report.short_form`."""
    name = safe(brief["name"])
    if brief["refused"]:
        return Text(f"{name}: refused, its documents are rejected: {safe(brief['refused'], 400)}", "red")
    if brief["sites"] is None:
        return Text(f"{name}: {safe(brief['backend'])}, as recorded; nothing was tried")
    parts = [f"{name}: {safe(brief['backend'])} ({safe(brief['why'])})"]
    parts.append(f"{brief['enforced']} of {brief['sites']} sites enforced")
    left = brief["left"]
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        parts.append(f"left to the validator: {', '.join(safe(site, 60) for site in left[:3])}{more}")
    shown = Text("; ".join(parts))
    for warning in brief.get("warnings", ()):
        shown.append(f"\n  {safe(warning, 400)}", "yellow")
    return shown


def _head(report: Report) -> Iterator[RenderableType]:
    yield Text(f"\n{safe(report['name'])}", "bold")
    if report["refused"]:
        code, words = safe(report["refused"]["code"]), safe(report["refused"]["words"], 2000)
        yield Text(f"refused ({code}): {words}", "bold red")
    if report["chosen"]:
        yield Text(f"back end: {safe(report['chosen']['backend'])}, because {safe(report['chosen']['why'])}")


def _alarms(report: Report) -> Iterator[RenderableType]:
    for name, trial in report["backends"].items():
        if trial["kind"] != "ok":
            yield Text(f"{safe(name)} cannot be used: {safe(trial['kind'])}: {safe(trial['words'], 600)}", "red")
        for site in trial["surprises"]:
            yield Text(f"SURPRISE: {safe(name)} does not hold {_place(site)}, which it was thought to hold", "bold red")
        for text in trial["lost"][:3]:
            yield Text(f"LOST: {safe(name)} cannot produce the legal answer {safe(text)}", "bold red")
        if len(trial["lost"]) > 3:
            yield Text(f"LOST: and {len(trial['lost']) - 3} more legal answers with {safe(name)}", "bold red")
        if trial["kind"] == "ok" and not trial["complete"]:
            yield Text(f"{safe(name)}: the time for trials ran out, what was not tried is unproven", "yellow")


def _sites(report: Report, everything: bool) -> Iterator[RenderableType]:
    """Sites that somebody should look at, the gravest first; those that every usable back end holds as counts."""
    used = [name for name, trial in report["backends"].items() if trial["kind"] == "ok"]
    rows = sorted(report["sites"], key=lambda row: _ORDER.index(row["caught_by"]))
    held = [row for row in rows if _is_held(row, used)]
    shown = rows if everything else [row for row in rows if not _is_held(row, used)]
    heads = ("node", "keyword", *(safe(name) for name in report["backends"]), _who(report))
    if shown:
        yield _table("sites", heads, (_site(row) for row in shown), everything)
    if held and not everything:
        counts = Counter(row["keyword"] for row in held)
        words = ", ".join(f"{count} {safe(keyword)}" for keyword, count in sorted(counts.items()))
        yield Text(f"held by every back end in use: {len(held)} sites: {words}", "green")


def _who(report: Report) -> str:
    return f"caught with {report['chosen']['backend']} by" if report["chosen"] else "caught by"


def _is_held(row: Mapping[str, Any], used: Sequence[str]) -> bool:
    held = all(row["backends"][name]["verdict"] == "enforced" and not row["backends"][name]["left"] for name in used)
    return bool(used) and held and row["caught_by"] == "grammar"


def _site(row: Mapping[str, Any]) -> list[Text]:
    verdicts = []
    for told in row["backends"].values():
        words = f"{told['verdict']}, left" if told["left"] else told["verdict"]
        verdicts.append(Text(safe(words), "yellow" if told["left"] else _VERDICTS.get(told["verdict"], "")))
    who = row["caught_by"]
    return [Text(safe(row["pointer"] or "/")), Text(safe(row["keyword"])), *verdicts, Text(who, _STYLES[who])]


def _left(report: Report, everything: bool) -> Iterator[RenderableType]:
    rows = [
        [Text(safe(name)), Text(safe(left["pointer"] or "/")), Text(safe(left["keyword"])), Text(safe(left["why"]))]
        for name, trial in report["backends"].items()
        for left in trial["left"]
    ]
    if rows:
        yield _table("left to the validator", ("back end", "node", "keyword", "why"), rows, everything)


def _lint(report: Report, everything: bool) -> Iterator[RenderableType]:
    findings = sorted(report["lint"]["findings"], key=lambda finding: finding["severity"] != "warning")
    rows = [
        [
            Text(safe(finding["severity"]), "yellow" if finding["severity"] == "warning" else ""),
            Text(safe(finding["code"])),
            Text(safe(finding["pointer"] or "/")),
            Text(safe(f"{finding['why']} {finding['fix']}", 400)),
        ]
        for finding in findings
    ]
    if rows:
        yield _table("lint", ("severity", "code", "node", "why and what to do"), rows, everything)


def _column(row: Mapping[str, Any]) -> list[Text]:
    null = "yes" if row["nullable"] else "no"
    return [Text(safe(row["path"] or "/")), Text(safe(row["type"])), Text(null), Text(safe(row["note"]))]


def _policies(report: Report) -> Iterator[RenderableType]:
    if report["closed"]:
        yield Text(f"closed to undeclared keys, since the schema does not ask for them: {_places(report['closed'])}")
    if report["printed"]:
        yield Text(f"asked for as text as printed, normalised afterwards: {_places(report['printed'])}")
    for name, trial in report["backends"].items():
        if trial["narrowed"]:
            places = _places(trial["narrowed"])
            yield Text(
                f"narrowed by policy, longer legal values cannot be produced with {safe(name)}: {places}", "yellow"
            )


def _drift(report: Report, everything: bool) -> Iterator[RenderableType]:
    found = report["drift"]
    if not found:
        return
    classes = ", ".join(f"{name} {safe(found[name])}" for name in ("language", "readers", "model"))
    yield Text(f"against {safe(found['against'])}: {safe(found['worst'])} ({classes})", "bold")
    keys = ("pointer", "kind", "before", "after", "language", "readers", "model")
    rows = [[Text(safe(change[key], 60)) for key in keys] for change in found["changes"]]
    if rows:
        yield _table("drift", keys, rows, everything)


def _lock(report: Report, everything: bool) -> Iterator[RenderableType]:
    found = report["lock"]
    if not found:
        return
    notes = {"other": "fresh as far as can be told: it was made for other options"}
    style = "yellow" if found["state"] == "stale" else ""
    yield Text(f"lock: {notes.get(found['state'], safe(found['state']))}", style)
    rows = [[Text(safe(change[key])) for key in ("kind", "where", "was", "now")] for change in found["changes"]]
    if rows:
        yield _table("lock", ("kind", "where", "in the lock", "now"), rows, everything)


def _table(title: str, heads: Iterable[str], rows: Iterable[list[Text]], everything: bool) -> Table:
    table = Table(*heads, title=Text(title), title_justify="left")
    given = list(rows)
    for row in given if everything else given[:MAX_ROWS]:
        table.add_row(*row)
    if len(given) > MAX_ROWS and not everything:
        table.add_row(Text(f"… and {len(given) - MAX_ROWS} more (--all)"))
    return table


def _places(pointers: Sequence[str]) -> str:
    more = f" and {len(pointers) - MAX_PLACES} more" if len(pointers) > MAX_PLACES else ""
    return ", ".join(safe(pointer or "/", 60) for pointer in pointers[:MAX_PLACES]) + more


def _place(site: Mapping[str, Any]) -> str:
    return f"{safe(site['keyword'])} at {safe(site['pointer'] or '/')}"
