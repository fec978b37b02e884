"""Verdicts from matchers whose faults are known, and from the two real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pipeline.engines.draw import Draw
from pipeline.engines.draw import Vocabulary as Classes
from pipeline.engines.grammar import Grammar
from pipeline.engines.models import load_tokenizer, resolve, vocabulary_size
from pipeline.engines.vocabulary import Vocabulary
from pipeline.errors import SchemaError
from pipeline.schema.probe.found import Instances
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.verdict import Report, is_allowed, probe
from pipeline.schema.probe.walks import walk, walks
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import Left
from pipeline.schema.validator import validator_of

BODY = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "maxLength": 4},
        "day": {"type": "string", "pattern": "^[0-9]{2}$"},
        "n": {"type": "integer", "maximum": 9},
    },
    "required": ["code"],
    "additionalProperties": False,
}
CODE, DAY, MAXIMUM = ("/properties/code", "maxLength"), ("/properties/day", "pattern"), ("/properties/n", "maximum")
END = 256


class Texts:
    """A matcher over bytes that lets exactly the texts pass which a judge accepts, given all that will be tried."""

    def __init__(self, texts: Iterable[str], accepts: Callable[[Any], bool], error: str = "") -> None:
        self._texts = [text.encode() for text in texts if accepts(json.loads(text))]
        self._so_far = b""
        self._error = error

    def mask(self) -> list[int]:
        bits = [0] * 9
        size = len(self._so_far)
        for text in self._texts:
            if text.startswith(self._so_far):
                token = text[size] if len(text) > size else END
                bits[token >> 5] |= 1 << (token & 31)
        return bits

    def accept(self, token_id: int) -> bool:
        if not is_allowed(self.mask(), token_id):
            return False
        self._so_far += bytes([token_id])
        return True

    def finished(self) -> bool:
        return self._so_far in self._texts

    def error(self) -> str:
        return self._error


@pytest.fixture(scope="module")
def found() -> Instances:
    return instances(BODY, read(BODY), 10)


def probed(found: Instances, body: Any, left: tuple[Left, ...] = (), error: str = "") -> Report:
    """What is found of BODY where the matcher is exact for another body."""
    texts = [valid.text for valid in found.valid]
    texts += [violation.text for violations in found.violations.values() for violation in violations]
    validator = validator_of(body)
    return probe(lambda: Texts(texts, validator.is_valid, error), lambda text: list(text.encode()), found, left, 60)


def changed(name: str, schema: Any) -> dict[str, Any]:
    return {**BODY, "properties": {**BODY["properties"], name: schema}}  # type: ignore[dict-item]


def test_an_exact_matcher_enforces_everything(found: Instances) -> None:
    report = probed(found, BODY)
    assert {verdict.kind for verdict in report.verdicts.values()} == {"enforced"}
    assert set(report.verdicts) == set(found.sites)
    assert (report.lost, report.leaks, report.refused, report.complete) == ((), (), "", True)
    assert 0 < report.mask_quantile(0.5) <= report.mask_quantile(0.999) < 1


def test_a_dropped_keyword_is_a_leak_unless_it_was_announced(found: Instances) -> None:
    loose = changed("code", {"type": "string"})
    report = probed(found, loose)
    assert [site for site, verdict in report.verdicts.items() if verdict.kind == "dropped"] == [CODE]
    assert len(json.loads(report.verdicts[CODE].evidence)["code"]) > 4
    assert report.leaks and all(leak.sites == (CODE,) for leak in report.leaks) and not report.lost
    assert not probed(found, loose, (Left(*CODE, "not held"),)).leaks


@pytest.mark.parametrize(
    ("name", "schema", "site"),
    [
        ("code", {"type": "string", "maxLength": 3}, CODE),
        ("n", {"type": "integer", "maximum": 8}, MAXIMUM),
        ("day", {"type": "string", "pattern": "^[0-4]{2}$"}, DAY),
        ("day", False, DAY),
    ],
)
def test_what_is_lost_is_blamed_on_the_site_that_is_too_tight(
    found: Instances, name: str, schema: Any, site: tuple[str, str]
) -> None:
    report = probed(found, changed(name, schema))
    tight = {site for site, verdict in report.verdicts.items() if verdict.kind == "over_tight"}
    assert site in tight and {pointer for pointer, _ in tight} == {site[0]}
    assert report.lost and all(validator_of(BODY).is_valid(json.loads(text)) for text in report.lost)


def test_rejections_prove_nothing_where_nothing_is_accepted(found: Instances) -> None:
    report = probed(found, False)
    assert {verdict.kind for verdict in report.verdicts.values()} == {"unproven"}
    assert set(report.lost) == {valid.text for valid in found.valid}


def test_a_matcher_with_an_error_accepts_nothing(found: Instances) -> None:
    assert set(probed(found, BODY, error="broken").lost) == {valid.text for valid in found.valid}


def test_a_refusal_is_told_in_the_words_of_the_back_end(found: Instances) -> None:
    def refuse() -> Any:
        raise SchemaError("made-up 1.0 refuses the schema: no objects")

    report = probe(refuse, lambda text: [], found)
    assert {verdict.kind for verdict in report.verdicts.values()} == {"refused"}
    assert "no objects" in report.refused and "no objects" in report.verdicts[CODE].evidence


def test_what_there_was_no_time_for_is_unproven(found: Instances) -> None:
    report = probe(lambda: Texts([], bool), lambda text: list(text.encode()), found, (), 0)
    assert not report.complete and {verdict.kind for verdict in report.verdicts.values()} == {"unproven"}


def test_a_text_that_only_other_tokens_spell_is_not_lost(found: Instances) -> None:
    """Token 300 stands for `{"`: the matcher knows it in its text, but never allows it."""
    texts = [valid.text for valid in found.valid]

    def encode(text: str) -> list[int]:
        return [300, *text[2:].encode()] if text.startswith('{"') else list(text.encode())

    report = probe(lambda: Texts(texts, validator_of(BODY).is_valid), encode, found, (), 60)
    assert not report.lost and set(report.respelled) == set(texts)


class Chain:
    """A matcher that allows one token in each state; a state without one is a dead end."""

    def __init__(self, *tokens: int, finished: bool = True) -> None:
        self._tokens, self._finished, self._at = tokens, finished, 0

    def mask(self) -> list[int]:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        return [0 if token is None else 1 << token]

    def accept(self, token_id: int) -> bool:
        self._at += 1
        return True

    def finished(self) -> bool:
        return self._finished

    def error(self) -> str:
        return ""


def first(mask: Any) -> int | None:
    return next((token for token in range(32) if is_allowed(mask, token)), None)


def test_walks_tell_how_they_ended() -> None:
    assert walk(Chain(1, 2, 9), first, {9}).end == "finished"
    assert walk(Chain(1, 2, 9, finished=False), first, {9}).end == "dead_end"
    assert walk(Chain(1, 2, finished=False), first, {9}).end == "dead_end"
    assert walk(Chain(*[1] * 50, finished=False), first, {9}, most=20).end == "cut"


# --- the real matchers


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    model = resolve("embedded")
    return Vocabulary(load_tokenizer(model), vocabulary_size(model))


def real(vocabulary: Vocabulary, backend: Any, body: dict[str, Any]) -> Report:
    grammar = Grammar(vocabulary, backend, True, vocabulary.size)
    text = json.dumps(body)

    def encode(answer: str) -> list[int]:
        ids: list[int] = vocabulary.tokenizer.encode(answer, add_special_tokens=False, split_special_tokens=True)
        return ids

    return probe(lambda: grammar.matcher(text), encode, instances(body, read(body), 5), (), 30)


_WHOLE = {"type": "object", "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("backend", "schema", "keyword", "kind"),
    [
        ("xgrammar", {"type": "integer", "minimum": 3, "maximum": 20}, "minimum", "enforced"),
        ("guidance", {"type": "integer", "minimum": 3, "maximum": 20}, "minimum", "enforced"),
        ("xgrammar", {"type": "string", "pattern": "b"}, "pattern", "over_tight"),
        ("guidance", {"type": "string", "pattern": "b"}, "pattern", "enforced"),
        ("xgrammar", {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, "uniqueItems", "dropped"),
        ("guidance", {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, "uniqueItems", "refused"),
        ("xgrammar", {"type": "string", "maxLength": 9}, "maxLength", "over_tight"),
    ],
)
def test_the_probe_finds_what_is_known_of_the_back_ends(
    vocabulary: Vocabulary, backend: str, schema: dict[str, Any], keyword: str, kind: str
) -> None:
    report = real(vocabulary, backend, {**_WHOLE, "properties": {"a": schema}})
    assert report.verdicts["/properties/a", keyword].kind == kind


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
def test_random_walks_of_the_real_matchers_reach_the_end(vocabulary: Vocabulary, backend: Any) -> None:
    text = json.dumps({**BODY, "required": ["code", "day", "n"]})
    grammar = Grammar(vocabulary, backend, True, vocabulary.size)
    classes = Classes(vocabulary.tokenizer, vocabulary.size, vocabulary.tokenizer.all_special_ids)
    ends, made = walks(lambda: grammar.matcher(text), lambda seed: Draw(classes, seed).choose, classes.end_ids, 20)
    assert ends["finished"] == 20
    assert all(json.loads(vocabulary.tokenizer.decode(list(one.tokens)))["code"] is not None for one in made)
