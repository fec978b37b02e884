"""Every kind of change: what it is, and the classes that it can have. `docs/drift.md` shows this table.

`L`: the class of the accepted records, as the two values tell. A reader's class of `L` is that of the records, except
that a reader has nothing to fear but new values: breaking counts as widening there. A model's class of `L` is that of
the records, or `retest` where these stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """`language`, `readers`, `model`: the possible classes, `L` where they follow the records (see above)."""

    meaning: str
    language: str
    readers: str
    model: str
    why: str


_ALL = "L"
_SAME = ("compatible", "compatible", "retest")
_COLUMN = "compatible"

KINDS: dict[str, Kind] = {
    "type": Kind(
        "types of a value added or removed",
        *(_ALL, "L or breaking", "L"),
        "a type (or null) that a reader never met breaks it; a type that is gone does not",
    ),
    "enum_added": Kind("members of an enum added", "widening", _ALL, _ALL, "a reader's switch may miss the new member"),
    "enum_removed": Kind("members of an enum removed", "narrowing", _ALL, _ALL, "old records may hold the member"),
    "enum_set": Kind("enum or const where there was none", "narrowing", _ALL, _ALL, "only listed values are left"),
    "enum_dropped": Kind("enum or const gone", "widening", _ALL, _ALL, "values are no longer listed"),
    "enum_order": Kind("members of an enum reordered", *_SAME, "same members; models lean to what they read first"),
    "bound_tightened": Kind("a limit allows less", "narrowing", _ALL, _ALL, "values beyond the new limit are refused"),
    "bound_loosened": Kind("a limit allows more", "widening", _ALL, _ALL, "values beyond the old limit are accepted"),
    "multiple_of": Kind("multipleOf", _ALL, _ALL, _ALL, "a multiple of the other, or not"),
    "pattern": Kind("pattern", _ALL, _ALL, _ALL, "two patterns are not compared: any change counts as breaking"),
    "format": Kind("format", _ALL, _ALL, _ALL, "two formats are not compared; those that nobody checks refuse nothing"),
    "unique_items": Kind("uniqueItems", _ALL, _ALL, _ALL, "repeated items are refused, or no longer"),
    "property_added": Kind("a property added", _ALL, "L or widening", _ALL, "a key that records did not hold before"),
    "property_removed": Kind("a property removed", _ALL, "breaking", _ALL, "a reader that names it finds nothing"),
    "renamed?": Kind("one property gone, one of the same schema new", *_SAME, "looks like a rename: a hint only"),
    "property_order": Kind("properties reordered", *_SAME, "the model writes the fields in another order"),
    "required_added": Kind("a property is required", "narrowing", _ALL, _ALL, "old records may lack it"),
    "required_removed": Kind("a property is optional", "widening", "breaking", _ALL, "a reader finds null or nothing"),
    "allowed": Kind("a value, key or item is no longer forbidden", _ALL, _ALL, _ALL, "nothing was accepted here"),
    "forbidden": Kind("a value, key or item is now forbidden", _ALL, _ALL, _ALL, "nothing is accepted here now"),
    "constraint_added": Kind(
        "a keyword that holds schemas, or a dependency, added", _ALL, _ALL, _ALL, "one more condition"
    ),
    "constraint_removed": Kind(
        "a keyword that holds schemas, or a dependency, removed", _ALL, _ALL, _ALL, "one condition less"
    ),
    "tuple_length": Kind("prefixItems longer or shorter", "L", _ALL, _ALL, "compared position by position below"),
    "branch_added": Kind(
        "a branch of anyOf or oneOf added",
        *(_ALL, "L or breaking", "L"),
        "a shape that did not occur; of a new type it breaks a reader",
    ),
    "branch_removed": Kind("a branch of anyOf or oneOf removed", _ALL, _ALL, _ALL, "a shape that is refused now"),
    "branch_order": Kind("branches reordered", *_SAME, "same branches; models lean to what they read first"),
    "overlap": Kind(
        "oneOf whose branches are not told apart, changed",
        *("L", "L", "L"),
        "a value that two branches accept is refused, so no change of a branch can be judged alone",
    ),
    "one_of_any": Kind(
        "anyOf became oneOf, or the reverse", _ALL, _ALL, _ALL, "oneOf also refuses what two branches accept"
    ),
    "unevaluated": Kind(
        "a keyword added or removed beside unevaluatedProperties or unevaluatedItems",
        *("breaking", "L", "L"),
        "what is evaluated changed, so nothing here can be judged alone",
    ),
    "undecided": Kind("too large or too entangled to compare", "breaking", "breaking", _ALL, "the limit is hit"),
    "unknown_keyword": Kind("a keyword that no validator knows", *_SAME, "refuses nothing, but the model reads it"),
    "annotation": Kind("title, description, default, examples…", *_SAME, "the model reads it: answers may move"),
    "extension": Kind(
        "an x- keyword",
        *("compatible", "compatible", "compatible"),
        "neither prompt nor grammar shows it; what is done to answers may change",
    ),
    "rule_added": Kind(
        "a rule of x-validations added or stricter",
        *("compatible, narrowing", "L", "compatible"),
        "records that break it are no longer valid (`observe` only counts); no grammar holds it",
    ),
    "rule_removed": Kind(
        "a rule of x-validations removed or milder",
        *("compatible, widening", "L", "compatible"),
        "records that broke it become valid (`observe` only counts); no grammar held it",
    ),
    "rules_unread": Kind(
        "x-validations that are not a list of rules", "breaking", _ALL, "compatible", "cannot be compared"
    ),
    "instructions": Kind("instructions.md", *_SAME, "the model reads it: answers may move"),
    "few_shot": Kind("examples.jsonl", *_SAME, "the model reads it: answers may move"),
    "identity": Kind("$schema or $id", _COLUMN, _COLUMN, _COLUMN, "neither prompt nor grammar shows it"),
    "closing": Kind("closed by itself instead of by policy", _COLUMN, _COLUMN, _COLUMN, "the same objects are closed"),
    "definition_added": Kind("a definition added", *_SAME, "its uses are compared where they are"),
    "definition_removed": Kind("a definition removed", *_SAME, "its uses are compared where they were"),
    "definition_renamed": Kind("a definition renamed", *_SAME, "no change of meaning; prompt and grammar spell it"),
    "definition_unused": Kind("a definition that nothing reaches changed", *_SAME, "no value meets it"),
    "spelling": Kind("another spelling of the same", *_SAME, "order of keywords, spelling of numbers"),
    "column_added": Kind("a column added", _COLUMN, "widening", _COLUMN, "`select *` shows one more"),
    "column_removed": Kind("a column removed", _COLUMN, "breaking", _COLUMN, "a query that names it fails"),
    "column_type": Kind(
        "a column of another type", _COLUMN, "breaking", _COLUMN, "a query that computes with it fails"
    ),
    "column_nullable": Kind("a column became nullable", _COLUMN, "breaking", _COLUMN, "a reader meets its first null"),
    "column_required": Kind("a column is never null now", _COLUMN, "narrowing", _COLUMN, "nulls no longer occur"),
    "column_order": Kind("columns reordered", _COLUMN, _COLUMN, _COLUMN, "readers go by name; check those that do not"),
    "column_note": Kind("what a column's notes say", _COLUMN, _COLUMN, _COLUMN, "values are stored alike"),
}
HARMLESS = frozenset(
    name for name, kind in KINDS.items() if kind.language == "compatible" or name.startswith(("rule", "column"))
)
"""Kinds that leave alone which values a schema accepts and which keys it evaluates, wherever they stand."""
