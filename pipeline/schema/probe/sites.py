"""Sites: the keywords of a body that can be violated, each where it stands, and which of them an error violates.

Left out are keywords that cannot refuse anything where they stand (`required: []`, unknown keywords and formats, those
of another type than the `type` beside them), those whose children are the sites (`properties`, `allOf`, `items` with a
schema, `$ref`), and everything below `not`, `if`, `contains`, `unevaluated…`, which report as a whole. A `type` beside
constants that are all of it is theirs. `type`, `const` and `enum` right at a branch of a union are that union's: if
they fail, another branch is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from pipeline.schema.formats import is_checked
from pipeline.schema.probe.spots import Spot
from pipeline.schema.shape.announced import site_of
from pipeline.schema.shape.shapes import TYPES, Site
from pipeline.schema.walk import IN_PLACE, LISTS, MAPS, children, resolve, target

UNIONS = frozenset({"anyOf", "oneOf"})
BRANCH_KINDS = frozenset({"type", "const", "enum"})
"""Keywords that tell the branches of a union apart."""

_WHOLE = frozenset({"not", "if", "contains", "unevaluatedItems", "unevaluatedProperties", "contentSchema"})
_HOLDERS = frozenset({*MAPS, *LISTS, "items", "additionalProperties", "propertyNames", "then", "else"}) - UNIONS
_NOTHING: dict[str, Any] = {
    "required": [],
    "minLength": 0,
    "minItems": 0,
    "minProperties": 0,
    "uniqueItems": False,
    "unevaluatedItems": True,
    "unevaluatedProperties": True,
    "dependentRequired": {},
    "not": False,
}
JUDGED: dict[str, str] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"), "array"),
    **dict.fromkeys(("items", "prefixItems", "unevaluatedItems"), "array"),
    **dict.fromkeys(("required", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties"), "object"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames"), "object"),
    "unevaluatedProperties": "object",
}
"""The type that a keyword judges; of others it says nothing."""

_ASSERTIONS = frozenset({*JUDGED, "type", "enum", "const", "not", "anyOf", "oneOf"}) - _HOLDERS

_SILENT = frozenset({"$ref", "$defs", "definitions", "if", "properties"})
_RENAMED = frozenset({"minContains", "maxContains"})
Taken = Mapping[str, Sequence[Spot]]
"""Where an instance satisfied which subschema, branches of unions among them."""

MAX_CONTEXT = 200
MAX_UNIONS = 6
"""Errors inside a union, and unions inside each other, that are looked at."""


def sites(body: Mapping[str, Any]) -> tuple[Site, ...]:
    """Every site of a body that the root leads to, in the order in which they are come across."""
    found: dict[Site, None] = {}
    for pointer, (node, at_branch) in reachable(body).items():
        if not isinstance(node, Mapping):
            continue
        for keyword, value in node.items():
            if _can_refuse(node, keyword, value) and not (at_branch and keyword in BRANCH_KINDS):
                found[pointer, keyword] = None
    return tuple(found)


def reachable(body: Mapping[str, Any]) -> dict[str, tuple[Any, bool]]:
    """The subschemas whose errors can be reported, by pointer, and whether they judge only whole branches of unions."""
    found: dict[str, tuple[Any, bool]] = {}
    queue: list[tuple[str, Any, bool]] = [("", body, False)]
    for pointer, node, at_branch in queue:  # grows
        if pointer in found and (at_branch or not found[pointer][1]):
            continue
        found[pointer] = node, at_branch
        if not isinstance(node, Mapping):
            continue
        if "$ref" in node:
            queue.append((target(node["$ref"]), resolve(body, node["$ref"]), at_branch))
        for keyword, step, child in children(node):
            if _is_idle(node, keyword):
                continue
            if keyword not in _WHOLE and keyword not in ("$defs", "definitions"):
                stays = keyword in UNIONS or (at_branch and keyword in IN_PLACE)
                queue.append((pointer + step, child, stays))
    return found


def _can_refuse(node: Mapping[str, Any], keyword: str, value: Any) -> bool:
    if _is_idle(node, keyword) or (keyword in _NOTHING and value == _NOTHING[keyword]):
        return False
    if keyword in _HOLDERS or keyword in _SILENT:
        return _holds_false(node, keyword, value)
    if keyword == "format":
        return is_checked(value)
    if keyword == "type":
        named = {value} if isinstance(value, str) else set(value)
        return not named >= set(TYPES) and not _is_implied(node)
    return keyword in _ASSERTIONS and not (keyword in _RENAMED and "contains" not in node)


def _is_idle(node: Mapping[str, Any], keyword: str) -> bool:
    """Whether a keyword judges a type that the `type` beside it refuses altogether."""
    if "type" not in node or keyword not in JUDGED:
        return False
    named = {node["type"]} if isinstance(node["type"], str) else set(node["type"])
    return JUDGED[keyword] not in {"number" if name == "integer" else name for name in named}


def _is_implied(node: Mapping[str, Any]) -> bool:
    """Whether constants beside a `type` refuse all that the type refuses: then it cannot be violated alone."""
    constants = [node["const"]] if "const" in node else node.get("enum")
    judge = Draft202012Validator({"type": node["type"]})
    return constants is not None and all(judge.is_valid(constant) for constant in constants)


def _holds_false(node: Mapping[str, Any], keyword: str, value: Any) -> bool:
    """Whether a keyword reports itself, since a schema right below it is `false`."""
    if keyword in ("$ref", "$defs", "definitions", "if") or (keyword in ("then", "else") and "if" not in node):
        return False
    return any(child is False for name, _, child in children({keyword: value}) if name == keyword)


@dataclass(frozen=True)
class Judge:
    """Finds the site of an error. `known` are the sites of the body."""

    body: Mapping[str, Any]
    known: frozenset[Site]

    def sites(
        self, errors: Iterable[ValidationError], taken: Taken | None = None, aim: Site | None = None
    ) -> set[Site]:
        """The sites of an instance's errors; reading stops as soon as there are two. For the rest see `site`."""
        found: set[Site] = set()
        for error in errors:
            found.add(self.site(error, taken, aim))
            if len(found) > 1:
                break
        return found

    def site(self, error: ValidationError, taken: Taken | None = None, aim: Site | None = None) -> Site:
        """The site that an error violates.

        An error of a union counts at one site inside a branch, if that is the only one violated in the branch that was
        meant; otherwise, and where the union is what was aimed at, at the union. Meant is the branch that the instance
        satisfied before it was changed (`taken`, see `spots`); of several the one that now violates just what was aimed
        at. Where it satisfied none, it is the branch that fails least by what tells branches apart (see `_strength`),
        if each other one does fail by that.
        """
        return self._site(error, taken or {}, aim, 0)

    def _site(self, error: ValidationError, taken: Taken, aim: Site | None, depth: int) -> Site:
        pointer, keyword = site_of(self.body, error)
        if error.validator in _RENAMED and keyword == "contains":
            return pointer, str(error.validator)
        if keyword not in UNIONS or (pointer, keyword) == aim or depth >= MAX_UNIONS:
            return pointer, keyword
        branches: dict[Any, list[ValidationError]] = {}
        for inner in islice(error.context or (), MAX_CONTEXT):
            if inner.relative_schema_path:  # jsonschema does not say which branch was `false`
                branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        found = {
            index: {self._site(_whole(inner), taken, aim, depth + 1) for inner in branches[index]}
            for index in _meant(error, branches, f"{pointer}/{keyword}", taken)
        }
        if aim is not None and {aim} in found.values():
            return aim
        inside = next(iter(found.values())) if len(found) == 1 else set()
        return inside.pop() if len(inside) == 1 and inside <= self.known else (pointer, keyword)


def _meant(
    error: ValidationError, branches: Mapping[Any, list[ValidationError]], union: str, taken: Taken
) -> list[Any]:
    """The branches that were satisfied at the place of an error; if none was, the likely one."""
    path = tuple(error.absolute_path)
    found = [index for index in branches if any(spot.path == path for spot in taken.get(f"{union}/{index}", ()))]
    return found or _likely(branches)


def _likely(branches: Mapping[Any, list[ValidationError]]) -> list[Any]:
    strengths = {index: max(map(_strength, errors)) for index, errors in branches.items()}
    least, *others = sorted(strengths, key=lambda index: strengths[index]) or [None]
    return [] if least is None or any(strengths[index] in (0, strengths[least]) for index in others) else [least]


def _strength(error: ValidationError) -> int:
    """How surely an error says that another branch was meant: the type of the whole value, a constant, a list."""
    if error.validator == "type" and not error.relative_path:
        return 3
    return {"const": 2, "enum": 1}.get(str(error.validator), 0)


def _whole(error: ValidationError) -> ValidationError:
    """An error inside a union with its path from the root. A context keeps the parent that it had: paths stay right."""
    moved = ValidationError(
        error.message,
        validator=error.validator,
        validator_value=error.validator_value,
        instance=error.instance,
        schema=error.schema,
        path=error.absolute_path,
        schema_path=error.absolute_schema_path,
    )
    moved.context = error.context
    return moved
