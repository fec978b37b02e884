"""What a document adds to the sums: its layers, what grounding and confidence say of its values, its slices."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import GOOD, RECEIPT, attempt

from pipeline.evaluate.calibration import bin_of
from pipeline.evaluate.gold import GoldRow
from pipeline.evaluate.intervals import Bootstrap
from pipeline.evaluate.judged import ALL, Judged, contributions, length_of
from pipeline.evaluate.match import match, match_nothing
from pipeline.evaluate.mistakes import EXAMPLES, Mistakes
from pipeline.evaluate.scores import scores_of
from pipeline.records import Field, Outcome, Problem, Repair

NAME = "receipt@1"


def judged(key: str = "d", found: Any = GOOD, gold: Any = GOOD, **outcome: Any) -> Judged:
    status = "valid" if found is not None else "rejected"
    made = Outcome(key, "in#0", NAME, status, 1, found, **{"attempts": (attempt(tokens=5),), **outcome})  # type: ignore[arg-type]
    matched = match_nothing(gold, RECEIPT) if found is None else match(gold, found, RECEIPT)
    return Judged(GoldRow(key, "gold#0", record=gold), NAME, matched, made, f"Ann & Co {key} total 19.90")


def rates(*documents: Judged, where: Any = ALL) -> dict[str, Any]:
    boot = Bootstrap(100)
    for one in documents:
        boot.add(one.gold.id, contributions(one, {"language": "en"}))
    return {name: (rate.count, rate.of) for name, rate in scores_of(boot, where).rates.items()}


def test_layers_are_kept_apart_each_out_of_what_the_one_before_let_through() -> None:
    def with_problem(key: str, *codes: str, **more: Any) -> Judged:
        return judged(key, problems=tuple(Problem(code, attempt=1) for code in codes), **more)

    found = rates(
        judged("first"),
        with_problem("repaired", "json_repaired", repairs=(Repair("json_repaired", attempt=1),)),
        with_problem("schema", "schema_violation"),
        with_problem("rule", "rule_broken"),
        with_problem("no json", "no_json", found=None),
        with_problem("long", "document_too_long", found=None, attempts=()),
        dataclasses.replace(judged("lost"), outcome=None, matched=match_nothing(GOOD, RECEIPT)),
    )
    assert found["first_pass_format"] == (3, 5)
    assert found["post_repair_format"] == (4, 5)
    assert found["schema"] == (3, 4)
    assert found["semantic"] == (2, 3)
    assert found["coverage"] == (5, 6)
    assert found["unextracted"] == (1, 7)
    assert found["rejected"] == (2, 7)
    assert found["whole"] == (4, 7)


def test_grounding_and_confidence_are_those_of_the_value_that_was_judged() -> None:
    wrong = {**GOOD, "vendor": "Bob", "lines": ["salt", "sugar"]}
    fields = (
        Field("/vendor", "none", confidence=0.4),
        Field("/lines/0", "exact", 0, 4, confidence=0.9),  # aligned with the second of the gold
        Field("/total", "normalised", confidence=0.99),
        Field("/date", confidence=0.5),  # nobody looked
    )
    one = judged(found=wrong, fields=fields)
    assert rates(one)["ungrounded"] == (1, 3)
    assert rates(one, where=("field", NAME, "/vendor"))["ungrounded"] == (1, 1)
    sums = contributions(one, {})
    assert {where[2]: name for (where, name), value in sums.items() if where[0] == "confidence" and name != "sum"} == {
        str(bin_of(0.4)): "not",
        str(bin_of(0.9)): "right",
        str(bin_of(0.99)): "right",
        str(bin_of(0.5)): "right",
    }


def test_slices_add_up_to_the_whole() -> None:
    some = [judged("a"), judged("b", found={**GOOD, "total": 3}), judged("c", found=None)]
    assert rates(*some) == rates(*some, where=("schema", NAME)) == rates(*some, where=("language", "en"))
    assert [length_of(text) for text in (None, "x" * 500, "x" * 501, "x" * 99_999)] == [
        "unknown",
        "up to 500 characters",
        "up to 1000 characters",
        "over 32000 characters",
    ]


def test_mistakes_are_grouped_and_their_examples_do_not_depend_on_the_order() -> None:
    shown = []
    for order in (1, -1):
        made = Mistakes()
        for number in range(50)[::order]:
            made.add(judged(f"d{number}", found={**GOOD, "vendor": "tea", "lines": ["tea", "salz"]}))
        made.add(judged("gone", found=None, problems=(Problem("no_json", message="it says", attempt=1),)))
        groups = {(group.pointer, group.kind): group for group in made.ranked()}
        assert groups["/vendor", "elsewhere"].documents == groups["/lines/*", "wrong"].documents == 50
        assert groups["no_json", "no_record"].leaves == 1
        shown.append(groups["/vendor", "elsewhere"].examples)
    assert shown[0] == shown[1]
    assert len({one.id for one in shown[0]}) == EXAMPLES
    assert all(f"Ann & Co {one.id} total" in one.passage for one in shown[0])
