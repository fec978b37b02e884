"""A document that shows nothing is rejected before any model could invent something for it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Answers, codes, extracted

from pipeline.job import InputConfig
from pipeline.runtime.input import read_unit, scan
from pipeline.runtime.input.documents import shows_nothing
from tests.bounds import processor_seconds

INVISIBLE = {
    "white space": " \t\r\n\x0b\x0c\x85\xa0\u2003\u3000\u2028",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff\u00ad",
    "bidi": "\u200e\u200f\u202a\u202e\u2066\u2069\u061c",
    "controls": "\x01\x07\x1b\x7f\x80\x9f",
    "combining": "\u0301\u0308\u20dd\ufe0f\u0903\u034f",
    "fillers": "\u115f\u1160\u3164\uffa0\u2800\ufffc",
    "tags": "\U000e0020\U000e007f",
    "replaced": "\x00\ud800\ufffd",
}


@pytest.mark.parametrize("kind", [*INVISIBLE, "all"])
def test_no_visible_character_is_no_document(tmp_path: Path, kind: str) -> None:
    text = "".join(INVISIBLE.values()) if kind == "all" else INVISIBLE[kind]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "a", "text": text}))
    config = InputConfig.model_validate({"path": str(tmp_path / "in.jsonl"), "schema": "receipt@1"})
    (document,) = read_unit(scan(config, 5).units[0], config)
    assert "document_empty" in codes(document)
    engine = Answers({"vendor": "Example Ltd", "total": 1})
    assert extracted(engine, doc=document).status == "rejected"
    assert not engine.prompts


@pytest.mark.parametrize("text", ["-", "0", "é", "e\u0301", "数", "ا", "क्", "🧾", "\ue000", "\u200b.\u200b", "\ufeff1"])
def test_one_visible_character_is_a_document(text: str) -> None:
    assert not shows_nothing(text)
    assert not shows_nothing("\u200b" * 1000 + text)


@given(st.text())
def test_letters_digits_and_punctuation_are_visible(text: str) -> None:
    fillers = set(INVISIBLE["fillers"])
    seen = any(unicodedata.category(character)[0] in "LNP" and character not in fillers for character in text)
    assert not (seen and shows_nothing(text))


def test_a_large_document_is_judged_fast() -> None:
    with processor_seconds(3):
        for text in ("\u200b" * 5_000_000, " " * 5_000_000 + "x", "word " * 1_000_000):
            shows_nothing(text)
