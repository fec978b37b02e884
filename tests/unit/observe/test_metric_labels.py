"""Which series metrics have, whatever a row names as its schema and whatever was not found."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pipeline.observe.metrics.families import families_of
from pipeline.observe.metrics.labels import NONE, OTHER, TOGETHER, UNKNOWN, SchemaLabels
from pipeline.observe.metrics.numbers import by_label, numbers_of
from pipeline.observe.tally import Tally


@given(st.dictionaries(st.sampled_from(["a@1", "b@1", "bad@1", "", "made up", *TOGETHER]), st.integers(1, 9)))
def test_a_row_that_names_a_label_as_its_schema_names_no_schema(documents: dict[str, int]) -> None:
    chosen = SchemaLabels(documents, {"a@1", "b@1"}, most=1)
    tallies = by_label(chosen, {name: Tally(documents=count) for name, count in documents.items()})
    numbers = numbers_of("job", chosen, tallies, {})
    strange = sum(count for name, count in documents.items() if name not in ("a@1", "b@1", ""))
    assert numbers.schemas.get(UNKNOWN, Tally()).documents == strange
    assert numbers.schemas.keys() <= {"a@1", "b@1", OTHER, UNKNOWN, NONE}
    assert sum(one.documents for one in numbers.schemas.values()) == sum(documents.values())


def test_a_share_of_none_can_be_told_from_nothing_looked_for() -> None:
    chosen = SchemaLabels({"a@1": 1}, ["a@1"])
    sought = families_of(numbers_of("job", chosen, {"a@1": Tally(matches=Counter(exact=3))}, {}))
    values = {one.labels[2]: one.value for one in sought["gristmill_values_total"]}
    assert values == {"exact": 3, "normalised": 0, "fuzzy": 0, "none": 0}
    assert "gristmill_values_total" not in families_of(numbers_of("job", chosen, {}, {}))
