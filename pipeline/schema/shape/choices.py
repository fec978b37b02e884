"""Alternatives: a conjunction with every choice made, so that only keywords about one value each are left.

anyOf, oneOf, if/then/else, not, dependentRequired and dependentSchemas are choices. They multiply; those that would
multiply too far are not made but left to the validator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.schema.shape.exclusive import exclusive
from pipeline.schema.shape.negate import negation
from pipeline.schema.shape.source import Choice, Conjunction, Source, closure
from pipeline.schema.walk import escape

MAX_ALTERNATIVES = 64
_TOO_MANY = f"more than {MAX_ALTERNATIVES} combinations"


def alternatives(source: Source, conjunction: Conjunction) -> list[Conjunction]:
    """Conjunctions of schemas of which the choosing keywords can be ignored; their union is the conjunction."""
    found: list[Conjunction] = []
    _choose(source, conjunction, frozenset(), MAX_ALTERNATIVES, found)
    return list(dict.fromkeys(found))


def _choose(
    source: Source, chosen: Conjunction, made: frozenset[tuple[str, str]], most: int, found: list[Conjunction]
) -> None:
    flat = tuple(closure(source, chosen, branches=False))
    if any(source.nodes[pointer] is False for pointer in flat):
        return
    for pointer in flat:
        for choice in _choices(source, pointer, source.nodes[pointer]):
            site = choice.pointer, choice.keyword
            if site in made:
                continue
            made |= {site}
            if len(choice.options) > most:
                for keyword in _judged_by(choice.keyword):
                    source.leave(choice.pointer, keyword, _TOO_MANY)
                continue
            for option in choice.options:
                _choose(source, chosen + option, made, most // max(1, len(choice.options)), found)
            return
    found.append(tuple(pointer for pointer in flat if isinstance(source.nodes[pointer], Mapping)))


def _judged_by(keyword: str) -> tuple[str, ...]:
    """The keywords at which the validator reports what a choice forbids."""
    return ("then", "else") if keyword == "if" else (keyword.split("/")[0],)


def _choices(source: Source, pointer: str, node: Any) -> Iterator[Choice]:
    if not isinstance(node, Mapping):
        return
    if "anyOf" in node:
        yield Choice(pointer, "anyOf", _branches(pointer, node, "anyOf"))
    if "oneOf" in node:
        if not exclusive(source, pointer):
            source.leave(pointer, "oneOf", "branches are not provably exclusive: read as anyOf")
        yield Choice(pointer, "oneOf", _branches(pointer, node, "oneOf"))
    if "if" in node and {"then", "else"} & node.keys():
        yield _conditional(source, pointer, node)
    if "not" in node:
        negated = negation(source, node["not"])
        if negated is None:
            source.leave(pointer, "not", "its complement has no schema")
        else:
            yield Choice(pointer, "not", tuple((source.make(option, (pointer, "not")),) for option in negated))
    for name, needed in node.get("dependentRequired", {}).items():
        site = pointer, "dependentRequired"
        absent = source.make({"properties": {name: False}}, site)
        present = source.make({"required": [name, *needed]}, site)
        yield Choice(pointer, f"dependentRequired/{escape(name)}", ((absent,), (present,)))
    for name in node.get("dependentSchemas", {}):
        step = f"dependentSchemas/{escape(name)}"
        site = pointer, "dependentSchemas"
        absent = source.make({"properties": {name: False}}, site)
        present = source.make({"required": [name]}, site)
        yield Choice(pointer, step, ((absent,), (present, f"{pointer}/{step}")))


def _branches(pointer: str, node: Mapping[str, Any], union: str) -> tuple[Conjunction, ...]:
    return tuple((f"{pointer}/{union}/{index}",) for index in range(len(node[union])))


def _conditional(source: Source, pointer: str, node: Mapping[str, Any]) -> Choice:
    """if/then/else as (if and then) or (not if, and else). Without `then`, (if) or (else) is the same."""
    met: Conjunction = (f"{pointer}/if", *([f"{pointer}/then"] if "then" in node else []))
    otherwise: Conjunction = (f"{pointer}/else",) if "else" in node else ()
    unmet: list[Conjunction] = [otherwise]
    if "then" in node:
        negated = negation(source, node["if"])
        if negated is None:
            source.leave(pointer, "then", "the complement of `if` has no schema")
        else:
            unmet = [(source.make(option, (pointer, "then")), *otherwise) for option in negated]
    return Choice(pointer, "if", (met, *unmet))
