"""What `--strict` does not let pass: the things of a report that somebody should have looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_UNPROVEN = 0.1
"""Share of the sites that no trial needs to have shown anything about."""

_BREAKS = ("narrowing", "breaking")

CODES = {
    "left_to_nobody": "a keyword that neither the grammar nor the validator judges",
    "lost": "a legal answer that the chosen back end cannot produce",
    "surprising": "a site that a trial showed not to be held, although the compiler did not say so",
    "dead_end": "a random answer that came to a state without a way to the end",
    "unproven": f"more than {MAX_UNPROVEN:.0%} of the sites without a trial that shows what is held",
    "lint": "a lint finding of severity warning",
    "budget": "max_tokens below what is recommended: the numbers are in the budget",
    "drift": "narrowing or breaking against the old version",
    "stale_lock": "a lock file that no longer says what the compiler makes",
}
"""Code of a reason → what it means."""


def strict_reasons(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """The reasons why a schema's report fails `--strict`, each with `code` and `words`. The chosen back end counts."""
    return [{"code": code, "words": words} for code, words in _reasons(report)]


def _reasons(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    nobody = [row for row in report["sites"] if row["caught_by"] == "nobody"]
    if nobody:
        yield "left_to_nobody", f"{len(nobody)} keywords that nobody judges"
    if report["chosen"]:
        yield from _of_trial(report["backends"][report["chosen"]["backend"]])
    warnings = sum(finding["severity"] == "warning" for finding in report["lint"]["findings"])
    if warnings:
        yield "lint", f"{warnings} lint warnings"
    for finding in (report["budget"] or {"findings": []})["findings"]:
        if finding["severity"] == "warn":
            yield "budget", finding["code"]
    if report["drift"] and report["drift"]["worst"] in _BREAKS:
        yield "drift", f"{report['drift']['worst']} against {report['drift']['against']}"
    if report["lock"] and report["lock"]["state"] == "stale":
        yield "stale_lock", f"{len(report['lock']['changes'])} differences from the lock file"


def _of_trial(trial: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    tight = trial["verdicts"].get("over_tight", 0)
    if trial["lost"] or tight:
        yield "lost", f"{len(trial['lost'])} legal texts cannot be produced, {tight} sites are held too tightly"
    if trial["surprises"]:
        yield "surprising", f"{len(trial['surprises'])} sites are not held although they were thought to be"
    stuck = sum(trial["walks"].get(end, 0) for end in ("dead_end", "error"))
    if stuck:
        yield "dead_end", f"{stuck} of {sum(trial['walks'].values())} random answers got stuck"
    unproven, total = trial["verdicts"].get("unproven", 0), sum(trial["verdicts"].values())
    if unproven > MAX_UNPROVEN * total:
        why = "" if trial["complete"] else ": the time for trials ran out"
        yield "unproven", f"{unproven} of {total} sites are unproven{why}"
