"""Aims: with one keyword taken away what broke it is legal, with one made stricter what kept it is not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.schema.closing import close_objects
from pipeline.schema.probe.aims import WHOLE, Aim, Alone, aims_of, alone_of
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.loosen import accepts, loosened
from pipeline.schema.probe.sites import sites
from pipeline.schema.registry import load_schema
from pipeline.schema.shape.read import read

ROOT = Path(__file__).parents[3]
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["leaf", "twig", 3]},
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["kind", "children"],
        }
    },
    "$ref": "#/$defs/node",
}
MANY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "day": {"type": "string", "format": "date"},
        "step": {"type": "integer", "multipleOf": 5, "exclusiveMinimum": 0, "exclusiveMaximum": 1000},
        "name": {"type": "string", "minLength": 2, "maxLength": 12},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "fixed": {"const": "yes"},
        "either": {"anyOf": [{"type": "boolean"}, {"type": "string", "maxLength": 4}]},
    },
    "required": ["code", "day", "step", "name", "tags", "fixed", "either"],
}
NAMES = ["tree", "many", "receipt@1"]


@cache
def made(name: str) -> tuple[dict[str, Any], list[Aim], list[Alone]]:
    own = {"tree": TREE, "many": MANY}
    closed = close_objects(own[name])[0] if name in own else dict(load_schema(ROOT / "schemas", name).asked)
    found = instances(closed, read(closed), 5.0)
    return closed, aims_of(found), alone_of(found)


@pytest.mark.parametrize("name", NAMES)
def test_each_keyword_is_tried_from_a_side_and_both_sides_differ_in_what_they_accept(name: str) -> None:
    closed, aims, _ = made(name)
    assert {aim.site for aim in aims} == set(sites(closed))
    for aim in aims:
        assert aim.loose is not None or aim.tight is not None, aim.site
        for text in aim.wanted:
            assert not accepts(closed, json.loads(text)), (aim.site, text)
        if aim.loose is not None:
            assert aim.wanted and all(accepts(aim.loose, json.loads(text)) for text in aim.wanted), aim.site
        for text in aim.legal:
            assert aim.tight is not None
            assert accepts(closed, json.loads(text)) and not accepts(aim.tight, json.loads(text)), (aim.site, text)


def differing(one: Any, other: Any, pointer: str = "") -> set[str]:
    """Pointers of the values that two bodies do not have alike."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {found for key in one for found in differing(one[key], other[key], f"{pointer}/{key}")}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return {found for at, (a, b) in pairs for found in differing(a, b, f"{pointer}/{at}")}
    return set() if one == other else {pointer}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_but_the_subschema_of_the_site_is_changed(name: str) -> None:
    closed, aims, _ = made(name)
    for aim in aims:
        for changed in (aim.loose, aim.tight):
            where = set() if changed is None else differing(closed, changed)
            assert all(f"{place}/".startswith(f"{aim.site[0]}/") for place in where), (aim.site, where)


def test_each_required_name_has_an_aim_of_its_own() -> None:
    _, aims, _ = made("many")
    names = [aim for aim in aims if aim.site == ("", "required")]
    assert [aim.detail for aim in names] == [f'without "{name}"' for name in MANY["required"]]
    for aim, name in zip(names, MANY["required"], strict=True):
        assert all(name not in json.loads(text) for text in aim.wanted) and aim.wanted
        assert aim.loose is not None and aim.loose["required"] == [one for one in MANY["required"] if one != name]


def test_a_recursion_is_gone_down() -> None:
    _, aims, _ = made("tree")
    deep = {aim.site: aim for aim in aims if "level" in aim.detail}
    assert ("/$defs/node/properties/size", "maximum") in deep and ("/$defs/node/properties/kind", "enum") in deep
    for aim in deep.values():
        assert all(text.count('"children":[{') >= 2 for text in aim.wanted), aim


def test_members_and_records_alone_share_nothing() -> None:
    _, _, alone = made("tree")
    by_site = {one.site: one for one in alone}
    enum = by_site["/$defs/node/properties/kind", "enum"]
    assert [body["$defs"]["node"]["properties"]["kind"]["enum"] for body in enum.bodies] == [["leaf"], ["twig"], [3]]
    assert enum.wanted
    records = [body["const"] for body in by_site[WHOLE].bodies]
    assert len(records) >= 2 and all(one != other for n, one in enumerate(records) for other in records[:n])


def test_what_breaks_more_than_the_site_is_not_loosened_by_it() -> None:
    closed = close_objects(MANY)[0]
    assert loosened(closed, ("/properties/day", "format"), {"code": 7}) is None
