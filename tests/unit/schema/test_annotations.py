"""Annotations that cannot work are refused while a schema is loaded; those of others are let be."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.errors import SchemaError
from pipeline.schema.annotations import KEYWORDS, check_annotations
from pipeline.schema.declared import LANGUAGES, declared_of
from pipeline.schema.reach import declares, follow, in_place

ITEM = {"type": "object", "properties": {"sku": {"type": "string"}, "amount": {"type": "number"}}}


def schema(**keywords: Any) -> dict[str, Any]:
    properties = {
        "total": {"type": "number"},
        "tax": {"type": ["number", "null"]},
        "text": {"type": "string"},
        "source": {"type": "string"},
        "lines": {"type": "array", "items": ITEM},
        "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
        "free": {"type": "object"},
        "open": {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        "map": {"type": "object", "additionalProperties": ITEM},
        "a/b": {"type": "number"},
    }
    place = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "object", "properties": properties, "$defs": {"place": place}, **keywords}


def at(name: str, **keywords: Any) -> dict[str, Any]:
    """The schema with keywords at one of its properties."""
    body = schema()
    return {**body, "properties": {**body["properties"], name: {**body["properties"][name], **keywords}}}


def rule(text: str, **more: Any) -> dict[str, Any]:
    return schema(**{"x-validations": [{"rule": text, "message": "m", **more}]})


GOOD = [
    schema(),
    rule("self.total == self.tax", pointer="/total", severity="degrade"),
    rule("self.lines.all(line, line.amount > 0 && line.sku != '')"),
    rule("self.lines[0].sku == self['a/b']", pointer="/a~1b"),
    rule("self.maybe == null || self.maybe.city == 'x'", pointer="/maybe/city"),
    rule("self.free.anything == 1 && self.open.other == 1 && self.map.some.sku == ''", pointer="/free/any/thing"),
    rule("self.map.all(key, self.map[key].amount > 0)"),
    rule("self.lines.map(line, line.amount).sum() == self.total && input.x == params.y"),
    at("lines", **{"x-unique-by": ["/sku"]}),
    at("lines", **{"x-unique-by": {"pointers": ["", "/amount"], "severity": "block"}}),
    at("total", **{"x-validations": [{"rule": "self > 0", "message": "m"}]}),
    at("text", **{"x-language": "de"}),
    at("text", **{"x-language": ["de", "no"]}),
    at("text", **{"x-language": {"languages": ["zh"], "severity": "observe"}}),
    at("source", **{"x-cites": "/total"}),
    {
        "properties": {
            "a": {},
            "b": {"items": {"properties": {"c": {}, "s": {"x-cites": "/c"}, "t": {"x-cites": "/a"}}}},
        }
    },
    {"properties": {"a": {}, "s": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "string", "x-cites": "/a"}}},
    *(at("text", **{"x-ground": said}) for said in (True, False, "exact", "fuzzy")),
    schema(**{"x-order": ["/total", "/tax"], "x-key": ["/text", "/lines/0/sku"]}),
    schema(**{"x-kubernetes-validations": 1, "x-internal": {"rule": "((("}, "x-google": None}),
    {"type": "object", "properties": {"x-validation": {"type": "string"}, "x-orders": {}}},  # names, not keywords
    {"type": "object", "properties": {"n": {"enum": [{"x-validation": 1}]}}},
    {"items": {"$ref": "#"}, "type": "array", "x-unique-by": [""]},
]


@pytest.mark.parametrize("body", GOOD, ids=range(len(GOOD)))
def test_what_can_work_is_loaded(body: dict[str, Any]) -> None:
    check_annotations(body)


BAD: list[tuple[dict[str, Any], str]] = [
    (rule("self.totl == 1"), "'totl', which is not declared; did you mean total?"),
    (rule("self.lines.all(line, line.amuont > 0)"), "'amuont', which is not declared; did you mean amount?"),
    (rule("self.lines.filter(a, a.sku != '').all(b, b.x > 0)"), "'x', which is not declared"),
    (rule("has(self.nothing)"), "'nothing', which is not declared"),
    (rule("self.maybe.town == ''"), "'town'"),
    (rule("self['totl'] == 1"), "'totl'"),
    (rule("self.total.x == 1"), "'x'"),
    (rule("self.total =="), "rule 1: 'self.total ==' cannot be used"),
    (rule("foo(self)"), "no function foo"),
    (rule("true", pointer="/nothing"), "nothing is declared at /nothing"),
    (rule("true", pointer="total"), "no JSON pointer"),
    (rule("true", pointer="/a~2"), "no JSON pointer"),
    (rule("true", severity="warn"), "severity is block, degrade, observe"),
    (rule("true", severity=["block"]), "severity is"),
    (rule("true", mesage="x"), "unknown key 'mesage'"),
    (schema(**{"x-validations": [{"rule": "true"}]}), "lacks message"),
    (schema(**{"x-validations": [{"rule": "true", "message": " "}]}), "1 to 300"),
    (schema(**{"x-validations": [{"rule": 1, "message": "m"}]}), "strings"),
    (schema(**{"x-validations": {"rule": "true", "message": "m"}}), "list"),
    (schema(**{"x-validations": ["true"]}), "object"),
    (schema(**{"x-validations": [{"rule": "true", "message": "m"}] * 51}), "at most 50"),
    (schema(**{"x-order": ["/total"]}), "at least two"),
    (schema(**{"x-order": ["/total", "/totl"]}), "nothing is declared at /totl"),
    (schema(**{"x-order": ["/total", "/total"]}), "twice"),
    (schema(**{"x-order": "/total"}), "list of 1 to 20"),
    (schema(**{"x-order": {"pointer": ["/total", "/tax"]}}), "lacks pointers"),
    (at("lines", **{"x-order": ["/a", "/b"]}), "no object"),
    (at("lines", **{"x-unique-by": ["/skv"]}), "nothing is declared at /skv"),
    (at("total", **{"x-unique-by": [""]}), "no array"),
    (at("text", **{"x-language": "german"}), "'german' is none of the languages"),
    (at("text", **{"x-language": []}), "code"),
    (at("text", **{"x-language": [1]}), "none of the languages"),
    (at("total", **{"x-language": "de"}), "no string"),
    (at("text", **{"x-ground": "maybe"}), "x-ground"),
    (at("text", **{"x-ground": 0}), "x-ground"),
    (at("source", **{"x-cites": "/nothing"}), "x-cites"),
    (at("source", **{"x-cites": ["/total"]}), "no JSON pointer"),
    (schema(**{"x-key": ["/nothing"]}), "nothing is declared at /nothing"),
    (at("text", **{"x-key": [""]}), "root"),
    *((schema(**{name: []}), f"did you mean {near}") for name, near in (
        ("x-validation", "x-validations"), ("x-normalize", "x-normalise"), ("x-languages", "x-language"),
        ("x-unique-bye", "x-unique-by"), ("x-Validations", "x-validations"), ("x-keys", "x-key"),
        ("x_order", ""), ("x-cite", "x-cites"), ("x-grounds", "x-ground"), ("x-orders", "x-order"),
    ) if near),
    ({"not": {"x-validations": []}}, "inside `not`"),
    ({"contains": {"items": {"x-unique-by": [""]}}}, "inside `contains`"),
    ({"propertyNames": {"x-language": "de"}}, "inside `propertyNames`"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words"), BAD, ids=[words for _, words in BAD])
def test_what_cannot_work_is_refused(body: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError) as refused:
        check_annotations(body)
    assert refused.value.code == "bad_annotation"
    assert words in refused.value.message


def test_the_place_is_named() -> None:
    with pytest.raises(SchemaError, match=r"^at /properties/lines/items/properties/sku: x-language: "):
        check_annotations(
            schema(properties={"lines": {"items": {"properties": {"sku": {"x-language": "xx"}}}}}),
        )


def test_a_schema_has_a_bounded_number_of_rules() -> None:
    many = {f"p{n}": {"x-validations": [{"rule": "true", "message": "m"}] * 50} for n in range(5)}
    with pytest.raises(SchemaError, match="more than 200 rules"):
        check_annotations({"type": "object", "properties": many})


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("value", [None, 1, "", "/", [], [[]], [None], {}, {"pointers": 1}, {"languages": {}}, True])
def test_nonsense_is_refused_or_read_but_never_an_error_of_ours(keyword: str, value: Any) -> None:
    try:
        check_annotations({"type": ["object", "array", "string"], keyword: value})
    except SchemaError as error:
        assert error.code == "bad_annotation"


def test_the_languages_are_those_that_the_detector_knows() -> None:
    lingua = pytest.importorskip("lingua")
    assert {one.iso_code_639_1.name.lower() for one in lingua.Language.all()} == LANGUAGES
    assert declared_of({"x-language": "no"}).language is not None
    assert declared_of({"x-language": "no"}).language.codes == ("nb", "nn")


def test_following_pointers_ends_in_schemas_that_refer_to_themselves() -> None:
    tree = {"anyOf": [{"$ref": "#/$defs/n"}], "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}}
    assert follow(tree, in_place(tree, tree), "/next" * 100)
    assert follow(tree, in_place(tree, tree), "/next/other") is None


def test_what_a_lookup_can_find() -> None:
    body = schema()
    for pointer in ("", "/total", "/lines/*/sku", "/lines/0/sku", "/map/*/sku", "/maybe/city", "/free/x", "/*"):
        assert declares(body, pointer), pointer
    for pointer in ("/totl", "/lines/*/skv", "/lines/sku", "/total/*", "/maybe/town"):
        assert not declares(body, pointer), pointer
