"""Announced: whether a plan said beforehand that a violation could come.

A `Left` speaks for its keyword at its schema, and for everything below that keyword; the keyword `*` for the whole
schema. A violation is announced if it, or a schema on the way to it, is spoken for; that of a union is if some branch's
violations all are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

from pipeline.schema.shape.shapes import Left, Site
from pipeline.schema.walk import LISTS, MAPS, escape, resolve, target

MAX_ERRORS = 1000
MAX_STEPS = 10_000


def unannounced(body: Mapping[str, Any], errors: Iterable[ValidationError], left: Iterable[Left]) -> list[Site]:
    """The sites of those errors of a record that no `Left` speaks for."""
    spoken = {(item.pointer, item.keyword) for item in left}
    judged = [error for _, error in zip(range(MAX_ERRORS), errors, strict=False)]
    return [site_of(body, error) for error in judged if not _is_announced(body, error, ("", body), spoken)]


def site_of(body: Mapping[str, Any], error: ValidationError) -> Site:
    """The keyword site at which the validator reported an error."""
    return _visited(body, error, ("", body))[-1]


def _is_announced(body: Mapping[str, Any], error: ValidationError, start: tuple[str, Any], spoken: set[Site]) -> bool:
    visited = _visited(body, error, start)
    if any(site in spoken or (site[0], "*") in spoken for site in visited):
        return True
    pointer, keyword = visited[-1]
    if not isinstance(error.validator, str):  # `false`: jsonschema does not say which one below this place
        below = f"{pointer}/" if keyword == "*" else f"{pointer}/{keyword}/"
        return any(f"{place}/{name}/".startswith(below) for place, name in spoken)
    if keyword not in ("anyOf", "oneOf") or not error.context:
        return False
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context:
        if inner.relative_schema_path:  # jsonschema does not say which branch was `false`
            branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
    for index, inner_errors in branches.items():
        branch = f"{pointer}/{keyword}/{index}"
        node = resolve(body, f"#{branch}")
        if (branch, "*") in spoken or all(_is_announced(body, inner, (branch, node), spoken) for inner in inner_errors):
            return True
    return False


def _visited(body: Mapping[str, Any], error: ValidationError, start: tuple[str, Any]) -> list[Site]:
    """The sites on the way to an error, its own last. The path of an error inside a union begins with the branch."""
    tokens = [str(token) for token in error.relative_schema_path]
    if start[0]:
        tokens = tokens[1:]
    return _way(body, start, tokens, error) or [(start[0], "*")]


def _way(
    body: Mapping[str, Any], start: tuple[str, Any], tokens: list[str], error: ValidationError
) -> list[Site] | None:
    """jsonschema's paths leave out `$ref` and `if`: of the ways that fit, the one to the error's keyword and value."""
    stack: list[tuple[str, Any, int, list[Site]]] = [(*start, 0, [])]
    for _ in range(MAX_STEPS):
        if not stack:
            break
        pointer, node, at, sites = stack.pop()
        if not isinstance(node, Mapping):
            if at == len(tokens):
                return sites
            continue
        if "$ref" in node:
            place = target(node["$ref"])
            stack.append((place, resolve(body, node["$ref"]), at, [*sites, (pointer, "$ref")]))
        if at == len(tokens) or tokens[at] not in node:
            continue
        keyword = tokens[at]
        here = [*sites, (pointer, keyword)]
        if at + 1 == len(tokens):
            # Counts of `contains` are reported at `contains`, under the name and the value of the count.
            if error.validator is None or node.get(str(error.validator)) == error.validator_value:
                return here
            continue
        inside = keyword in MAPS or keyword in LISTS
        if inside and tokens[at + 1] not in _steps(node[keyword]):
            continue
        place = f"{pointer}/{escape(keyword)}" + (f"/{escape(tokens[at + 1])}" if inside else "")
        stack.append((place, resolve(body, f"#{place}"), at + 1 + inside, here))
    return None


def _steps(schemas: Any) -> Iterable[str]:
    """The tokens that lead to the schemas that a keyword holds."""
    return schemas if isinstance(schemas, Mapping) else map(str, range(len(schemas)))
