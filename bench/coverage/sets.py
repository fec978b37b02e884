"""The schemas that are measured, with the instances that came with them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
"""The drafts of the official suite that are measured: as it names them, and as a schema declares them."""

_BENCH = "jsonschemabench_300.jsonl"
_SUITE = "json_schema_test_suite.jsonl"


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance that came with a schema, and whether whoever wrote it says that the schema accepts it."""

    data: Any
    valid: bool
    about: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A schema as it was handed in. `fault`: why there is no schema, where a file does not hold one."""

    id: str
    schema: Any
    tests: tuple[Instance, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Set:
    """Cases that are reported together. `absent`: the file that is not there."""

    name: str
    cases: tuple[Case, ...] = ()
    absent: str = ""


NAMES = ("jsonschemabench", *(f"suite-{draft}" for draft in DRAFTS))


def handed(name: str) -> Set:
    """One of the sets below GRISTMILL_SHARED (or `../shared`)."""
    folder = ROOT / (os.environ.get("GRISTMILL_SHARED") or "../shared") / "data" / "schemas"
    file = folder / (_BENCH if name == "jsonschemabench" else _SUITE)
    if not file.is_file():
        return Set(name, absent=f"data/schemas/{file.name}")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
    if name == "jsonschemabench":
        return Set(name, tuple(_case(row["id"], row) for row in rows))
    draft = name.removeprefix("suite-")
    chosen = [{**row, "schema": _declared(row["schema"], draft)} for row in rows if row["draft"] == draft]
    return Set(name, tuple(_case(row["id"], row) for row in chosen))


def folder_set(folder: Path) -> Set:
    """The `.json` and `.jsonl` files below a folder: plain schemas, or objects with `schema` and maybe `tests`, also
    in lists (as the official suite has them) and one a line. Lines and list members that hold no `schema` are
    something else and left out."""
    found: list[Case] = []
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.jsonl")]):
        name = path.relative_to(folder).as_posix()
        if path.name != "plan.lock.json":
            found += _of_file(name, path.read_bytes().decode("utf-8", "replace"))
    return Set(folder.resolve().name, tuple(found))


def some(cases: Sequence[Case], limit: int | None) -> tuple[Case, ...]:
    """At most `limit` of them, from all over the set."""
    if limit is None or limit >= len(cases):
        return tuple(cases)
    return tuple(cases[index * len(cases) // limit] for index in range(limit))


def _of_file(name: str, text: str) -> Iterable[Case]:
    lines = text.split("\n") if name.endswith(".jsonl") else [text]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}:{number}" if len(lines) > 1 else name
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Case(place, None, fault=f"{type(error).__name__}: {error}")
            continue
        yield from _of_value(place, value, plain=not name.endswith(".jsonl"))


def _of_value(place: str, value: Any, *, plain: bool) -> Iterator[Case]:
    if isinstance(value, list) and any(_is_row(item) for item in value):
        yield from (_case(f"{place}#{index}", row) for index, row in enumerate(value) if _is_row(row))
    elif _is_row(value):
        yield _case(place, value)
    elif plain:
        yield Case(place, value)


def _is_row(value: Any) -> bool:
    """`schema` is no keyword, so an object that has it holds a schema rather than being one."""
    return isinstance(value, dict) and "schema" in value and ("tests" in value or "type" not in value)


def _case(key: str, row: Mapping[str, Any]) -> Case:
    given = row.get("tests", ())
    tests = [Instance(test["data"], bool(test["valid"]), str(test.get("description", ""))) for test in given]
    return Case(key, row["schema"], tuple(tests))


def _declared(schema: Any, draft: str) -> Any:
    """The suite says by folders which draft a schema is of; ours have to say so themselves."""
    return {"$schema": DRAFTS[draft], **schema} if isinstance(schema, dict) else schema
