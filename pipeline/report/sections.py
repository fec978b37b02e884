"""The tables of the page about layers, attempts, lengths and fields: findings in, cells out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping

from pipeline.observe.paths import PathRates
from pipeline.observe.tally import Tally
from pipeline.records import STATUSES
from pipeline.report.completeness import Completeness, FieldCounts
from pipeline.report.findings import Findings
from pipeline.report.lengths import Lengths, quantile
from pipeline.report.rows import LAYERS
from pipeline.report.shown import Cell, Table, amount, count, most, number, part, percent, table, text, whole

POOR, FAIR = 0.9, 0.99
"""A layer that holds for fewer than this share of what reached it is shown as bad, or as one to watch."""
SHOWN_FIELDS = 60
MATCHES = ("exact", "normalised", "fuzzy")


def key(*parts: object) -> str:
    """The name of a figure."""
    return "|".join(map(str, parts))


def tone_of(value: int, of: int) -> str:
    """How worrying a share of successes is."""
    if not of:
        return "soft"
    return "bad" if value < POOR * of else "warn" if value < FAIR * of else ""


def layers(tallies: Mapping[str, Tally]) -> Table:
    """First answers by schema, from layer to layer, each out of what the one before let through."""
    rows = [list(_layer_row(name, tallies[name])) for name in sorted(tallies)]
    columns = ("schema", "documents", "first answers", "JSON as it came", "JSON after repair", "schema holds")
    return table(
        "First answers, by schema",
        (*columns, "rules and grounding hold", "valid at the end"),
        rows,
    )


def lost(findings: Findings) -> Table:
    """Documents that are not valid, by schema and by the layer that cost them that."""
    counts: Counter[tuple[str, str]] = Counter()
    for (schema, layer, _), documents in findings.problems.layers.items():
        counts[schema, layer] += documents
    found = [layer for layer in (*LAYERS, "") if any(counts[schema, layer] for schema in findings.tallies)]
    rows = []
    for schema in sorted(findings.tallies):
        of = findings.tallies[schema].documents
        cells = [part(key("lost", schema, layer), counts[schema, layer], of) for layer in found]
        rows.append([text(schema, code=True), *(_lost(cell) for cell in cells)])
    columns = ("schema", *(layer or "nobody knows" for layer in found))
    return table("Documents that are not valid, by the layer that cost them that", columns, rows if found else [])


def _lost(cell: Cell) -> Cell:
    """A share that is a loss: its bar is red, and none is quiet."""
    return dataclasses.replace(cell, tone="bad" if (cell.share or 0) > 1 - POOR else "warn" if cell.value else "soft")


def firsts(tally: Tally) -> Counter[str]:
    """The counts of a schema's first answers over all engines and paths."""
    counts: Counter[str] = Counter()
    for rates in tally.rates():
        if rates.place == "1":
            for name in ("answers", "format_first", "format_repaired", "schema", "semantic", "cut"):
                counts[name] += getattr(rates, name)
    return counts


def _layer_row(name: str, tally: Tally) -> Iterator[Cell]:
    first, valid = firsts(tally), tally.statuses["valid"]
    is_json = first["format_first"] + first["format_repaired"]
    steps = (
        ("format_first", first["format_first"], first["answers"]),
        ("format", is_json, first["answers"]),
        ("schema", first["schema"], is_json),
        ("semantic", first["semantic"], first["schema"]),
    )
    yield text(name, code=True)
    yield count(key("layer", name, "documents"), tally.documents)
    yield count(key("layer", name, "answers"), first["answers"])
    for step, value, of in steps:
        yield part(key("layer", name, step), value, of, tone_of(value, of))
    yield part(key("layer", name, "valid"), valid, tally.documents, tone_of(valid, tally.documents))


def paths(total: Tally) -> Table:
    """All answers by engine, path and place, each share out of what the layer before let through."""
    rows = [list(_path_row(rates)) for rates in total.rates()]
    columns = ("engine, path", "answer", "answers", "JSON as it came", "JSON after repair", "schema holds")
    caption = "All answers, by engine, path and try"
    return table(caption, (*columns, "rules and grounding hold", "cut", "output tokens"), rows, (0, 1))


def _path_row(rates: PathRates) -> Iterator[Cell]:
    path = "constrained" if rates.constrained else "free"
    where = key("path", rates.engine, path, rates.place)
    is_json = rates.format_first + rates.format_repaired
    yield Cell(rates.engine or "an unnamed engine", note=path, code=True)
    yield text(f"{rates.place}.")
    yield count(key(where, "answers"), rates.answers)
    yield part(
        key(where, "format_first"), rates.format_first, rates.answers, tone_of(rates.format_first, rates.answers)
    )
    yield part(key(where, "format"), is_json, rates.answers, tone_of(is_json, rates.answers))
    yield part(key(where, "schema"), rates.schema, is_json, tone_of(rates.schema, is_json))
    yield part(key(where, "semantic"), rates.semantic, rates.schema, tone_of(rates.semantic, rates.schema))
    yield part(key(where, "cut"), rates.cut, rates.answers, "bad" if rates.cut > 0.01 * rates.answers else "")
    yield count(key(where, "output_tokens"), rates.output_tokens)


def attempts(findings: Findings, total: Tally) -> Table:
    """How often documents were asked about, and what asking again bought."""
    rows = [
        [
            text(f"{tries} attempt{'' if tries == 1 else 's'}"),
            part(key("attempts", tries), documents, findings.documents),
        ]
        for tries, documents in sorted(findings.attempts.items())
    ]
    rows += [
        [text("asked the model again", "of documents asked"), part("retried", total.retried, total.asked)],
        [
            text("resolved by that", "their record is the later answer, and better than the first"),
            part("resolved", total.resolved_by_retry, total.retried),
        ],
    ]
    for name, documents in sorted(total.resolved.items()):
        place, _, status = name.partition(" ")
        rows.append([text(f"by answer {place}, {status}"), count(key("resolved", name), documents)])
    each = total.retry_output_tokens / total.resolved_by_retry if total.resolved_by_retry else None
    rows += [
        [text("output tokens of later answers"), part("retry_tokens", total.retry_output_tokens, total.output_tokens)],
        [
            text("output tokens for each document resolved"),
            number("retry_tokens_each", each, amount(each)) if total.retried else text("–"),
        ],
        [
            text("prompt tokens of later answers, cached"),
            part("retry_cached", total.retry_cached_tokens, total.retry_prompt_tokens),
        ],
        [
            text("requests sent again for an engine's failure"),
            part("engine_retries", total.engine_retries, total.attempts),
        ],
        [text("salvaged: what is certain of a spoilt answer"), part("salvaged", total.salvaged, total.asked)],
    ]
    return table("Documents by attempts, and what asking again took and bought", ("what", "documents or tokens"), rows)


def repairs(total: Tally) -> Table:
    """Kinds of changes between answers and records."""
    rows = [
        [text(kind, code=True), part(key("repair", kind), documents, total.documents)]
        for kind, documents in most(total.repairs, 20)
    ]
    return table("Repairs by kind: documents in which an answer was changed", ("kind", "documents"), rows)


def lengths_of(found: Mapping[str, Lengths]) -> Table:
    """Quantiles of first answers and prompts against their budget."""
    rows = []
    for name in sorted(found):
        one = found[name]
        if not one.answers:
            continue
        budget, cut = max(one.budgets, default=0), sum(one.cut.values())
        cells = [text(name, code=True), part(key("length", name, "cut"), cut, sum(one.bins.values()))]
        cells[1] = _toned(cells[1], "bad" if cut > 0.01 * one.answers else "")
        for label, at in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
            cells.append(count(key("length", name, label), quantile(one.output, at)))
        cells.append(count(key("length", name, "budget"), budget, "several" if len(one.budgets) > 1 else ""))
        cells += [count(key("length", name, f"prompt_{at}"), quantile(one.prompt, share)) for at, share in _PROMPT]
        rows.append(cells)
    columns = ("schema", "cut", "median", "90 %", "99 %", "longest", "budget", "prompt: median", "99 %", "longest")
    return table("First answers in output tokens against their budget, and their prompts", columns, rows)


_PROMPT = (("p50", 50), ("p99", 99), ("max", 100))


def _toned(cell: Cell, tone: str) -> Cell:
    return dataclasses.replace(cell, tone=tone or cell.tone)


def fields(name: str, found: Completeness) -> Table:
    """Completeness and support of one schema's fields, in its order."""
    rows = [list(_field_row(name, place, counts)) for place, counts in list(found.fields.items())[:SHOWN_FIELDS]]
    sought = any(counts.matches for counts in found.fields.values())
    columns = (
        "field",
        "filled",
        "empty",
        "null or absent",
        *(("found in the document", "not found") if sought else ()),
    )
    rows = rows if sought else [row[:4] for row in rows]
    caption = f"{name}: {whole(found.records)} records{more_of(len(found.fields), SHOWN_FIELDS)}"
    caption += "; further places were not counted" if found.passed_over else ""
    return table(caption, columns, rows)


def more_of(there: int, shown: int) -> str:
    """That a table leaves fields out, for its caption."""
    return f", {shown} of {whole(there)} fields are shown" if there > shown else ""


def _field_row(name: str, place: str, counts: FieldCounts) -> Iterator[Cell]:
    where, asked = key("field", name, place), counts.asked
    filled = counts.states["filled"]
    yield text(place or "(the record)", code=True)
    yield part(key(where, "filled"), filled, asked, "bad" if asked and not filled else "")
    yield part(key(where, "empty"), counts.states["empty"], asked)
    yield part(key(where, "null"), counts.states["null"], asked)
    sought = counts.matches.total()
    kinds = {kind: counts.matches[kind] for kind in MATCHES if counts.matches[kind]}
    told = ", ".join(f"{kind} {percent(value, sought)}" for kind, value in kinds.items())
    supported, none = sum(kinds.values()), counts.matches["none"]
    good = part(key(where, "supported"), supported, sought, tone_of(supported, sought) if sought else "soft")
    yield dataclasses.replace(good, note=f"{good.note}: {told}" if told else good.note)
    yield part(key(where, "unsupported"), none, sought)


def statuses(counts: Mapping[str, int], documents: int) -> list[Cell]:
    """The three statuses, for the head of the page."""
    return [part(key("status", status), counts.get(status, 0), documents, status) for status in STATUSES]
