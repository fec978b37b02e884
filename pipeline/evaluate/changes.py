"""Changes: what two runs were not made by alike, and whether too much changed at once to say what did it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.evaluate.comparison import Change
from pipeline.report.against import differences
from pipeline.runtime.output.browse import Browsed

KINDS = (
    *("schema", "prompt", "model", "engine", "constraint", "budget", "sampling", "checks"),
    *("program", "input", "seed"),
)
"""What a difference is of. Those of `program` are versions, those of `input` other documents; a `seed` is chance."""

ONE_AT_A_TIME = frozenset({"schema", "prompt", "model", "engine", "constraint", "budget", "sampling", "checks"})
"""Kinds of which one at a time tells what it does."""

_PREFIXES = (
    ("schema ", "schema"),
    ("prompt of ", "prompt"),
    ("grammar of ", "constraint"),
    ("sampling.max_tokens", "budget"),
    ("sampling.constrained", "constraint"),
    ("sampling.narrow", "constraint"),
    ("sampling.seed", "seed"),
    ("sampling.", "sampling"),
    ("retry.", "budget"),
    ("clean", "prompt"),
    ("cite", "prompt"),
    ("policy.", "checks"),
    ("params.", "checks"),
    ("lookups", "checks"),
    ("values of lookups", "checks"),
    ("input.columns", "checks"),
)
_ENGINE = {"model": "model", "recording": "model", "backend": "constraint", "compact_json": "constraint"}
_ENGINE |= {"max_model_len": "budget", "seed": "seed"}


def changes_of(a: Browsed, b: Browsed) -> tuple[Change, ...]:
    """What `run.json` and the manifests of two runs do not say alike, by kind. What only follows from another schema,
    its prompt and its grammar, is left out."""
    work = [_told(one.record.get("work")) for one in (a, b)]
    versions = [dict(one.manifest.versions) for one in (a, b)]
    found = [Change(_kind(name), name, one, two) for name, one, two in differences(work[1], work[0])]
    if not any(work):  # runs of earlier versions, or another program's: the manifest has the schemas
        schemas = differences(b.manifest.schemas, a.manifest.schemas)
        found = [Change("schema", f"schema {name}", one, two) for name, one, two in schemas]
    found += [Change("program", name, one, two) for name, one, two in differences(versions[1], versions[0])]
    if _input(a) != _input(b):
        found.append(Change("input", "input", _input(a), _input(b)))
    changed = {one.name.removeprefix("schema ") for one in found if one.kind == "schema"}
    kept = [one for one in found if one.name.partition(" of ")[2] not in changed or one.kind == "schema"]
    return tuple(sorted(kept, key=lambda one: (KINDS.index(one.kind), one.name)))


def warnings_of(a: Browsed, b: Browsed, changes: tuple[Change, ...]) -> Iterator[str]:
    """What a reader must know before believing a comparison."""
    kinds = [kind for kind in KINDS if kind in ONE_AT_A_TIME and any(one.kind == kind for one in changes)]
    if len(kinds) > 1:
        named = f"{', '.join(kinds[:-1])} and {kinds[-1]}"
        yield f"{named} changed at once: no difference can be put down to one of them. Change one at a time."
    if any(one.kind == "program" for one in changes):
        yield "The runs were made by other versions of programs, which can change records by themselves."
    if any(one.kind == "input" for one in changes):
        yield "The inputs were not the same: a document with the same id may have another text."
    for run, name in ((a, "A"), (b, "B")):
        if not run.record.get("work"):
            yield f"What run {name} was made by is not known: its run.json cannot be read."


def _told(work: Any) -> dict[str, Any]:
    return dict(work) if isinstance(work, Mapping) else {}


def _input(run: Browsed) -> Any:
    origin = run.record.get("origin")
    return origin.get("input") if isinstance(origin, Mapping) else None


def _kind(name: str) -> str:
    """The kind of a piece of work (`runtime/output/identity.py` names them)."""
    for prefix, kind in _PREFIXES:
        if name.startswith(prefix):
            return kind
    return _ENGINE.get(name.rpartition(".")[2], "engine")
