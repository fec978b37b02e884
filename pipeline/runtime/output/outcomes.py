"""Outcomes as JSON and back: what of a unit is saved before the unit is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.records import Attempt, Clipped, Field, Outcome, Problem, Repair

_NESTED = {"problems": Problem, "repairs": Repair, "attempts": Attempt, "fields": Field, "clipped": Clipped}


def to_bytes(value: Any) -> bytes:
    """JSON on one line, records of `pipeline.records` in it as objects of their members.

    Raises:
        ValueError, TypeError, RecursionError: it holds what JSON cannot, or is nested too deep.
    """
    # surrogatepass: raw model text may hold half a surrogate pair, and must come back as it was.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_members)
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> Any:
    """What `to_bytes` encoded, records as plain objects.

    Raises:
        ValueError, RecursionError: it is no JSON.
    """
    return json.loads(data.decode("utf-8", "surrogatepass"))


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome that a plain object holds.

    Raises:
        TypeError, KeyError: it is none that this version knows.
    """
    nested = {name: tuple(kind(**item) for item in row.get(name, ())) for name, kind in _NESTED.items()}
    return Outcome(**{**row, **nested})


def _members(row: Any) -> dict[str, Any]:
    """A record's members as they are; `dataclasses.asdict` would copy every value first."""
    names = getattr(row, "__slots__", None)
    if names is None:
        raise TypeError(f"{type(row).__name__} has no JSON")
    return {name: getattr(row, name) for name in names}
