"""The tables of the page about the run as a whole: clipped mass, time, cost, comparison, provenance, problems."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.observe.tally import Tally
from pipeline.records import Manifest
from pipeline.report.against import Pair, differences, per_valid
from pipeline.report.clipped import PARTS, ClippedFields, Mass
from pipeline.report.cost import Cost
from pipeline.report.findings import Findings, Slow
from pipeline.report.problems import Group
from pipeline.report.sections import key, more_of
from pipeline.report.shown import Cell, Table, amount, count, cut, number, part, percent, seconds, table, text

SHOWN_FIELDS = 40
SHOWN_CHANGES = 30


def problems(groups: Sequence[Group], links: Mapping[tuple[str, str, str], str]) -> Table:
    """The ranked places of problems, each with a link to its example."""
    rows = []
    for rank, group in enumerate(groups, 1):
        where = key("problem", *group.key)
        tone = "bad" if group.statuses["rejected"] else "warn" if group.cost else ""
        rows.append(
            [
                Cell(group.code, note=f"{rank}. {group.layer} layer", href=links.get(group.key, ""), code=True),
                text(group.place or "(whole record)", group.schema, code=True),
                count(key(where, "cost"), group.cost, tone=tone),
                count(key(where, "documents"), group.documents),
                *(count(key(where, status), group.statuses[status]) for status in ("valid", "degraded", "rejected")),
            ]
        )
    columns = ("problem", "place", "cost validity", "documents", "of these valid", "degraded", "rejected")
    return table("By place, those that cost most documents first", columns, rows, (0, 1))


def clipped(name: str, found: ClippedFields) -> Table:
    """Clipped mass of one schema's fields."""
    rows = []
    for place, parts in found.ranked()[:SHOWN_FIELDS]:
        cells = [text(place or "(the record)", code=True)]
        for one in PARTS:
            cells.append(_mass(key("clipped", name, place, one), parts[one]))
        cells.append(count(key("clipped", name, place, "value", "tokens"), parts["value"].tokens))
        rows.append(cells)
    columns = ("field", "value", "key and punctuation", "blanks", "value tokens")
    more = more_of(len(found.fields), SHOWN_FIELDS)
    return table(f"{name}: clipped mass of a token, {found.answers:,} audited answers{more}", columns, rows)


def _mass(where: str, mass: Mass) -> Cell:
    if not mass.tokens:
        return Cell("–", key(where, "mean"), 0.0, "no tokens", tone="soft")
    note = f"highest {percent(mass.highest, 1)}"
    tone = "warn" if where.endswith("value") and mass.mean > 0.3 else ""
    return Cell(percent(mass.mean, 1), key(where, "mean"), mass.mean, note, mass.mean, tone)


def slowest(found: Sequence[Slow]) -> Table:
    """The documents that took longest, over all their attempts."""
    rows = []
    for rank, slow in enumerate(sorted(found, reverse=True), 1):
        name = key("slow", rank)
        rows.append(
            [
                Cell(cut(slow.document_id), note=slow.schema, code=True),
                number(key(name, "seconds"), slow.seconds, seconds(slow.seconds)),
                number(key(name, "queue"), slow.queue_seconds, seconds(slow.queue_seconds)),
                number(key(name, "generation"), slow.generation_seconds, seconds(slow.generation_seconds)),
                count(key(name, "tokens"), slow.output_tokens),
                count(key(name, "attempts"), slow.attempts, slow.ends),
                Cell(slow.status, tone=slow.status),
            ]
        )
    columns = ("document", "together", "waiting", "generating", "output tokens", "attempts, how they ended", "status")
    return table("The slowest documents", columns, rows, (0, 6))


def replay_command(where: str, document_id: str) -> str:
    """The command that shows one document with every step."""
    return f"gristmill replay {shlex.quote(where)} --id {shlex.quote(document_id)}"


def tokens(total: Tally, by_schema: Mapping[str, Tally]) -> Table:
    """Tokens in, cached, out, wasted, by schema and together."""
    schemas = sorted(by_schema) if len(by_schema) > 1 else []
    rows = [[text(name, code=True), *_token_figures(name, by_schema[name])] for name in schemas]
    columns = ("schema", "prompt tokens", "of these cached", "output tokens", "wasted", "output for each valid record")
    caption = "Tokens. Wasted: output of attempts that no record is from"
    return table(caption, columns, [*rows, [text("together"), *_token_figures("together", total)]])


def _token_figures(name: str, tally: Tally) -> list[Cell]:
    where, valid = key("tokens", name), tally.statuses["valid"]
    each = tally.output_tokens / valid if valid else None
    return [
        count(key(where, "prompt"), tally.prompt_tokens),
        part(key(where, "cached"), tally.cached_tokens, tally.prompt_tokens),
        count(key(where, "output"), tally.output_tokens),
        part(key(where, "wasted"), tally.wasted_tokens, tally.output_tokens),
        number(key(where, "each"), each, amount(each)) if valid else text("no valid record"),
    ]


def cost(found: Cost, total: Tally, findings: Findings, whole: bool) -> Table:
    """Times, GPU hours and money."""
    valid = total.statuses["valid"]
    speed = total.documents / found.seconds if found.seconds else None
    rows = [
        [
            text("from start to commit", "pauses of a resumed run included"),
            number("seconds", found.seconds, seconds(found.seconds)),
        ],
        [text("documents per second"), number("speed", speed, amount(speed))],
        [text("engines at most"), number("engines", found.engines, str(found.engines))],
    ]
    if whole:
        generation, queue = findings.generation_seconds, findings.queue_seconds
        rows += [
            [
                text("seconds of generation", "summed over requests, which share an engine"),
                number("generation", generation, seconds(generation)),
            ],
            [text("seconds of waiting for it"), number("queue", queue, seconds(queue))],
        ]
    if found.gpus == 0:
        rows.append([text("GPU hours", "the job asked for no GPU"), number("gpu_hours", 0.0, "0")])
    else:
        note = "estimate, at most: all its GPUs for all of the time"
        rows.append([text("GPU hours", note), number("gpu_hours", found.gpu_hours, amount(found.gpu_hours))])
    if found.price is not None:
        each = found.money / valid * 1000 if found.money is not None and valid else None
        rows += [
            [text("cost", f"at {found.price:g} for a GPU hour"), number("money", found.money, amount(found.money))],
            [text("cost of 1,000 valid records"), number("money_each", each, amount(each))],
        ]
    return table("Time and cost", ("what", "how much"), rows)


def against(pairs: Sequence[Pair], now: Manifest, before: Manifest) -> Table:
    """Counts of both runs side by side."""
    rows = []
    for pair in pairs:
        where, p = key("against", pair.name), pair.p_value
        difference = 100 * (_rate(pair.part, pair.whole) - _rate(pair.part_before, pair.whole_before))
        tone = "" if not pair.changed else "bad" if difference * pair.worse > 0 else "good" if pair.worse else "warn"
        told = "too few to tell" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
        rows.append(
            [
                text(pair.name),
                part(key(where, "before"), pair.part_before, pair.whole_before),
                part(key(where, "now"), pair.part, pair.whole),
                Cell(f"{difference:+.1f} points", key(where, "points"), difference, told, tone=tone),
            ]
        )
    mine, other = per_valid(now), per_valid(before)
    if mine is not None and other is not None:
        change = 100 * (mine / other - 1) if other else 0.0
        rows.append(
            [
                text("output tokens for each valid record"),
                number("against|tokens|before", other, amount(other)),
                number("against|tokens|now", mine, amount(mine)),
                Cell(f"{change:+.1f} %", "against|tokens|change", change),
            ]
        )
    return table(
        f"Against run {before.run_id}, committed {before.committed[:16].replace('T', ' ')}",
        ("what", "before", "now", "change"),
        rows,
    )


def _rate(value: int, of: int) -> float:
    return value / of if of else 0.0


def changes(now: Mapping[str, Any], before: Mapping[str, Any], what: str) -> Table:
    """What two runs were made with that is not the same."""
    found = differences(now, before)
    rows = [
        [text(cut(name, 120), code=True), _quoted(then), _quoted(this)] for name, then, this in found[:SHOWN_CHANGES]
    ]
    more = f", {len(found) - SHOWN_CHANGES} more are not shown" if len(found) > SHOWN_CHANGES else ""
    return table(f"{what}{more}", (what, "before", "now"), rows, (0, 1, 2))


def _quoted(value: Any) -> Cell:
    shown = "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text(cut(shown, 120), code=True)


def provenance(manifest: Manifest, record: Mapping[str, Any], where: str) -> list[Table]:
    """What the run was made by, with the digests that say so."""
    run = {
        "run": manifest.run_id,
        "job": manifest.job,
        "where": where,
        "begun": manifest.started,
        "committed": manifest.committed,
        "digest of the ids": manifest.ids_digest,
        **{f"{name} (origin)": value for name, value in record.get("origin", {}).items() if name != "job" and value},
    }
    rows = [*_lines(run), *([text(name), count(name, value)] for name, value in _counted(manifest).items())]
    tables = [
        table("The run", ("what", "which"), rows, (0, 1)),
        table("Versions", ("package", "version"), _lines(manifest.versions), (0, 1)),
        table("Schema digests", ("schema", "digest"), _lines(manifest.schemas), (0, 1)),
    ]
    work = {name: value for name, value in record.get("work", {}).items() if not name.startswith("schema ")}
    if work:
        tables.append(table("What decided over its documents", ("what", "value or digest"), _lines(work), (0, 1)))
    return tables


def _counted(manifest: Manifest) -> dict[str, int]:
    """Files and bytes, documents that share a record with another, and what an incremental run tells of itself."""
    found = {"files": len(manifest.files), "bytes": sum(file["bytes"] for file in manifest.files)}
    same = manifest.totals.get("duplicates", {})
    found |= {f"equal records: {name}": same[name] for name in ("groups", "documents") if name in same}
    told = {name: value for name, value in manifest.incremental.items() if type(value) is int}
    return found | {f"incremental: {name}": value for name, value in sorted(told.items())}


def _lines(found: Mapping[str, Any]) -> list[list[Cell]]:
    return [[text(cut(name, 120), code=True), _quoted(value)] for name, value in found.items()]
