"""What `recomputed.py` counts of lengths, fields, clipped mass, tokens and times."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pipeline

Figures = dict[str, tuple[Any, int | None]]
CODES = tomllib.loads((Path(pipeline.__file__).parent / "steps" / "codes.toml").read_text(encoding="utf-8"))


def place(pointer: str) -> str:
    return re.sub(r"/\d+(?=/|$)", "/*", pointer)


def spoilt(row: dict[str, Any]) -> set[int]:
    """The numbers of attempts that failed for the engine's fault."""
    return {
        one["attempt"]
        for one in row["problems"]
        if CODES[one["code"]]["again"] == "infrastructure" and one["severity"] not in ("degrade", "observe")
    }


def _first(row: dict[str, Any]) -> dict[str, Any] | None:
    """The first attempt that ended with an answer that the engine did not spoil."""
    for one in row["attempts"]:
        if not one["error"] and one["finish_reason"] not in ("abort", "error") and one["number"] not in spoilt(row):
            return dict(one)
    return None


def _quantile(values: list[int], percent: int) -> int:
    """The smallest value that at least so many percent do not exceed, counted in whole numbers."""
    ordered = sorted(values)
    return ordered[max(1, -(-len(ordered) * percent // 100)) - 1]


def lengths(name: str, rows: list[dict[str, Any]]) -> Figures:
    found = [one for row in rows if (one := _first(row)) is not None]
    made: Figures = {}
    if not found:
        return made
    for label, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
        made[f"length|{name}|{label}"] = _quantile([one["output_tokens"] for one in found], percent), None
        if label != "p90":
            made[f"length|{name}|prompt_{label}"] = _quantile([one["prompt_tokens"] for one in found], percent), None
    cut = [one for one in found if one["finish_reason"] == "length"]
    made[f"length|{name}|cut"] = len(cut), len(found)
    made[f"length|{name}|budget"] = max(one["max_tokens"] for one in found), None
    for index in range(20):
        inside = [
            one for one in found if index * one["max_tokens"] < 20 * _within(one) <= (index + 1) * one["max_tokens"]
        ]
        made[f"bin|{name}|{index}"] = len(inside), None
        if count := sum(one["finish_reason"] == "length" for one in inside):
            made[f"bin|{name}|{index}|cut"] = count, None
    return made


def _within(attempt: dict[str, Any]) -> int:
    """Output tokens, as if at least one and at most as many as the answer was given."""
    return min(max(1, int(attempt["output_tokens"])), int(attempt["max_tokens"]))


def _states(value: Any, where: str) -> list[tuple[str, str]]:
    state = "null" if value is None else "empty" if value in ("", [], {}) else "filled"
    own = [] if isinstance(value, dict) and not where else [(where, state)]
    if isinstance(value, dict):
        return [*own, *(pair for key, child in value.items() for pair in _states(child, f"{where}/{key}"))]
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return [*own, *(pair for item in items for pair in _states(item, f"{where}/*"))]


def fields(name: str, rows: list[dict[str, Any]]) -> Figures:
    states: Counter[tuple[str, str]] = Counter()
    matches: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.get("record") is not None:
            states.update(_states(row["record"], ""))
            found = [one for one in row["fields"] if one["match"]]
            matches.update((place(one["pointer"]).removesuffix("/*"), one["match"]) for one in found)
    made: Figures = {}
    for where in {where for where, _ in [*states, *matches]}:
        all_of = sum(count for (one, _), count in states.items() if one == where)
        sought = sum(count for (one, _), count in matches.items() if one == where)
        for state in ("filled", "empty", "null"):
            made[f"field|{name}|{where}|{state}"] = states[where, state], all_of
        if matches:
            made[f"field|{name}|{where}|supported"] = sought - matches[where, "none"], sought
            made[f"field|{name}|{where}|unsupported"] = matches[where, "none"], sought
    return made


def clipped(name: str, rows: list[dict[str, Any]]) -> Figures:
    tokens: Counter[tuple[str, str]] = Counter()
    mass: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        for one in row.get("clipped") or ():
            tokens[place(one["pointer"]), one["part"]] += one["tokens"]
            mass[place(one["pointer"]), one["part"]] += one["mass"]
    made: Figures = {}
    for where in {where for where, _ in tokens}:
        made[f"clipped|{name}|{where}|value|tokens"] = tokens[where, "value"], None
        for part in ("value", "structure", "blank"):
            mean = mass[where, part] / tokens[where, part] if tokens[where, part] else 0.0
            made[f"clipped|{name}|{where}|{part}|mean"] = mean, None
    return made


def tokens(name: str, rows: list[dict[str, Any]]) -> Figures:
    every = [(row, one) for row in rows for one in row["attempts"]]
    prompt, cached, output = (sum(one[f"{kind}_tokens"] for _, one in every) for kind in ("prompt", "cached", "output"))
    wasted = sum(one["output_tokens"] for row, one in every if one["number"] != row["record_attempt"])
    valid = sum(row["status"] == "valid" for row in rows)
    made: Figures = {f"tokens|{name}|prompt": (prompt, None), f"tokens|{name}|cached": (cached, prompt)}
    made |= {f"tokens|{name}|output": (output, None), f"tokens|{name}|wasted": (wasted, output)}
    return made | ({f"tokens|{name}|each": (output / valid, None)} if valid else {})


def slowest(rows: list[dict[str, Any]]) -> Figures:
    found = []
    for row in rows:
        queue, generation = (sum(one[kind] for one in row["attempts"]) for kind in ("queue_seconds", "seconds"))
        tokens = sum(one["output_tokens"] for one in row["attempts"])
        if row["attempts"]:
            key = (queue + generation, row["document_id"], row["source"])
            found.append((key, queue, generation, tokens, len(row["attempts"])))
    made: Figures = {}
    for rank, (key, *told) in enumerate(sorted(found, reverse=True)[:10], 1):
        for name, value in zip(("seconds", "queue", "generation", "tokens", "attempts"), (key[0], *told), strict=True):
            made[f"slow|{rank}|{name}"] = value, None
    return made


def times(manifest: dict[str, Any], rows: list[dict[str, Any]]) -> Figures:
    began, ended = (datetime.datetime.fromisoformat(manifest[name]) for name in ("started", "committed"))
    seconds = (ended - began).total_seconds()
    made: Figures = {"seconds": (seconds, None), "speed": (len(rows) / seconds if seconds else None, None)}
    for name, kind in (("generation", "seconds"), ("queue", "queue_seconds")):
        made[name] = sum(sum(one[kind] for one in row["attempts"]) for row in rows), None
    return made


def equal_records(rows: list[dict[str, Any]]) -> list[int]:
    """How many documents share each record that more than one has."""
    found = Counter((row["schema"], row["record_digest"]) for row in rows if row["record_digest"] is not None)
    return [count for count in found.values() if count > 1]
