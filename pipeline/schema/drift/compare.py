"""The comparison itself: pairs of subschemas on a stack, each compared once; the findings become changes.

A schema is a conjunction of keywords. If every keyword keeps all values, the schema does; so what all changes together
mean is what they add up to, and nothing has to be carried back up. That holds for references that come back to
themselves too (by induction on the size of a value), so a pair that was met before says nothing new. Where a part is
not monotone (`not`, `if`, overlapping `oneOf`, `unevaluated…`), its changes are turned around or count as breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.schema.columns import column_of
from pipeline.schema.drift.found import ABSENT, FREE, Finding, Found, Pair, presence
from pipeline.schema.drift.kinds import HARMLESS, KINDS
from pipeline.schema.drift.members import same_members
from pipeline.schema.drift.prints import Prints
from pipeline.schema.drift.readers import same_columns
from pipeline.schema.drift.report import (
    Change,
    Drift,
    language_of,
    model_of,
    readers_of,
)
from pipeline.schema.drift.tasks import ENTANGLED, At, Task, below, change
from pipeline.schema.drift.told import grammar_of, prompt_of, same_definitions, same_folder, same_prose
from pipeline.schema.drift.unions import Look, same_parts, same_unions, split, union_of
from pipeline.schema.drift.values import same_values, types_of
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.walk import constrains, resolve, target, unescape

MAX_WORK = 8 << 20
"""Two schemas of 1 MiB need less, unless references pair their parts in ever new ways. See `_weight`."""

MAX_HOPS = 100
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_EVALUATING = frozenset(
    {"properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "dependentSchemas"}
    | {"if", "then", "else", "anyOf", "oneOf"}
)
_PLAIN = frozenset(
    {"type", "multiple_of", "pattern", "format", "unique_items", "required_added", "required_removed"}
    | {name for name in KINDS if name.startswith(("enum", "bound"))}
)
"""Kinds that do not touch what the schema that they stand in has evaluated."""


def drift(old: DocumentSchema, new: DocumentSchema) -> Drift:
    """Compare two loaded schemas: what a record, a reader and the model meet after `old` was replaced by `new`.

    The language is never said to be wider or narrower than it is proven to be: what cannot be decided is breaking.
    Equal sets may go unseen and be called widening, narrowing or breaking.

    Raises:
        KeyError: a `$ref` leads nowhere; `load_schema` refuses such schemas.
    """
    walk = _Walk(old.body, new.body)
    prompt, grammar = prompt_of(old) == prompt_of(new), grammar_of(old) == grammar_of(new)
    changes = [change(Task(None, None), finding) for finding in same_folder(old, new)]
    if not prompt or not grammar or old.body != new.body:
        changes += walk.changes()
    changes += [change(Task(None, None), finding) for finding in _columns(old, new)]
    if not (prompt and grammar) and all(change.model == "compatible" for change in changes):
        changes.append(change(Task(None, None), Finding("spelling", ())))
    if prompt and grammar:  # as where a definition that nothing reaches got a keyword that no model is shown
        changes = [replace(one, model="compatible") if one.model == "retest" else one for one in changes]
    return Drift(
        changes=tuple(changes),
        language=language_of(change.language for change in changes),
        readers=readers_of(change.readers for change in changes),
        model=model_of(change.model for change in changes),
        same_grammar=grammar,
        same_prompt=prompt,
        same_recordings=grammar and prompt and old.digest == new.digest,
    )


def _columns(old: DocumentSchema, new: DocumentSchema) -> Iterator[Finding]:
    try:
        was, now = column_of(old.body), column_of(new.body)
    except RecursionError:
        yield Finding("column_type", (), readers="breaking", why="not compared: the columns nest too deep")
        return
    yield from same_columns(was, now)


class _Walk:
    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._roots = (old, new)
        self._prints = Prints()
        self._met: set[tuple[int, int, int, bool]] = set()
        self._reached: set[str] = set()
        self._kept: list[Any] = []  # what is known by identity must live

    def changes(self) -> Iterator[Change]:
        """Every change of what the two schemas say."""
        stack, work = [Task(*self._roots)], 0
        while stack:
            task = stack.pop()
            work += _weight(task.old) + _weight(task.new)
            if work > MAX_WORK:
                yield change(task, Finding("undecided", (), keeps=False, adds_nothing=False, readers="breaking"))
                return
            later = []
            for found in self._compare(task):
                if isinstance(found, Task):
                    later.append(found)
                else:
                    yield change(task, found)
            stack += reversed(later)
        definitions = same_definitions(*self._roots, self._reached, self._prints)
        yield from (change(Task(None, None), finding) for finding in definitions)

    def _compare(self, task: Task) -> Iterator[Finding | Task]:
        old, new = (FREE if schema is True or schema == {} else schema for schema in (task.old, task.new))
        if old is False or new is False:
            if old is not new:
                kind = "allowed" if old is False else "forbidden"
                yield Finding(kind, (), task.old, task.new, keeps=old is False, adds_nothing=new is False)
            return
        key = (id(old), id(new), task.polarity, task.frozen)
        if key in self._met or (old is FREE and new is FREE):
            return
        self._kept += (old, new)
        self._met.add(key)
        yield from same_prose(old, new, root=task.at is None)
        was, now = self._inner(0, old, None), self._inner(1, new, task.at)
        if was[0] is not old or now[0] is not new:
            yield replace(task, old=was[0], new=now[0], at=now[1])
            return
        stirs = task.frozen or any(keyword in old and keyword in new for keyword in _UNEVALUATED)
        for found in self._keywords(old, new, stirs):
            if isinstance(found, Pair):
                yield below(task, found, stirs)
            elif stirs and not task.frozen and found.kind not in _PLAIN | HARMLESS:
                yield replace(found, keeps=False, adds_nothing=False, why=ENTANGLED)
            else:
                yield found

    def _keywords(self, old: Mapping[str, Any], new: Mapping[str, Any], stirs: bool) -> Iterator[Found]:
        for keyword in sorted(_EVALUATING & (old.keys() ^ new.keys())) if stirs else ():
            values = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            yield Finding("unevaluated", (keyword,), *values, keeps=False, adds_nothing=False)
        unions = union_of(old), union_of(new)
        if any(unions):
            both = [union or ("", split(schema)) for union, schema in zip(unions, (old, new), strict=True)]
            yield from same_unions(both[0], both[1], self._prints, self._looks)
            return
        yield from same_values(old, new)
        yield from same_members(old, new, types_of(old) & types_of(new), self._prints)
        yield from same_parts(old, new, self._prints, self._looks)
        for keyword in ("anyOf", "oneOf"):
            was, now = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            if was is ABSENT and now is ABSENT:
                continue
            if was is ABSENT or now is ABSENT:
                yield presence("constraint", keyword, was, now)
            else:
                yield from same_unions((keyword, was), (keyword, now), self._prints, self._looks)

    @property
    def _looks(self) -> tuple[Look, Look]:
        return lambda schema: self._inner(0, schema, None)[0], lambda schema: self._inner(1, schema, None)[0]

    def _inner(self, side: int, schema: Any, at: At) -> tuple[Any, At]:
        """The schema behind bare references and single `allOf` branches, and its pointer."""
        for _ in range(MAX_HOPS):
            if not isinstance(schema, Mapping) or sum(map(constrains, schema)) != 1:
                break
            if "$ref" in schema:
                pointer = target(schema["$ref"])
                self._reached.add(pointer)
                schema, at = resolve(self._roots[side], schema["$ref"]), None
                for token in pointer.split("/")[1:]:
                    at = (at, unescape(token))
            elif len(schema.get("allOf", ())) == 1:
                schema, at = schema["allOf"][0], ((at, "allOf"), "0")
            else:
                break
        return schema, at


def _weight(schema: Any) -> int:
    """What comparing a schema's own keywords costs, in characters and list members, roughly."""
    if not isinstance(schema, Mapping) or not schema:
        return 1
    return 40 + sum(len(value) for value in schema.values() if isinstance(value, str | list | Mapping))
