"""Formats are checked in this process, or nothing is judged in it: a check whose package is missing passes all."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from pipeline.errors import EngineError
from pipeline.schema.formats import EXACT, OUTLINES
from pipeline.steps import judge as judge_module


def test_a_process_that_does_not_check_formats_refuses_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_module.check_formats.cache_clear()
    monkeypatch.setitem(judge_module.BAD, "date", "2024-02-29")
    with pytest.raises(EngineError, match="accepts a bad date"):
        judge_module.check_formats()
    monkeypatch.undo()
    judge_module.check_formats()


@pytest.mark.parametrize("name", sorted({*EXACT, *OUTLINES, *Draft202012Validator.FORMAT_CHECKER.checkers}))
def test_every_format_that_is_checked_is_among_those_that_a_process_is_tried_with(name: str) -> None:
    assert name in judge_module.BAD
