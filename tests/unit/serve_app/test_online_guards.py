"""What is refused of a stranger's schema by looking at it: work that doubles at each step, patterns without a bound."""

from __future__ import annotations

from typing import Any

import pytest
from serving import object_of

from pipeline.errors import SchemaError
from pipeline.serve_app.patterns import check_patterns
from pipeline.serve_app.tangle import check_tangle


def chained(levels: int, below: bool) -> dict[str, Any]:
    """Definitions each of which leads twice to the next, at the same place or one level further down."""
    both = [{"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(levels)]
    named = {f"a{n}": object_of(x=one) if below else one for n, one in enumerate(both)}
    return {**object_of(x={"$ref": "#/$defs/a0"}), "$defs": {**named, f"a{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    "body",
    [
        chained(24, below=False),
        chained(60, below=True),
        object_of(a={"anyOf": [object_of(op={"const": op}, of={"$ref": "#"}) for op in "+-"]}),
        {"allOf": [object_of(a={"$ref": "#"})], "unevaluatedProperties": False},
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
    ],
)
def test_schemas_that_double_the_work_at_each_step_are_tangled(body: Any) -> None:
    with pytest.raises(SchemaError) as refused:
        check_tangle(body)
    assert refused.value.code == "tangled"


@pytest.mark.parametrize(
    "body",
    [
        chained(5, below=False),
        object_of(left={"$ref": "#"}, right={"$ref": "#"}, value={"type": "integer"}),
        {"anyOf": [{"type": "string"}, {"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]},
        {"prefixItems": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [object_of(kind={"const": n}, data={"type": "string"}) for n in range(50)]},
        object_of(a=object_of(a=object_of(a={"$ref": "#"}))),
    ],
)
def test_ordinary_recursion_and_unions_are_not(body: Any) -> None:
    check_tangle(body)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^CVSS:[34]\.[01](/[A-Z]{1,3}:[A-Za-z]{1,5}){8,24}$",
        "^(foo|bar)*$",
        "^([A-Z][a-z]+ ?)+$",
        r"^[^@]+@[^@]+\.[a-z]+$",
    ],
)
def test_patterns_that_are_quick_are_taken(pattern: str) -> None:
    check_patterns(object_of(a={"pattern": pattern}))


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(a*)*$",
        "^(a{1,3}){2,9}$",
        r"^(a*)\1$",
        "^(a?){60}$",
        "^(a?){0,60}$",
        "^((ab)+)+$",
        "^(?=(a+)+)b$",
    ],
)
def test_patterns_that_may_take_for_ever_are_refused_wherever_they_stand(pattern: str) -> None:
    for body in (object_of(a={"pattern": pattern}), {"patternProperties": {pattern: True}}):
        with pytest.raises(SchemaError) as refused:
            check_patterns(body)
        assert refused.value.code == "slow_pattern"
