"""The arms of `bench.clipped` differ in one thing each, and its figures add up."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from support import GOOD, Answers, extracted

from bench.clipped.__main__ import interval, places_of
from bench.clipped.arms import SHIPPED, TIGHT, arms
from pipeline.records import Clipped


def test_each_arm_changes_one_thing() -> None:
    made = {(arm.schema, arm.name): arm for arm in arms(4)}
    assert all(arm.documents for arm in made.values())
    for (schema, name), arm in made.items():
        shipped = made[schema, SHIPPED]
        assert arm.documents == shipped.documents
        told, held = arm.plan.prefix != shipped.plan.prefix, arm.plan.transport != shipped.plan.transport
        assert (told, held) == {
            SHIPPED: (False, False),
            "schema_not_shown": (True, False),
            "fields_reversed": (True, True),
            "fields_reversed_untold": (False, True),
            "enum_too_tight": (True, True),
            "enum_too_tight_untold": (False, True),
        }[name]
        if name == "schema_not_shown":
            assert '"properties"' not in arm.plan.prefix and "fence lines" in arm.plan.prefix


def test_the_tight_enum_lacks_what_the_documents_have_and_the_reverse_is_one() -> None:
    made = {arm.name: arm for arm in arms(4) if arm.schema == "receipt@1"}

    def fields(name: str) -> dict[str, Any]:
        return dict(json.loads(made[name].plan.transport)["properties"])

    tight = json.dumps(fields("enum_too_tight")["currency"])
    assert not any(f'"{code}"' in tight for code in TIGHT) and '"GBP"' in tight
    assert list(fields("fields_reversed")) == list(reversed(fields(SHIPPED)))
    assert made["fields_reversed"].plan.prefix.index('{"total"') > 0  # its examples, too


def test_figures_add_up_over_documents_and_items() -> None:
    one = dataclasses.replace(
        extracted(Answers(GOOD)),
        audit="done",
        clipped=(Clipped("/l/0", "value", 2, 0.5, 0.4), Clipped("/l/1", "value", 2, 0.7, 0.6)),
    )
    none, busy = dataclasses.replace(one, clipped=()), dataclasses.replace(one, audit="busy")
    (place,) = places_of([one, none, busy])
    assert (place["pointer"], place["tokens"], place["highest"]) == ("/l/*", 4, 0.6)
    assert (place["mass_per_token"], place["mass_per_document"]) == (0.3, 0.6)
    assert place["interval"][0] <= 0.6 <= place["interval"][1]
    assert interval([0.5] * 10) == [0.5, 0.5]
