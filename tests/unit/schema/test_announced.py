"""Which violations a plan spoke for: by their site, a schema on the way, or all branches of a union."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.schema.registry import document_schema
from pipeline.schema.shape.announced import site_of, unannounced
from pipeline.schema.shape.shapes import Left
from pipeline.schema.validator import validator_of

INT, STR = {"type": "integer"}, {"type": "string"}
NESTED = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer", "minimum": 3}}}}
BRANCHES = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"k": {"const": "x"}, "v": {"type": "integer", "minimum": 5}},
            "required": ["k"],
        },
        {"type": "string", "pattern": "^a", "minLength": 3},
    ]
}
REFERRED = {"$defs": {"p": {"type": "integer", "minimum": 3}}, "properties": {"a": {"$ref": "#/$defs/p"}}}
COUNTED = {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 3}
CONDITIONAL = {
    "type": "object",
    "properties": {"k": {"type": "string"}, "v": True},
    "if": {"properties": {"k": {"const": "x"}}},
    "then": {"properties": {"v": INT}},
    "else": {"properties": {"v": STR}},
}
FALSE = {"type": "object", "properties": {"a": False, "b": {"not": {}}}, "patternProperties": {"^x": False}}
ODD = {"type": "object", "properties": {"a/b": {"type": "object", "properties": {"c~d": INT, "if": INT, "": INT}}}}
RECURSIVE = {"type": "object", "properties": {"v": INT, "n": {"$ref": "#"}}}

# (schema, value, what is left, sites that nobody announced)
CASES: list[tuple[Any, Any, list[str], set[str]]] = [
    (NESTED, {"a": [1]}, [], {"/properties/a/items minimum"}),
    (NESTED, {"a": [1]}, ["/properties/a/items minimum"], set()),
    (
        NESTED,
        {"a": [1]},
        ["/properties/a/items maximum", "/properties/a type", " required"],
        {"/properties/a/items minimum"},
    ),
    (NESTED, {"a": [1]}, ["/properties/a/items *"], set()),
    (NESTED, {"a": [1]}, ["/properties/a items"], set()),
    (NESTED, {"a": [1]}, [" properties"], set()),
    (NESTED, {"a": [1]}, [" *"], set()),
    (NESTED, {"a": ["x", 1]}, ["/properties/a/items minimum"], {"/properties/a/items type"}),
    (BRANCHES, 5, [], {" anyOf"}),
    (BRANCHES, {"k": "x", "v": 1}, ["/anyOf/0/properties/v minimum"], set()),
    (BRANCHES, "b", ["/anyOf/1 pattern"], {" anyOf"}),
    (BRANCHES, "b", ["/anyOf/1 pattern", "/anyOf/1 minLength"], set()),
    (BRANCHES, "b", ["/anyOf/1 *"], set()),
    (BRANCHES, "b", [" anyOf"], set()),
    (BRANCHES, {"k": "y", "v": 1}, ["/anyOf/0/properties/v minimum"], {" anyOf"}),
    ({"properties": {"u": BRANCHES}}, {"u": "bbb"}, ["/properties/u/anyOf/1 pattern"], set()),
    ({"anyOf": [BRANCHES, INT]}, "bbb", ["/anyOf/0/anyOf/1 pattern"], set()),
    ({"anyOf": [BRANCHES, INT]}, "b", ["/anyOf/0/anyOf/1 pattern"], {" anyOf"}),
    ({"oneOf": [INT, {"type": "number"}]}, 3, [], {" oneOf"}),
    ({"oneOf": [INT, {"type": "number"}]}, 3, [" oneOf"], set()),
    ({"oneOf": [INT, {"type": "number"}]}, 3, ["/oneOf/0 type", "/oneOf/1 type"], {" oneOf"}),
    (REFERRED, {"a": 1}, [], {"/$defs/p minimum"}),
    (REFERRED, {"a": 1}, ["/$defs/p minimum"], set()),
    (REFERRED, {"a": 1}, ["/properties/a $ref"], set()),
    ({"anyOf": [{"$ref": "#/$defs/p"}, STR], "$defs": REFERRED["$defs"]}, 1, ["/$defs/p minimum"], set()),
    (RECURSIVE, {"n": {"n": {"v": "x"}}}, ["/properties/v type"], set()),
    (RECURSIVE, {"n": {"n": {"v": "x"}}}, [], {"/properties/v type"}),
    (COUNTED, [], ["/ contains"], {" contains"}),
    (COUNTED, [], [" contains"], set()),
    (COUNTED, [1], [" minContains"], {" contains"}),
    (COUNTED, [1], [" contains"], set()),
    (COUNTED, [1] * 4, [" contains", " maxContains"], set()),
    (CONDITIONAL, {"k": "x", "v": "s"}, [], {"/then/properties/v type"}),
    (CONDITIONAL, {"k": "x", "v": "s"}, [" then"], set()),
    (CONDITIONAL, {"k": "y", "v": 1}, [" then"], {"/else/properties/v type"}),
    (CONDITIONAL, {"k": "y", "v": 1}, [" else"], set()),
    (FALSE, {"a": 1}, ["/properties/a *"], set()),
    (FALSE, {"a": 1}, [" required"], {" properties"}),
    (FALSE, {"b": 1}, ["/properties/b not"], set()),
    (FALSE, {"x": 1}, [" patternProperties"], set()),
    (FALSE, {"x": 1}, ["/properties/a *"], {" patternProperties"}),
    (ODD, {"a/b": {"c~d": "x"}}, ["/properties/a~1b/properties/c~0d type"], set()),
    (
        ODD,
        {"a/b": {"if": "x", "": "y"}},
        ["/properties/a~1b/properties/if type"],
        {"/properties/a~1b/properties/ type"},
    ),
    ({"type": "object", "required": ["a"]}, {}, [" required"], set()),
    (
        {"$ref": "#/$defs/p", "properties": {"a": INT}, "$defs": {"p": {"properties": {"b": INT}}}},
        {"b": "x"},
        [],
        {"/$defs/p/properties/b type"},
    ),
    ({"type": "array", "uniqueItems": True, "items": INT}, ["x", "x"], [" uniqueItems"], {"/items type"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_was_not_announced_is_named(case: Any) -> None:
    schema, value, left, expected = case
    body = document_schema(schema, "announced@1").body
    errors = list(validator_of(body).iter_errors(value))
    assert errors
    spoken = [Left(pointer, keyword, "") for pointer, keyword in (item.rsplit(" ", 1) for item in left)]
    assert {" ".join(site) for site in unannounced(body, errors, spoken)} == expected


@pytest.mark.parametrize(
    ("schema", "value", "site"),
    [
        (NESTED, {"a": [1]}, ("/properties/a/items", "minimum")),
        (REFERRED, {"a": 1}, ("/$defs/p", "minimum")),
        (FALSE, {"a": 1}, ("", "properties")),  # jsonschema does not say which of them is false
        (COUNTED, [1] * 4, ("", "contains")),
        (CONDITIONAL, {"k": "y", "v": 1}, ("/else/properties/v", "type")),
    ],
)
def test_the_site_of_an_error_is_where_the_keyword_stands(schema: Any, value: Any, site: Any) -> None:
    body = document_schema(schema, "announced@1").body
    assert site_of(body, next(validator_of(body).iter_errors(value))) == site


def test_many_errors_and_long_ways_are_bounded() -> None:
    loops = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(40)} | {"d40": INT}
    body = document_schema({"type": "array", "items": {"$ref": "#/$defs/d0"}, "$defs": loops}, "announced@1").body
    errors = validator_of(body).iter_errors(["x"] * 2000)
    assert unannounced(body, errors, [Left("/$defs/d40", "type", "")]) == []
