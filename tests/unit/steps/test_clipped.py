"""Which place of an answer lost how much to the constraint, token by token, whatever the answer is."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GOOD, RECEIPT, Answers, config, document, plan_of, schemas

from pipeline.flow import extract
from pipeline.job import ExtractConfig
from pipeline.jobplacement import AuditConfig
from pipeline.records import Clipped, Completion, Document
from pipeline.steps.clipped import audited, clipped
from tests.bounds import processor_seconds

KEPT = 0.5
"""What each token below keeps of its probability, unless a test says otherwise."""


def answer(*tokens: str, kept: dict[int, float] | None = None, blank: dict[int, float] | None = None) -> Completion:
    """An audited answer of these tokens. `kept`: the probability of legal tokens at a place, `blank` that of blanks."""
    text, ends = "", []
    for token in tokens:
        text += token
        ends.append(len(text))
    legal = [(kept or {}).get(place, KEPT) for place in range(len(tokens))]
    unmasked = [(math.log(0.6 * each), (blank or {}).get(place, 0.0)) for place, each in enumerate(legal)]
    return Completion(
        text,
        "stop",
        True,
        token_ids=tuple(range(len(tokens))),
        logprobs=tuple({place: math.log(0.6)} for place in range(len(tokens))),
        token_ends=tuple(ends),
        audit="done",
        unmasked=tuple(unmasked),
    )


def found(completion: Completion) -> dict[tuple[str, str], tuple[int, float]]:
    places = clipped(completion)
    assert places is not None
    return {(place.pointer, place.part): (place.tokens, pytest.approx(place.mass)) for place in places}


def test_each_token_counts_where_it_begins() -> None:
    made = answer(
        '{"', "vendor", '":', '"', "Ann", '",', '"lines', '":[', '"tea', '","', "salt", '"],', '"total":', "19"
    )
    assert found(made) == {
        ("", "structure"): (1, 0.5),  # the bracket that opens the record
        ("/vendor", "structure"): (1, 0.5),
        ("/vendor", "value"): (4, 2.0),  # with both of its quotes, and the one that ends its key
        ("/lines", "structure"): (2, 1.0),
        ("/lines/0", "value"): (2, 1.0),
        ("/lines/1", "value"): (2, 1.0),
        ("/total", "structure"): (1, 0.5),
        ("/total", "value"): (1, 0.5),
    }


def test_what_ends_a_number_belongs_to_it_and_what_ends_a_container_to_that() -> None:
    made = answer('{"a":', "[", "1", "2", ",", "3", "]", "}", "")
    assert found(made) == {
        ("", "structure"): (3, 1.5),  # its brackets, and the end of the answer
        ("/a", "structure"): (1, 0.5),
        ("/a/0", "value"): (3, 1.5),  # whether it goes on is decided at the comma
        ("/a/1", "value"): (2, 1.0),
    }


def test_nested_objects_and_escaped_keys_have_pointers() -> None:
    made = answer('{"a/b', '":', "{", '"~', '":', "null", "}", "}")
    assert [(place.pointer, place.part) for place in clipped(made) or ()] == [
        ("", "structure"),
        ("/a~1b", "structure"),
        ("/a~1b/~0", "structure"),
        ("/a~1b/~0", "value"),
    ]


def test_the_mass_is_what_legal_tokens_lack_to_one() -> None:
    (root, key, value) = clipped(answer('{"', "k", '":true', "}", kept={0: 1.0, 1: 0.25, 2: 0.1, 3: 1.0})) or ()
    assert root == Clipped("", "structure", 2, pytest.approx(0.0), pytest.approx(0.0))
    assert key == Clipped("/k", "structure", 1, pytest.approx(0.75), pytest.approx(0.75))
    assert value == Clipped("/k", "value", 1, pytest.approx(0.9), pytest.approx(0.9))


def test_blanks_are_taken_out_and_told_apart() -> None:
    made = answer('{"', "k", '":true', "}", kept={0: 1.0, 1: 0.25, 2: 0.1, 3: 0.9}, blank={1: 0.5, 2: 0.9, 3: 0.4})
    assert found(made) == {
        ("", "structure"): (2, 0.0),
        ("", "blank"): (1, 0.1),  # no more than what was taken at all: the constraint may allow blanks there
        ("/k", "structure"): (1, 0.25),
        ("/k", "blank"): (2, 1.4),
        ("/k", "value"): (1, 0.0),
    }


def test_two_passes_that_round_differently_leave_no_negative_mass() -> None:
    (root,) = clipped(answer("{", "}", kept={0: 1.01, 1: 1.02})) or ()
    assert (root.tokens, root.mass, root.highest) == (2, 0.0, 0.0)


@pytest.mark.parametrize(
    "text", ['{"a":"cut here', '{"a":[1,2', '{"a', '{"a":"\\', "no json", '{"a" 1}', '{"a":}', "", "}"]
)
def test_an_answer_that_is_cut_or_no_json_has_places_for_all_its_tokens(text: str) -> None:
    places = clipped(answer(*text))
    assert places is not None
    assert sum(place.tokens for place in places) == len(text)


def test_of_a_cut_value_all_tokens_are_its_own() -> None:
    assert found(answer('{"a":', '"cut', " he", "re"))["/a", "value"] == (3, 1.5)


@given(schemas().flatmap(lambda sample: sample[1]), st.integers(1, 5))
def test_every_token_of_any_answer_is_counted_once(record: Any, size: int) -> None:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    places = clipped(answer(*pieces))
    assert places is not None
    assert sum(place.tokens for place in places) == len(pieces)
    assert math.fsum(place.mass for place in places) == pytest.approx(KEPT * len(pieces))


def test_tokens_that_do_not_fit_the_text_say_nothing() -> None:
    made = answer("{", "}")
    assert clipped(dataclasses.replace(made, token_ends=())) is None
    assert clipped(dataclasses.replace(made, unmasked=made.unmasked[:1])) is None
    assert clipped(dataclasses.replace(made, logprobs=())) is None


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, '{"' + "k" * 300_000, "[" + "1," * 150_000])
def test_what_a_model_may_write_costs_little(text: str) -> None:
    made = answer(*(text[at : at + 50] for at in range(0, len(text), 50)))
    with processor_seconds(5):
        assert clipped(made) is not None


def test_long_keys_over_many_leaves_do_not_take_the_square_of_the_text() -> None:
    text = '{"' + "k" * 50_000 + '":[' + "1," * 50_000
    with processor_seconds(5):
        places = clipped(answer(*(text[at : at + 50] for at in range(0, len(text), 50))))
    assert places is not None
    assert sum(len(place.pointer) for place in places) < 2_000_000


# --- in the flow

PLAN = plan_of(RECEIPT)


def auditing(fraction: float = 1.0, seed: int = 0, **values: Any) -> ExtractConfig:
    return config(**values).model_copy(update={"audit": AuditConfig(fraction=fraction, seed=seed)})


def extracted(engine: Answers, asked: ExtractConfig) -> Any:
    return asyncio.run(extract(document(), PLAN, engine, asked))


def whole() -> Completion:
    return answer(*json.dumps(GOOD, separators=(",", ":")))


def test_an_audit_changes_nothing_else_of_an_outcome() -> None:
    asked, plain = Answers(whole()), Answers(whole())
    with_it, without = extracted(asked, auditing()), extracted(plain, config())
    assert with_it.audit == "done" and with_it.clipped
    assert (without.audit, without.clipped) == ("", ())
    assert dataclasses.replace(with_it, audit="", clipped=()) == without
    assert dataclasses.replace(asked.samplings[0], audit=0) == plain.samplings[0]
    assert (asked.samplings[0].audit, plain.samplings[0].audit) == (4096, 0)


def test_only_the_first_answer_is_audited() -> None:
    wrong = dataclasses.replace(answer("{", "}"), audit="done")
    engine = Answers(wrong, whole())
    outcome = extracted(engine, auditing())
    assert [sampling.audit for sampling in engine.samplings] == [4096, 0]
    assert outcome.status == "valid"
    assert [(place.pointer, place.tokens) for place in outcome.clipped] == [("", 2)]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (dataclasses.replace(answer("{}"), audit="busy", unmasked=()), "busy"),
        (dataclasses.replace(answer("{}"), audit="", unmasked=()), "unavailable"),
        (dataclasses.replace(answer("{}"), token_ends=(1, 2, 3)), "failed"),
        (dataclasses.replace(answer("{}"), logprobs=({0: "x"},)), "failed"),  # type: ignore[dict-item]
        (Completion("", "abort", True), "failed"),
        (Completion("", "error", True, error="engine_failed"), "failed"),
    ],
)
def test_an_audit_that_did_not_come_is_told_and_costs_nothing(first: Completion, told: str) -> None:
    outcome = extracted(Answers(first, whole()), auditing(max_engine_failures=1))
    assert (outcome.audit, outcome.clipped, outcome.status) == (told, (), "valid")


def test_the_same_documents_are_audited_on_every_run_and_others_under_another_seed() -> None:
    documents = [Document(f"d{n}", "", "s", "receipt@1") for n in range(4000)]
    chosen = [[bool(audited(one, auditing(0.02, seed))) for one in documents] for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert 40 < sum(chosen[0]) < 130
    of_another = [bool(audited(dataclasses.replace(one, schema="other@1"), auditing(0.02))) for one in documents]
    assert of_another != chosen[0]


def test_nobody_is_audited_without_a_fraction_or_a_constraint_and_everybody_with_one() -> None:
    free = auditing().model_copy(update={"sampling": auditing().sampling.model_copy(update={"constrained": False})})
    assert (audited(document(), config()), audited(document(), free)) == (0, 0)
    assert audited(document(), auditing()) == 4096
