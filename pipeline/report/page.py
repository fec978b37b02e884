"""The page: tables and pictures of a run, and the template that shows them. Whatever a run holds is shown as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipeline import __version__
from pipeline.observe.shift import Comparison
from pipeline.observe.tally import Tally
from pipeline.observe.visible import visible
from pipeline.report import sections, sections_run
from pipeline.report.against import Pair
from pipeline.report.cost import Cost
from pipeline.report.findings import OTHER, Findings
from pipeline.report.headlines import headlines
from pipeline.report.moved import fields_moved
from pipeline.report.picture import flow_of, histogram
from pipeline.report.problems import SHOWN_EXAMPLES, Group
from pipeline.report.shown import Cell, Table, count, part
from pipeline.runtime.output.browse import Browsed
from pipeline.steps.codes import CODES

if TYPE_CHECKING:
    import jinja2

OPEN_EXAMPLES = 4
"""How many examples stand open; the others open at a touch, and on paper."""
OPEN_ROWS = 12


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the page says: the run, what was found in the rows read, counts over all rows by schema and together,
    and the run before it."""

    run: Browsed
    findings: Findings
    groups: Sequence[Group]
    tallies: Mapping[str, Tally]
    total: Tally
    cost: Cost
    before: Browsed | None
    pairs: Sequence[Pair]
    moved: Comparison | None


def page_of(facts: Facts) -> str:
    """The page as HTML, without anything that lies elsewhere."""
    return template().render(**_context(facts))


@lru_cache(maxsize=4)
def template(name: str = "report.html") -> jinja2.Template:
    """A template of `report/page`: every value is escaped, and controls in it are shown, not obeyed."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["exact"] = _exact
    return environment.get_template(name)


def _shown(value: Any) -> Any:
    """A text with its controls made visible; what is markup already is the template's own."""
    return visible(value) if type(value) is str else value


def _exact(value: object) -> str:
    """A figure's value as JSON, to be read back."""
    return json.dumps(value)


def _context(facts: Facts) -> dict[str, Any]:
    run, manifest = facts.run, facts.run.manifest
    shown = [group for group in facts.groups if group.example][:SHOWN_EXAMPLES]
    links = {group.key: f"#problem-{rank}" for rank, group in enumerate(shown, 1)}
    return {
        "version": __version__,
        "manifest": manifest,
        "committed": _minute(manifest.committed),
        "where": run.store.where,
        "engines": ", ".join(dict.fromkeys(rates.engine for rates in facts.total.rates() if rates.engine)),
        "documents": count("documents", manifest.documents),
        "statuses": sections.statuses(manifest.counts, manifest.documents),
        "notes": list(_notes(facts)),
        "headlines": headlines(facts.findings, facts.total, facts.pairs, facts.moved, links),
        "paths": sections.paths(facts.total),
        "attempts": sections.attempts(facts.findings, facts.total),
        "repairs": sections.repairs(facts.total),
        "layers": sections.layers(facts.tallies),
        "problems": _split(sections_run.problems(facts.groups, links)),
        "examples": list(enumerate(shown, 1)),
        "codes": CODES,
        "open_examples": OPEN_EXAMPLES,
        "replay": sections_run.replay_command,
        "tokens": sections_run.tokens(facts.total, facts.tallies),
        "against": _against(facts),
        "provenance": sections_run.provenance(manifest, run.record, run.store.where),
        **_of_rows(facts),
    }


def _of_rows(facts: Facts) -> dict[str, Any]:
    """What is known of the rows that were read, which of a large run are not all."""
    findings, documents = facts.findings, facts.run.manifest.documents
    whole = findings.documents == documents
    bins = [
        (name, histogram(lengths), sections.key("bin", name))
        for name, lengths in sorted(findings.lengths.items())
        if lengths.bins
    ]
    audited = {name: found for name, found in findings.clipped.items() if found.fields}
    return {
        "read": part("read", findings.documents, documents),
        "whole": whole,
        "flows": [flow_of(findings.flow, 560), flow_of(findings.flow, 350)],
        "lost": sections.lost(findings),
        "more_problems": len(findings.problems.groups) - len(facts.groups),
        "lengths": sections.lengths_of(findings.lengths),
        "histograms": bins,
        "fields": _by_schema(findings.completeness, sections.fields),
        "clipped": _by_schema(audited, sections_run.clipped),
        "audits": _audits(findings),
        "slowest": sections_run.slowest(findings.slowest),
        "cost": sections_run.cost(facts.cost, facts.total, findings, whole),
    }


def _split(whole: Table) -> tuple[Table, Table]:
    """A table's first rows, and the rest, which stands folded."""
    first, rest = whole.rows[:OPEN_ROWS], whole.rows[OPEN_ROWS:]
    return dataclasses.replace(whole, rows=first), dataclasses.replace(whole, rows=rest, caption="Further places")


def _minute(time: str) -> str:
    """A run's time to the minute, for people."""
    return f"{time[:10]} {time[11:16]} UTC" if time.endswith("+00:00") else time


def _by_schema(found: Mapping[str, Any], make: Any) -> list[Table]:
    return [made for name in sorted(found) if (made := make(name, found[name])).rows]


def _audits(findings: Findings) -> list[tuple[str, Cell]]:
    """What became of audits, by result; documents that were not picked for one are left out."""
    asked = {result: documents for result, documents in findings.audits.items() if result}
    return [(result, count(sections.key("audit", result), asked[result])) for result in sorted(asked)]


def _against(facts: Facts) -> list[Table]:
    if facts.before is None:
        return []
    now, before = facts.run, facts.before
    made = [sections_run.against(facts.pairs, now.manifest, before.manifest)]
    if facts.moved and (table := fields_moved(facts.moved)).rows:
        made.append(table)
    for what, this, then in (
        ("changed in the job since", now.record.get("work", {}), before.record.get("work", {})),
        ("changed in the environment since", now.manifest.versions, before.manifest.versions),
        ("changed in what it read", now.record.get("origin", {}), before.record.get("origin", {})),
    ):
        if (table := sections_run.changes(this, then, what)).rows:
            made.append(table)
    return made


def _notes(facts: Facts) -> Any:
    """What a reader must know of how the page was made."""
    findings, manifest = facts.findings, facts.run.manifest
    if OTHER in findings.tallies:
        yield "The job has many schemas: those with most documents have lines of their own, the others share one."
    if findings.unknown_codes:
        yield f"{len(findings.unknown_codes)} problem codes are not known to gristmill {__version__} and are left out."
    if findings.problems.dropped:
        yield "There are too many places of problems to keep: the rarest are left out."
    if sum(tally.documents for tally in facts.tallies.values()) < manifest.documents:
        yield "Units of several schemas, which an earlier version wrote, are left out of the rates by schema."
    if not facts.run.record:
        yield "The run's run.json cannot be read: what the job asked for is not known."
    if findings.documents == manifest.documents and dict(findings.total.statuses) != {
        status: documents for status, documents in manifest.counts.items() if documents
    }:
        yield "THE ROWS THAT WERE READ ARE NOT THOSE THAT THE MANIFEST COUNTS. Do not trust this run's files."
