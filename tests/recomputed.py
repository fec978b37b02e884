"""Every figure of a run's report once more, by plain pyarrow from the files that the manifest names.

Nothing of the report, the tally or the path rates is used: `steps/codes.toml` says what a code means, and the rest is
counted here anew. `figures_of` reads a page's figures back: {name: (value, of)}.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter, defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import recomputed_details as details

import pipeline

Figures = dict[str, tuple[Any, int | None]]
CODES = tomllib.loads((Path(pipeline.__file__).parent / "steps" / "codes.toml").read_text(encoding="utf-8"))
STATUSES = ("valid", "degraded", "rejected")
LAYERS = ("read", "engine", "parse", "schema", "rules", "ground", "route")
UNASKED = ("prompt_too_long", "schema_refused", "recording_missing", "recording_stale")
NOT_JSON_REPAIRS = ("document_cleaned", "salvaged", "rest_left_out", "repair_refused", "repair_failed")
WAYS = {1: "first pass", 2: "repaired or retried", 3: "salvaged", 0: "no record"}

ONLY_OF_OTHERS = ("against|", "moved|", "engines", "gpu_hours", "money")
"""Figures that are not of the run's rows and manifest."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Figures = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if (name := told.get("data-f")) is not None:
            of = told.get("data-o")
            figure = json.loads(told["data-v"] or ""), None if of is None else int(of)
            known = self.found.get(name)
            assert known is None or known[0] == figure[0], f"{name} is told twice, as {known} and as {figure}"
            self.found[name] = figure if known is None or known[1] is None else known


def figures_of(page: str) -> Figures:
    """The figures of a page; one that it tells twice is the same both times."""
    reader = _Reader()
    reader.feed(page)
    return reader.found


def assert_equal(shown: Figures, made: Figures) -> None:
    """Every figure of the page is what the rows say; what the page leaves out are rare problems only."""
    own = {name: figure for name, figure in shown.items() if not name.startswith(ONLY_OF_OTHERS)}
    assert not own.keys() - made.keys()
    assert not {name for name in made.keys() - own.keys() if not name.startswith(("problem|", "lost|", "alarm|"))}
    for name, (value, of) in own.items():
        expected, whole = made[name]
        same = math.isclose(value, expected, rel_tol=1e-9) if isinstance(value, float) else value == expected
        assert same, f"{name}: the page says {value}, the rows {expected}"
        assert of is None or of == whole, f"{name}: out of {of}, by the rows out of {whole}"


def rows_of(run: Path, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for file in manifest["files"]:
        for row in pq.ParquetFile(run / file["path"]).read().to_pylist():
            rows.append({**row, "status": file["status"], "schema": file["schema"]})
    return rows


def recomputed(run: Path) -> Figures:
    """The figures that depend on rows and manifest alone: all but the comparison's and what the price adds."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    rows = rows_of(run, manifest)
    assert len(rows) == manifest["documents"]
    made: Figures = {"documents": (len(rows), None)}
    made["files"] = len(manifest["files"]), None
    made["bytes"] = sum((run / file["path"]).stat().st_size for file in manifest["files"]), None
    same = details.equal_records(rows)
    made |= {"equal records: groups": (len(same), None), "equal records: documents": (sum(same), None)}
    for status in STATUSES:
        made[f"status|{status}"] = sum(row["status"] == status for row in rows), len(rows)
    names = sorted({row["schema"] for row in rows})
    for part in (_flow(rows), _problems(rows), _attempts(rows), _paths(rows)):
        made |= part
    for name in names:
        some = [row for row in rows if row["schema"] == name]
        made |= _layers(name, some) | details.lengths(name, some) | details.fields(name, some)
        made |= details.clipped(name, some) | (details.tokens(name, some) if len(names) > 1 else {})
    made |= details.tokens("together", rows) | details.slowest(rows) | details.times(manifest, rows)
    audits = Counter(row.get("audit") for row in rows if row.get("audit"))
    return made | {f"audit|{result}": (count, None) for result, count in audits.items()}


def cap(problem: dict[str, Any]) -> str:
    by_severity = {"block": "rejected", "degrade": "degraded", "observe": "valid"}
    return str(by_severity.get(problem.get("severity") or "") or CODES[problem["code"]]["cap"])


def asked(row: dict[str, Any]) -> bool:
    return any(one["output_tokens"] or one["error"] not in UNASKED for one in row["attempts"])


def answers_in(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of a document with their place and what they passed."""
    engine_failed = {
        one["attempt"]
        for one in row["problems"]
        if CODES[one["code"]]["again"] == "infrastructure" and one["severity"] not in ("degrade", "observe")
    }
    mended = {one["attempt"] for one in row["repairs"] if one["kind"] not in NOT_JSON_REPAIRS}
    made, place = [], 1
    for attempt in row["attempts"]:
        if attempt["error"] or attempt["finish_reason"] in ("abort", "error"):
            continue
        faults = [p for p in row["problems"] if p["attempt"] == attempt["number"] and cap(p) != "valid"]
        early = [p for p in faults if CODES[p["code"]]["layer"] in ("engine", "parse")]
        layers = {CODES[p["code"]]["layer"] for p in faults}
        is_json = all(cap(p) != "rejected" for p in early)
        first = not early and attempt["number"] not in mended
        schema = is_json and "schema" not in layers
        passed = {"format_first": first, "format": first or is_json, "schema": schema}
        passed["semantic"] = schema and not layers & {"rules", "ground"}
        worst = max((STATUSES.index(cap(p)) for p in faults), default=0)
        failed = attempt["number"] in engine_failed
        made.append({**passed, "attempt": attempt, "place": place, "failed": failed, "bad": (worst, len(faults))})
        place += not failed
    return made


def _flow(rows: list[dict[str, Any]]) -> Figures:
    ways = [(WAYS[row["layer"]] if asked(row) else "not asked", row["status"]) for row in rows]
    made: Figures = {"flow.in": (len(rows), None)}
    made |= {f"flow.{way}.{status}": (count, None) for (way, status), count in Counter(ways).items()}
    made |= {f"flow.path.{way}": (count, None) for way, count in Counter(way for way, _ in ways).items()}
    return made | {f"flow.status.{end}": (count, None) for end, count in Counter(end for _, end in ways).items()}


def _funnel(where: str, found: list[dict[str, Any]]) -> Figures:
    counts = {name: sum(one[name] for one in found) for name in ("format_first", "format", "schema", "semantic")}
    wholes = (len(found), len(found), counts["format"], counts["schema"])
    return {f"{where}|{name}": (count, of) for (name, count), of in zip(counts.items(), wholes, strict=True)}


def _layers(name: str, rows: list[dict[str, Any]]) -> Figures:
    first = [one for row in rows if asked(row) for one in answers_in(row) if one["place"] == 1]
    valid = sum(row["status"] == "valid" for row in rows)
    made: Figures = {f"layer|{name}|documents": (len(rows), None), f"layer|{name}|answers": (len(first), None)}
    return made | _funnel(f"layer|{name}", first) | {f"layer|{name}|valid": (valid, len(rows))}


def _paths(rows: list[dict[str, Any]]) -> Figures:
    groups = defaultdict(list)
    for row in rows:
        for one in answers_in(row) if asked(row) else ():
            attempt, place = one["attempt"], "3+" if one["place"] > 2 else one["place"]
            path = "constrained" if attempt["constrained"] else "free"
            groups[f"path|{attempt['engine']}|{path}|{place}"].append(one)
    made: Figures = {}
    for where, found in groups.items():
        made |= _funnel(where, found)
        made[f"{where}|answers"] = len(found), None
        made[f"{where}|cut"] = sum(one["attempt"]["finish_reason"] == "length" for one in found), len(found)
        made[f"{where}|output_tokens"] = sum(one["attempt"]["output_tokens"] for one in found), None
    return made


def _attempts(rows: list[dict[str, Any]]) -> Figures:
    of_asked = [(row, answers_in(row)) for row in rows if asked(row)]
    retried = [(row, found) for row, found in of_asked if sum(not one["failed"] for one in found) > 1]
    resolved: Counter[str] = Counter()
    for row, found in retried:
        own = [one for one in found if not one["failed"]]
        for one in own[1:]:
            taken = one["attempt"]["number"] == row["record_attempt"] and row["layer"] in (1, 2)
            if taken and one["bad"] < own[0]["bad"]:
                resolved[f"{'3+' if one['place'] > 2 else one['place']} {row['status']}"] += 1
    later = [one["attempt"] for _, found in of_asked for one in found if one["place"] > 1]
    every = [attempt for row in rows for attempt in row["attempts"]]
    output, prompt = (sum(one[f"{kind}_tokens"] for one in later) for kind in ("output", "prompt"))
    again = sum(
        any(CODES[p["code"]]["again"] == "infrastructure" and p["attempt"] == one["number"] for p in row["problems"])
        for row in rows
        for one in row["attempts"][:-1]
    )
    made: Figures = {f"attempts|{n}": (c, len(rows)) for n, c in Counter(len(row["attempts"]) for row in rows).items()}
    made["retried"] = len(retried), len(of_asked)
    made["resolved"] = resolved.total(), len(retried)
    made |= {f"resolved|{name}": (count, None) for name, count in resolved.items()}
    made["retry_tokens"] = output, sum(one["output_tokens"] for one in every)
    if retried:
        made["retry_tokens_each"] = (output / resolved.total() if resolved else None), None
    made["retry_cached"] = sum(one["cached_tokens"] for one in later), prompt
    made["engine_retries"] = again, len(every)
    made["salvaged"] = sum(row["layer"] == 3 for row, _ in of_asked), len(of_asked)
    kinds = Counter(kind for row in rows for kind in {one["kind"] for one in row["repairs"]})
    return made | {f"repair|{kind}": (count, len(rows)) for kind, count in kinds.items()}


def _blame(row: dict[str, Any]) -> dict[str, Any] | None:
    counts = row["record_attempt"] or max((one["attempt"] for one in row["problems"]), default=0)
    near = [p for p in row["problems"] if p["attempt"] in (0, counts) and cap(p) != "valid"]
    found = near or [p for p in row["problems"] if cap(p) != "valid"]
    ranked = sorted(found, key=lambda p: (-STATUSES.index(cap(p)), LAYERS.index(CODES[p["code"]]["layer"])))
    return ranked[0] if ranked and row["status"] != "valid" else None


def _problems(rows: list[dict[str, Any]]) -> Figures:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    lost: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    wholes = Counter(row["schema"] for row in rows)
    for row in rows:
        blame = _blame(row)
        for name in {f"problem|{row['schema']}|{details.place(p['pointer'])}|{p['code']}" for p in row["problems"]}:
            counts[name].update(["documents", row["status"]])
            counts[name]["cost"] += 0
        if blame:
            counts[f"problem|{row['schema']}|{details.place(blame['pointer'])}|{blame['code']}"]["cost"] += 1
            lost[f"{row['schema']}|{CODES[blame['code']]['layer']}"] += 1
        alarms.update({p["code"] for p in row["problems"] if CODES[p["code"]].get("alarm")})
    made: Figures = {}
    for name, found in counts.items():
        made |= {f"{name}|{what}": (found[what], None) for what in ("cost", "documents", *STATUSES)}
    for layer in {where.split("|")[1] for where in lost}:
        made |= {f"lost|{schema}|{layer}": (lost[f"{schema}|{layer}"], of) for schema, of in wholes.items()}
    return made | {f"alarm|{code}": (count, None) for code, count in alarms.items()}
