from __future__ import annotations

from typing import Any

import pytest

from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import Grammar
from pipeline.errors import SchemaError

SIZE = 49152
BOTH = pytest.mark.parametrize("backend", ["xgrammar", "guidance"])


@pytest.fixture(scope="module")
def grammars(chat: ChatTokenizer) -> Any:
    made: dict[Any, Grammar] = {}

    def get(backend: Any, compact: bool = True) -> Grammar:
        if (backend, compact) not in made:
            made[backend, compact] = Grammar(chat.tokenizer, backend, compact, SIZE)
        return made[backend, compact]

    return get


@BOTH
def test_it_walks_to_the_end_of_the_only_answer(grammars: Any, chat: ChatTokenizer, backend: str) -> None:
    matcher = grammars(backend).matcher('{"const":{"a":[1,true]}}')
    for token in chat.text_ids('{"a":[1,true]}'):
        assert not matcher.finished()
        assert token in matcher.allowed()
        assert matcher.accept(token)
    assert matcher.finished()
    assert list(matcher.allowed()) == [chat.tokenizer.eos_token_id]
    assert matcher.accept(chat.tokenizer.eos_token_id)
    assert matcher.finished()
    assert matcher.error() == ""


@BOTH
def test_an_illegal_token_is_refused(grammars: Any, chat: ChatTokenizer, backend: str) -> None:
    matcher = grammars(backend).matcher('{"type":"integer"}')
    (letter,) = chat.text_ids("x")
    assert letter not in matcher.allowed()
    assert not matcher.accept(letter)
    assert not matcher.finished()


@BOTH
@pytest.mark.parametrize("compact", [True, False])
def test_blanks_are_legal_only_if_not_compact(grammars: Any, chat: ChatTokenizer, backend: str, compact: bool) -> None:
    matcher = grammars(backend, compact).matcher(
        '{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]}'
    )
    accepted = [matcher.accept(token) for token in chat.text_ids('{"a": null}')]
    assert all(accepted) is not compact


@BOTH
@pytest.mark.parametrize(
    "schema",
    ['{"type":"nosuch"}', '{"type":', "[]", '{"$ref":"#/nope"}', '{"type":"string","minLength":5,"maxLength":1}'],
)
def test_refusals_carry_the_librarys_words_and_no_paths(grammars: Any, backend: str, schema: str) -> None:
    for _ in range(2):  # the second time from memory
        with pytest.raises(SchemaError, match=f"{backend} .* refuses the schema: .+") as caught:
            grammars(backend).matcher(schema)
        assert ".cpp" not in str(caught.value)
        assert "backtrace" not in str(caught.value)
    assert grammars(backend).knows(schema)


def test_guidances_silent_failure_is_an_error(grammars: Any) -> None:
    with pytest.raises(SchemaError, match="panic"):
        grammars("guidance").matcher('{"type":"array","minItems":1000,"maxItems":100000}')


@BOTH
def test_matchers_of_one_schema_are_independent(grammars: Any, chat: ChatTokenizer, backend: str) -> None:
    grammar = grammars(backend)
    schema = '{"enum":["aa","bb"]}'
    one, other = grammar.matcher(schema), grammar.matcher(schema)
    assert grammar.knows(schema)
    start = list(other.allowed())
    assert one.accept(chat.text_ids('"')[0])
    assert list(other.allowed()) == start
