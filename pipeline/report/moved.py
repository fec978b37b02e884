"""Moved: which fields are distributed differently than in the run before (docs/field-drift.md has the statistics)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pipeline.observe.profile import Profile
from pipeline.observe.shift import Comparison, Count, Finding, compare
from pipeline.report.sections import key
from pipeline.report.shown import Cell, Table, count, cut, number, percent, table, text
from pipeline.runtime.output.profiles import profiles_of_run
from pipeline.runtime.store import Store

MAX_SCHEMAS = 8
"""Schemas that are compared, those with most documents."""
DOCUMENTS = 4_000
"""Documents of a schema that are read of either run; of more, whole units, evenly chosen."""
SHOWN = 25
SHOWN_WORDS = 40


def compared(now: Store, before: Store, schemas: Mapping[str, int]) -> Comparison:
    """The fields of the schemas with most documents in both runs, held against each other. {schema: documents}.

    Raises:
        OutputError: a file that a manifest names cannot be read.
    """
    chosen = sorted(schemas, key=lambda name: (-schemas[name], name))[:MAX_SCHEMAS]
    return compare(_profiles(before, chosen), _profiles(now, chosen))


def _profiles(store: Store, schemas: list[str]) -> dict[str, Profile]:
    found: dict[str, Profile] = {}
    for name in schemas:
        found |= profiles_of_run(store, only=name, documents=DOCUMENTS).profiles
    return {name: profile for name, profile in found.items() if profile.records}


def fields_moved(found: Comparison) -> Table:
    """What moved beyond chance, the most first."""
    lines = [one for one in found.findings if one.verdict in ("shifted", "slight")]
    more = f"; {len(lines) - SHOWN} more: gristmill drift" if len(lines) > SHOWN else ""
    caption = f"Fields that are distributed differently than in the run before ({found.tests} tests{more})"
    columns = ("field", "what moved", "share of documents", "corrected p", "documents before", "now", "from, to")
    return table(caption, columns, [list(_row(one)) for one in lines[:SHOWN]], (0, 1, 6))


def _row(one: Finding) -> Iterator[Cell]:
    where = key("moved", one.schema, one.pointer, one.aspect)
    yield text(one.pointer or "(the record)", one.schema, code=True)
    yield text(one.aspect, one.statistic)
    tone = "bad" if one.verdict == "shifted" else ""
    yield Cell(percent(one.distance, 1), key(where, "distance"), one.distance, "at least", one.distance, tone)
    shown = "< 0.000001" if one.adjusted < 1e-6 else f"{one.adjusted:.2g}"
    yield number(key(where, "p"), one.adjusted, shown)
    yield count(key(where, "before"), one.before)
    yield count(key(where, "now"), one.now)
    yield text("; ".join(_told(item) for item in one.counts))


def _told(item: Count) -> str:
    return f"{cut(item.what, SHOWN_WORDS)}: {_short(item.before)} → {_short(item.now)}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) and value == int(value) else f"{value:.4g}"
