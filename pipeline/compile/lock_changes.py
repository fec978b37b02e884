"""Lock changes: what tells a lock from what is so now. A lock is a file that anybody may have edited."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.schema.fingerprint import canonical, digest

_FIXED = frozenset({"worst_tokens", "worst_bytes", "unbounded_at", "prompt_tokens"})
"""Numbers of a budget that no sample moves."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a lock and what is so now: `kind` as in docs/check.md, `where` in the lock."""

    kind: str
    where: str
    was: str
    now: str


def changes(lock: Mapping[str, Any], now: Mapping[str, Any], slow: Collection[str] = ()) -> Iterator[Change]:
    """All differences between a lock and its parts that were made anew: what is not in `now` is not compared.

    `slow` are the back ends whose trials ran out of time: what they did not show says nothing against the lock.
    """
    for kind, where, was, is_now in _pairs(lock, now, slow):
        if canonical(was) != canonical(is_now):
            yield Change(kind, where, _cut(was), _cut(is_now))
    yield from _verdicts(lock, now, slow)


def _pairs(
    lock: Mapping[str, Any], now: Mapping[str, Any], slow: Collection[str]
) -> Iterator[tuple[str, str, Any, Any]]:
    """(kind, where, was, now) of all that is compared as a whole. Values of `now` that nobody found are left out."""
    for key in ("digest", "closed"):
        yield "schema", key, _mapping(lock.get("schema")).get(key), now["schema"][key]
    for name in sorted({*_mapping(lock.get("versions")), *now["versions"]}):
        yield "versions", name, _mapping(lock.get("versions")).get(name), now["versions"].get(name)
    for kind in ("tokenizer", "chosen"):
        if kind in now:
            yield kind, kind, lock.get(kind), now[kind]
    if "budget" in now:
        was, is_now = _budgets(_mapping(lock.get("budget")), _mapping(now["budget"]))
        yield "budget", "budget", was, is_now
    for backend, part in now["backends"].items():
        old = _mapping(_mapping(lock.get("backends")).get(backend))
        # As text: the order of keys counts, which the comparison does not see.
        yield "transport", backend, json.dumps(old.get("transport")), json.dumps(part["transport"])
        yield "left", backend, _sites(old.get("left")), _sites(part["left"])
        for key in ("narrowed", "grammar_digest", "plan_digest"):
            yield ("digests" if key.endswith("digest") else key), f"{backend} {key}", old.get(key), part[key]
        for key in ("kind", "lost", "surprises"):
            if key in part and (key == "kind" or backend not in slow):
                yield "verdicts", f"{backend} {key}", old.get(key), part[key]


def _verdicts(lock: Mapping[str, Any], now: Mapping[str, Any], slow: Collection[str]) -> Iterator[Change]:
    """Sites whose verdict changed. What a trial had no time to show says nothing against the lock."""
    for backend, part in now["backends"].items():
        old = _mapping(_mapping(_mapping(lock.get("backends")).get(backend)).get("verdicts"))
        verdicts = part.get("verdicts", old)  # nothing was tried: nothing is compared
        for pointer in sorted({*old, *verdicts}):
            before, after = _mapping(old.get(pointer)), _mapping(verdicts.get(pointer))
            for keyword in sorted({*before, *after}):
                was, is_now = before.get(keyword, "absent"), after.get(keyword, "absent")
                if was != is_now and (is_now != "unproven" or backend not in slow):
                    yield Change("verdicts", f"{backend} {pointer or '/'} {keyword}", str(was), str(is_now))


def _budgets(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What of two budgets can be compared: percentiles only if the same records stand behind both."""
    same = was.get("calibrated_by") == now.get("calibrated_by") == "examples"
    return [{key: one[key] for key in one if same or key in _FIXED} for one in (was, now)]


def _sites(left: Any) -> list[list[Any]]:
    """Sites that are left; why is for people, and may be said in better words."""
    found = left if isinstance(left, list) else []
    return [[_mapping(item).get("pointer"), _mapping(item).get("keyword")] for item in found]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _cut(value: Any) -> str:
    shown = value if isinstance(value, str) else canonical(value)
    return shown if len(shown) <= 160 else f"{shown[:140]}… ({digest(value)})"
