"""Clipped mass in tallies: exact in integers, by place, in any order, and bounded however many places there are."""

from __future__ import annotations

import dataclasses
import json
import random

from support import GOOD, Answers, extracted

from pipeline.observe.clipped import MAX_PLACES, OTHER, ClippedPlace, clipped_counts, few_places, places_of
from pipeline.observe.tally import Tally, tally
from pipeline.records import Audit, Clipped, Outcome

BASE = extracted(Answers(GOOD))


def audited(*places: Clipped, audit: Audit = "done", schema: str = "receipt@1") -> Outcome:
    return dataclasses.replace(BASE, audit=audit, clipped=places, schema=schema)


def test_places_are_summed_over_documents_and_items_of_arrays() -> None:
    total = tally(
        [
            audited(Clipped("/lines/0", "value", 3, 0.5, 0.4), Clipped("/total", "structure", 2, 0.25, 0.25)),
            audited(Clipped("/lines/0", "value", 1, 0.25, 0.25), Clipped("/lines/7", "value", 4, 1.25, 1.0)),
            audited(audit="busy"),
            BASE,
        ]
    )
    assert dict(total.audits) == {"done": 2, "busy": 1}
    assert places_of(total.clipped) == [
        ClippedPlace("receipt@1", "/lines/*", "value", 8, 2.0),
        ClippedPlace("receipt@1", "/total", "structure", 2, 0.25),
    ]
    assert places_of(total.clipped)[0].mean == 0.25


def test_the_whole_answer_and_keys_with_blanks_are_places_too() -> None:
    places = (Clipped("", "value", 1, 1.0, 1.0), Clipped("/a b value tokens", "blank", 2, 0.5, 0.25))
    found = places_of(tally([audited(*places)]).clipped)
    assert [(place.pointer, place.part, place.tokens) for place in found] == [
        ("", "value", 1),
        ("/a b value tokens", "blank", 2),
    ]


def test_the_order_of_adding_changes_nothing_and_json_holds_it() -> None:
    outcomes = [audited(Clipped(f"/k{n % 7}", "value", n, n / 7, 0.5)) for n in range(60)]
    shuffled = outcomes.copy()
    random.Random(1).shuffle(shuffled)
    halves = tally(shuffled[:20]).merge(tally(shuffled[20:]))
    assert halves == tally(outcomes) == Tally.from_json(json.loads(json.dumps(halves.to_json())))


def test_a_tally_of_an_older_version_is_read() -> None:
    old = {name: value for name, value in tally([BASE]).to_json().items() if name not in ("audits", "clipped")}
    assert Tally.from_json(old) == tally([BASE])


def test_keys_of_the_model_s_own_do_not_grow_a_tally() -> None:
    total = Tally()
    most = 0
    for document in range(300):
        made = [Clipped(f"/m{document}-{key}/{'x' * 300}", "value", 1, 0.5, 0.5) for key in range(10)]
        total.add(audited(Clipped("/vendor", "value", 5, 1.0, 0.5), *made))
        most = max(most, len(total.clipped))
    assert most <= 4 * MAX_PLACES
    places = {(place.schema, place.pointer): place for place in places_of(total.clipped)}
    assert places["receipt@1", "/vendor"] == ClippedPlace("receipt@1", "/vendor", "value", 1500, 300.0)
    assert places[OTHER, OTHER].tokens > 1000
    assert sum(place.tokens for place in places.values()) == 300 * 15
    assert sum(place.mass for place in places.values()) == 300 * 6.0
    assert max(map(len, total.clipped)) < 200


def test_what_is_trimmed_keeps_tokens_and_mass_together() -> None:
    counts = clipped_counts(audited(*(Clipped(f"/k{n}", "blank", n + 1, 0.5, 0.5) for n in range(3 * MAX_PLACES))))
    few = few_places(counts)
    assert {key.rpartition(" ")[0] for key in few if key.endswith("tokens")} == {
        key.rpartition(" ")[0] for key in few if key.endswith("millionths")
    }
    assert len(few) == 2 * (MAX_PLACES + 1)
