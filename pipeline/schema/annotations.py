"""Annotations: the `x-` keywords that this program reads, refused while a schema is loaded if they cannot work.

A keyword with a typing error would declare nothing, and nobody would notice. So names that are nearly right are refused
as well as pointers and fields that the schema does not declare. `x-` keywords of others are let be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, TypeAlias

from pipeline.errors import SchemaError
from pipeline.schema.cel.syntax import Call, Index, Literal, Macro, Name, Node, Select, parts_of
from pipeline.schema.declared import Declared, Malformed, declared_of, pointer_of, pointers_of
from pipeline.schema.reach import ANY, Nodes, follow, in_place, members, step
from pipeline.schema.walk import children

KEYWORDS = (
    "x-validations",
    "x-normalise",
    "x-language",
    "x-unique-by",
    "x-order",
    "x-ground",
    "x-cites",
    "x-key",
)
NEAR = 0.85
"""Similarity (0 to 1, Ratcliff and Obershelp) from which an unknown keyword is taken for a mistyped one."""

MAX_RULES = 200
"""Rules of a schema."""

GROUNDS = (True, False, "exact", "normalised", "fuzzy")
_TYPES = {
    "x-language": "string",
    "x-unique-by": "array",
    "x-order": "object",
}
_UNSEEN = ("not", "contains", "propertyNames", "contentSchema")
"""Keywords whose subschemas are tried on values without saying anything of them that could be reported."""


_Holders: TypeAlias = tuple[Mapping[str, Any] | None, ...]


def check_annotations(body: Mapping[str, Any]) -> None:
    """Refuse annotations that cannot work; `x-normalise` is left to `normalisers`.

    Raises:
        SchemaError: `bad_annotation`; the message has place, keyword and reason.
    """
    rules = 0
    for pointer, node, holders, unseen in _nodes(body):
        if not any(keyword.startswith("x-") for keyword in node):
            continue
        try:
            if unseen and any(keyword in KEYWORDS for keyword in node):
                raise Malformed(f"annotations inside `{unseen}` are never looked at")
            rules += len(_check(body, node, holders, at_root=not pointer).rules)
            if rules > MAX_RULES:
                raise Malformed(f"more than {MAX_RULES} rules of x-validations in one schema")
        except Malformed as error:
            raise SchemaError(f"at {pointer or '/'}: {error}.", "bad_annotation") from error


def _nodes(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], _Holders, str]]:
    """Every subschema: its pointer, itself, the subschemas of the objects around its value (None among them: others
    refer to it, and their objects are not known), and the keyword above it that hides it."""
    pending: list[tuple[str, Any, _Holders, str]] = [("", body, (), "")]
    while pending:
        pointer, node, holders, unseen = pending.pop()
        if not isinstance(node, Mapping):
            continue
        yield pointer, node, holders, unseen
        for keyword, place, child in children(node):
            held = keyword in ("properties", "patternProperties", "additionalProperties")
            inside = (*holders, node) if held else (None,) if keyword in ("$defs", "definitions") else holders
            hidden = keyword if keyword in _UNSEEN else unseen
            pending.append((pointer + place, child, inside, hidden))


def _check(body: Mapping[str, Any], node: Mapping[str, Any], holders: _Holders, *, at_root: bool) -> Declared:
    for keyword in node:
        if keyword.startswith("x-") and keyword not in KEYWORDS:
            _check_name(keyword)
    declared = declared_of(node)
    for keyword, needed in _TYPES.items():
        if keyword in node and "type" in node and needed not in _types(node):
            raise Malformed(f"{keyword} stands at a value that is no {needed}")
    here = in_place(body, node)
    for number, rule in enumerate(declared.rules, 1):
        _check_pointer(body, here, rule.pointer, f"x-validations: rule {number}")
        _Fields(body, f"x-validations: rule {number}").of(rule.program.tree, {"self": here})
    for pointer in declared.order.pointers if declared.order else ():
        _check_pointer(body, here, pointer, "x-order")
    for pointer in declared.unique.pointers if declared.unique else ():
        _check_pointer(body, step(body, here, ANY) or [], pointer, "x-unique-by")
    _check_others(body, node, holders, at_root)
    return declared


def _check_others(body: Mapping[str, Any], node: Mapping[str, Any], holders: _Holders, at_root: bool) -> None:
    """`x-ground`, `x-cites` and `x-key`."""
    if "x-ground" in node:
        said = node["x-ground"]
        if not any(type(said) is type(known) and said == known for known in GROUNDS):
            raise Malformed(f"x-ground: takes {', '.join(map(repr, GROUNDS))}, not {said!r:.60}")
    if "x-cites" in node:
        pointer = _called("x-cites", pointer_of, node["x-cites"])
        if "type" in node and not _types(node) & {"string", "integer", "array"}:
            raise Malformed("x-cites stands at a value that can hold no id of a passage")
        around = [in_place(body, holder) for holder in holders if holder is not None]
        if None not in holders and all(follow(body, nodes, pointer) is None for nodes in around):
            raise Malformed(f"x-cites: nothing is declared at {pointer} of an object around it")
    if "x-key" in node:
        if not at_root:
            raise Malformed("x-key stands at the root of a schema")
        for pointer in _called("x-key", pointers_of, node["x-key"]):
            _check_pointer(body, in_place(body, body), pointer, "x-key")


def _called(keyword: str, read: Any, value: Any) -> Any:
    try:
        return read(value)
    except Malformed as error:
        raise Malformed(f"{keyword}: {error}") from error


def _check_name(keyword: str) -> None:
    near = max(KEYWORDS, key=lambda known: SequenceMatcher(None, keyword.lower(), known).ratio())
    if SequenceMatcher(None, keyword.lower(), near).ratio() >= NEAR:
        raise Malformed(f"{keyword} is unknown; did you mean {near}?")


def _check_pointer(body: Mapping[str, Any], nodes: Nodes, pointer: str, where: str) -> None:
    if pointer and nodes and follow(body, nodes, pointer) is None:
        raise Malformed(f"{where}: nothing is declared at {pointer}{_near(pointer.rpartition('/')[2], nodes)}")


def _types(node: Mapping[str, Any]) -> set[str]:
    declared = node["type"]
    return {declared} if isinstance(declared, str) else set(declared)


def _near(name: str, nodes: Nodes) -> str:
    listed = members(nodes)
    near = max(listed, key=lambda known: SequenceMatcher(None, name, known).ratio(), default="")
    return f"; did you mean {near}?" if near and SequenceMatcher(None, name, near).ratio() >= 0.6 else ""


class _Fields:
    """Checks that the fields which a rule reads of `self` are declared, as far as its text tells."""

    def __init__(self, body: Mapping[str, Any], where: str) -> None:
        self._body = body
        self._where = where

    def of(self, node: Node, known: Mapping[str, Nodes]) -> Nodes:
        """The subschemas of what a part of a rule gives; none if that is not known.

        Raises:
            Malformed: it reads what is not declared.
        """
        if isinstance(node, Name):
            return known.get(node.name, ())
        if isinstance(node, Select):
            return self._step(self.of(node.base, known), node.field)
        if isinstance(node, Index):
            base = self.of(node.base, known)
            self.of(node.key, known)
            is_name = isinstance(node.key, Literal) and isinstance(node.key.value, str)
            return self._step(base, node.key.value) if is_name else self._items(base)  # type: ignore[union-attr]
        if isinstance(node, Macro):
            target = self.of(node.target, known)
            # of a map, a macro goes through the keys
            items = self._items(target) if all("properties" not in one for one in target) else ()
            for body in node.bodies:
                self.of(body, {**known, node.variable: items})
            return target if node.kind == "filter" else ()
        for part in parts_of(node):
            self.of(part, known)
        return self.of(node.args[0], known) if isinstance(node, Call) and node.function == "dyn" else ()

    def _step(self, nodes: Nodes, name: str) -> Nodes:
        if not nodes:
            return ()
        found = step(self._body, nodes, name)
        if found is None:
            raise Malformed(f"{self._where} reads {name!r}, which is not declared{_near(name, nodes)}")
        return found

    def _items(self, nodes: Nodes) -> Nodes:
        return (step(self._body, nodes, ANY) or ()) if nodes else ()
