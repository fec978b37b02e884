"""A candidate without Ray: its job, its documents, its verdict, and that the run it is held against stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from canary_runs import BADLY, WELL, commit_candidate, content, job_of, main_run

from pipeline.canary import VERDICT, candidate_of, try_candidate
from pipeline.errors import InputError, JobFileError, OutputError
from pipeline.job import JobConfig
from pipeline.jobfile import load_job, relative_paths
from pipeline.jobplacement import EventsConfig
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.sampled import Sample, Sampled
from pipeline.runtime.store import open_store


def quiet(_event: str, _value: object) -> None: ...


@pytest.mark.parametrize(("answer", "verdict"), [(WELL, "promote"), (BADLY, "roll_back")])
def test_a_candidate_is_judged_once_and_the_run_stays_as_it_was(tmp_path: Path, answer: Any, verdict: str) -> None:
    job = job_of(tmp_path)
    before = content(main_run(job).where)
    run = commit_candidate(job, answer)
    judged = try_candidate(job, main_run(job), quiet)
    assert (judged.verdict, judged.error, judged.before) == (verdict, None, False)
    assert verdict == "promote" or any("truncat" in reason for reason in judged.reasons)
    kept = json.loads((run / VERDICT).read_text())
    assert kept == json.loads((run.parent / VERDICT).read_text()) == json.loads(json.dumps(judged.told))
    assert kept["of"] == main_run(job).where and kept["run"] == str(run) and 10 < kept["documents"] < 60
    again = try_candidate(job, main_run(job), quiet)
    assert again.before and again.verdict == verdict and json.loads(json.dumps(again.told)) == kept
    assert content(main_run(job).where) == before


def test_other_rules_judge_the_same_run_anew(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    commit_candidate(job, WELL)
    try_candidate(job, main_run(job), quiet)
    assert job.canary is not None
    stricter = job.canary.model_copy(update={"gate": job.canary.gate.model_copy(update={"min_documents": 1000})})
    judged = try_candidate(job.model_copy(update={"canary": stricter}), main_run(job), quiet)
    assert not judged.before and judged.verdict == "hold"
    assert any("min_documents" in reason for reason in judged.reasons)


@pytest.mark.parametrize("torn", [b"{", b"[]"])
def test_a_verdict_that_was_not_written_to_its_end_is_made_anew(tmp_path: Path, torn: bytes) -> None:
    job = job_of(tmp_path)
    run = commit_candidate(job, BADLY)
    first = try_candidate(job, main_run(job), quiet)
    (run / VERDICT).write_bytes(torn)
    (run.parent / VERDICT).unlink()
    again = try_candidate(job, main_run(job), quiet)
    assert not again.before and {**again.told, "judged": ""} == {**first.told, "judged": ""}
    assert (run / VERDICT).read_bytes() == (run.parent / VERDICT).read_bytes()


def test_the_log_of_the_job_tells_the_verdict_once_and_every_failure(tmp_path: Path) -> None:
    events = {"path": str(tmp_path / "events")}
    job = job_of(tmp_path).model_copy(update={"events": EventsConfig(**events)})
    commit_candidate(job, BADLY)
    for _ in range(2):
        try_candidate(job, main_run(job), quiet)
    try_candidate(job_with(job, share=1e-9), main_run(job), quiet)
    lines = [json.loads(line) for path in (tmp_path / "events").glob("t-*") for line in path.read_text().splitlines()]
    found = [(one["event"], one.get("verdict"), one.get("exit_code")) for one in lines if "canary" in one["event"]]
    assert found == [("canary_judged", "roll_back", None), ("canary_failed", None, 3)]


def test_the_share_hangs_on_seed_and_id_alone_and_a_larger_one_holds_the_smaller(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    ids = [f"d{n}" for n in range(4000)]
    small, large = ({one for one in ids if Sample(store, share, 7).holds(one)} for share in (0.05, 0.2))
    assert small < large and 140 < len(small) < 260 and 700 < len(large) < 900
    assert all(Sample(store, 1.0, 7).holds(one) for one in ids)
    assert {one for one in ids if Sample(store, 0.05, 8).holds(one)} != small


def test_a_candidate_with_no_usable_schema_is_rolled_back(tmp_path: Path) -> None:
    job = job_of(tmp_path, schemas=str(tmp_path / "nowhere"))
    before = content(main_run(job).where)
    judged = try_candidate(job, main_run(job), quiet)
    assert judged.verdict == "roll_back" and judged.error is not None and judged.error.exit_code == 4
    kept = json.loads((tmp_path / "out" / "canary" / VERDICT).read_text())
    assert (kept["verdict"], kept["error"], kept["exit_code"]) == ("roll_back", "SchemaError", 4)
    assert content(main_run(job).where) == before


def test_what_is_no_fault_of_the_candidate_holds_it(tmp_path: Path) -> None:
    job = job_of(tmp_path, share=1e-9)
    judged = try_candidate(job, main_run(job), quiet)
    assert judged.verdict == "hold" and isinstance(judged.error, InputError)
    assert "larger share" in judged.reasons[0]
    (tmp_path / "in.jsonl").unlink()
    assert try_candidate(job_with(job, share=0.5), main_run(job), quiet).verdict == "hold"


def job_with(job: JobConfig, **canary: Any) -> JobConfig:
    assert job.canary is not None
    return job.model_copy(update={"canary": job.canary.model_copy(update=canary)})


def test_an_input_that_is_read_otherwise_is_no_longer_the_runs(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    other = job.model_copy(update={"input": job.input.model_copy(update={"text_column": "body"})})
    judged = try_candidate(other, main_run(job), quiet)
    assert judged.verdict == "hold" and "text_column" in judged.reasons[0]


def test_there_has_to_be_a_committed_run(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    judged = try_candidate(job, open_store(str(tmp_path / "out" / "run=0")), quiet)
    assert judged.verdict == "hold" and isinstance(judged.error, OutputError)


def test_the_candidate_is_the_job_but_for_what_the_canary_says(tmp_path: Path) -> None:
    job = job_of(tmp_path, schemas="next", sampling={"constrained": False, "temperature": 0.3})
    found = candidate_of(job)
    assert found.engine == job.engines["next"] and found.schemas == "next" and found.canary is None
    assert found.sampling == job.sampling.model_copy(update={"constrained": False, "temperature": 0.3})
    assert (found.name, found.output) == ("t.canary", f"{job.output}/canary")
    same = {name: getattr(found, name) == getattr(job, name) for name in type(job).model_fields}
    assert {name for name, alike in same.items() if not alike} == {
        *("name", "engine", "schemas", "sampling", "output", "canary"),
    }
    long = job.model_copy(update={"name": "x" * 64})
    assert JobConfig.model_validate(candidate_of(long).model_dump(by_alias=True)).name.endswith(".canary")


BASE = {"name": "t", "input": {"path": "in.jsonl", "schema": "receipt@1"}, "output": "out"}
BASE |= {"engine": {"engine": "sampler"}, "engines": {"large": {"engine": "sampler", "seed": 1}}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"canary": {}}, "the candidate is the job itself"),
        ({"canary": {"gate": {"min_documents": 5}}}, "the candidate is the job itself"),
        ({"canary": {"engine": "larg"}}, "canary.engine: `larg` is not in `engines`; did you mean `large`?"),
        ({"canary": {"engine": "x"}, "engines": {}}, "which names none"),
        (
            {"canary": {"engine": "large"}, "placement": {"kind": "serve"}},
            "canary.engine: under `placement.kind: serve`",
        ),
        ({"canary": {"engine": "large", "share": 0}}, "canary.share"),
        ({"canary": {"sampling": {"max_tokens": 9000}}}, "leaves no room for a prompt"),
        ({"canary": {"engine": "large", "gates": {}}}, "did you mean `gate`?"),
        ({"canary": {"engine": "large", "gate": {"max_valid_dro": 1}}}, "did you mean `max_valid_drop`?"),
    ],
)
def test_a_canary_that_cannot_be_tried_is_refused_with_the_job(tmp_path: Path, changes: Any, words: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump({**BASE, **changes}))
    with pytest.raises(JobFileError) as caught:
        load_job(path)
    assert words in str(caught.value)


def test_the_candidates_schemas_lie_beside_the_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump({**BASE, "canary": {"schemas": "next"}}))
    canary = load_job(path).canary
    assert canary is not None and canary.schemas == str(tmp_path / "next")
    assert relative_paths(path)["canary.schemas"] == str(tmp_path / "next")


def test_a_canary_is_not_in_the_identity_of_the_run(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    source = Sampled(candidate_of(job), Sample(main_run(job), 1.0, 0), open_store(job.output))
    found = source.scan(None)
    bare = job.model_copy(update={"canary": None})
    assert identity_of(job, found, {}) == identity_of(bare, found, {})
    assert source.told().startswith("1 of the 60 documents of ")
