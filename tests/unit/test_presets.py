"""Presets fill in what a job leaves open, and no more; the page shows the table that the program uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from support import Answers, completion, document, plan_of

from pipeline.flow import extract
from pipeline.job import ExtractConfig, PolicyConfig, RetryConfig
from pipeline.jobpolicy import PRESETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "policy.md"


def effective(**sections: Any) -> dict[str, Any]:
    dumped = ExtractConfig.model_validate(sections).model_dump(mode="json")
    return {**dumped["policy"], "max_attempts": dumped["retry"]["max_attempts"]}


def test_every_preset_is_in_the_table_and_the_default_changes_nothing() -> None:
    assert set(get_args(PolicyConfig.model_fields["preset"].annotation)) == set(PRESETS)
    assert effective() == effective(policy={"preset": "extraction"})
    assert ExtractConfig() == ExtractConfig.model_validate({"policy": {"preset": "extraction"}})


@pytest.mark.parametrize("name", PRESETS)
def test_what_a_preset_means_stands_in_the_effective_config(name: str) -> None:
    preset, found = PRESETS[name], effective(policy={"preset": name})
    assert {key: found[key] for key in ("degraded", "abstain", "ground", "max_attempts")} == {
        "degraded": preset.degraded,
        "abstain": preset.abstain,
        "ground": preset.ground,
        "max_attempts": preset.max_attempts,
    }
    assert PolicyConfig(preset=name).degraded == preset.degraded  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PRESETS)
def test_keys_of_the_job_win_and_a_written_config_reads_back_the_same(name: str) -> None:
    own = {"preset": name, "abstain": "nullable", "ground": "block", "degraded": False}
    found = effective(policy=own, retry={"max_attempts": 7})
    assert {key: found[key] for key in own} == own
    assert found["max_attempts"] == 7
    config = ExtractConfig.model_validate({"policy": {"preset": name}, "retry": {"deadline_seconds": 9}})
    assert config.retry.max_attempts == PRESETS[name].max_attempts
    assert ExtractConfig.model_validate(config.model_dump()) == config
    assert ExtractConfig.model_validate(config.model_dump(mode="json")) == config
    built = ExtractConfig(policy=PolicyConfig(preset=name), retry=RetryConfig(deadline_seconds=9))  # type: ignore[arg-type]
    assert built == config


@pytest.mark.parametrize("name", PRESETS)
def test_degraded_records_are_never_written_where_a_wrong_value_has_side_effects(name: str) -> None:
    assert PRESETS[name].side_effects == (not PRESETS[name].degraded)
    asked = {"policy": {"preset": name, "degraded": True}}
    if PRESETS[name].side_effects:
        with pytest.raises(ValueError, match="side effects"):
            ExtractConfig.model_validate(asked)
    else:
        assert effective(**asked)["degraded"]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.asyncio
async def test_a_cut_answer_is_kept_in_part_only_where_that_does_no_harm(name: str) -> None:
    config = ExtractConfig.model_validate({"policy": {"preset": name}})
    cut = Answers(completion('{"vendor": "Ann & Co", "total": 19.9, "li', "length"))
    outcome = await extract(document(), plan_of(), cut, config)
    assert outcome.status == ("rejected" if PRESETS[name].side_effects else "degraded")
    assert len(outcome.attempts) <= PRESETS[name].max_attempts


@pytest.mark.parametrize("broken", [{"policy": {"preset": "sqll"}}, {"policy": 5}, {"policy": None}, {"retry": None}])
def test_what_is_no_preset_or_no_mapping_is_refused_as_such(broken: Any) -> None:
    with pytest.raises(ValueError):
        ExtractConfig.model_validate(broken)


def test_the_page_shows_the_table_of_the_program() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `(\w+)` \| `(\w+)` \| (\d+) \| (.+) \|$", PAGE.read_text("utf-8"), re.M)
    told = [(name, *map(str, rest)) for name, *rest in rows]
    assert told == [
        (name, "yes" if each.degraded else "no", each.abstain, each.ground, str(each.max_attempts), each.why)
        for name, each in PRESETS.items()
    ]
