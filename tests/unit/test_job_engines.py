"""Several engines in a job: where they may stand, and what they have to agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.errors import JobFileError
from pipeline.job import JobConfig
from pipeline.jobfile import load_job

SAMPLER = {"engine": "sampler", "backend": "xgrammar"}
BASE = {"name": "t", "input": {"path": "in.jsonl", "schema": "receipt@1"}, "output": "out", "engine": SAMPLER}


def job(**changes: Any) -> JobConfig:
    return JobConfig.model_validate({**BASE, **changes})


def saved(folder: Path, content: Any, name: str = "job.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def climbing(engine: str, **config: Any) -> dict[str, Any]:
    return {
        "engines": {"large": {**SAMPLER, **config}},
        "retry": {"max_attempts": 3, "ladder": [{}, {"engine": engine}]},
    }


def test_engines_are_given_inline_or_as_files_and_their_paths_are_placed(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    saved(tmp_path / "engines", {"engine": "recorded", "recording": "tape"}, "e.yaml")
    engines = {"file": "engines/e.yaml", "inline": {"engine": "recorded", "recording": "tape"}}
    loaded = load_job(saved(tmp_path, {**BASE, "engines": engines}))
    assert loaded.engines["file"].recording == str(tmp_path / "engines" / "tape")
    assert loaded.engines["inline"].recording == str(tmp_path / "tape")
    assert loaded.other_engines() == {}


def test_an_engine_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match=r"nope\.yaml"):
        load_job(saved(tmp_path, {**BASE, "engines": {"x": "nope.yaml"}}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (climbing("larg"), "retry.ladder.1.engine: `larg` is not in `engines`; did you mean `large`?"),
        (climbing("zzz"), "known there: large"),
        ({"retry": {"ladder": [{"engine": "x"}]}}, "`x` is not in `engines`; which names none"),
        (climbing("large", backend="guidance"), "engines.large.backend"),
        (climbing("large", compact_json=False), "engines.large.compact_json"),
        (climbing("large", max_model_len=300), "engines.large: sampling.max_tokens (512) leaves no room"),
        (
            {"retry": {"ladder": [{}, {"temperature": 1}]}},
            "it has 2 rungs, and max_attempts (2) allows 1",
        ),
        ({"engines": {"": SAMPLER}}, "engines"),
        ({"engines": {"a b": SAMPLER}}, "engines"),
        ({"sampling": {"max_tokens": 8192}}, "sampling.max_tokens (8192) leaves no room"),
    ],
)
def test_what_cannot_work_is_refused_with_the_file(tmp_path: Path, changes: Any, words: str) -> None:
    with pytest.raises(JobFileError) as caught:
        load_job(saved(tmp_path, {**BASE, **changes}))
    assert words in str(caught.value)
    assert "job.yaml" in str(caught.value)


def test_a_pinned_back_end_beside_an_automatic_one_is_refused() -> None:
    with pytest.raises(ValueError, match="write `auto`, or the same"):
        job(engine={"engine": "sampler"}, **climbing("large"))
    assert job(engine={"engine": "sampler"}, **climbing("large", backend="auto")).other_engines()


def test_environments_of_one_process_may_not_contradict() -> None:
    def vllm(**environment: str) -> dict[str, Any]:
        return {"engine": "vllm", "environment": environment}

    ladder = {"retry": {"ladder": [{"engine": "b"}]}}
    assert job(engine=vllm(A="1"), engines={"b": vllm(A="1", B="2")}, **ladder)
    with pytest.raises(ValueError, match=r"engines\.b\.environment\.A"):
        job(engine=vllm(A="1"), engines={"b": vllm(A="2")}, **ladder)


def test_an_engine_that_no_rung_names_is_neither_checked_nor_used() -> None:
    unused = job(engines={"old": {**SAMPLER, "backend": "guidance", "max_model_len": 128}})
    assert unused.other_engines() == {}


def test_the_context_is_that_of_the_engine_that_answers() -> None:
    made = job(**climbing("large", max_model_len=700))
    assert (made.context_of(""), made.context_of("large")) == (8192, 700)
    assert job(engine={"engine": "recorded", "recording": "r"}).context_of("") is None
