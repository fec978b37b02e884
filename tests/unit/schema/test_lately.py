"""What is made of schemas without end stays within bounds, and what is used stays there."""

from __future__ import annotations

import pytest
from support import plan_of

from pipeline.schema.lately import Lately
from pipeline.steps import judge, normalise
from pipeline.steps.judge import judge_of


def test_what_is_used_stays_and_what_is_not_goes() -> None:
    made: list[int] = []
    kept: Lately[int, str] = Lately(3)

    def get(key: int) -> str:
        return kept.get(key, lambda: made.append(key) or f"value of {key}")  # type: ignore[func-returns-value]

    for number in range(50):
        assert get(number) == f"value of {number}"
        assert get(0) == "value of 0"
    assert (len(kept), made.count(0), 0 in kept, 10 in kept) == (3, 1, True, False)
    assert kept.find(10) is None


def test_what_cannot_be_made_is_not_kept() -> None:
    kept: Lately[int, int] = Lately()
    with pytest.raises(ZeroDivisionError):
        kept.get(1, lambda: 1 // 0)
    assert kept.get(1, lambda: 5) == 5


def test_schemas_without_end_leave_a_bounded_number_of_judges() -> None:
    for number in range(judge._JUDGES._most + 20):
        judge_of(plan_of({"type": "object", "properties": {f"p{number}": {"type": "string"}}}, f"inline-{number}@1"))
    assert len(judge._JUDGES) == judge._JUDGES._most
    assert isinstance(normalise._NORMALISERS, Lately)
