from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.engines.recorded import RecordedEngine, RecordingEngine
from pipeline.errors import EngineError
from pipeline.job import RecordedConfig
from pipeline.records import Completion
from pipeline.schema.plan import DecodingPlan


class Numbered:
    """Answers with a running number, a lone surrogate, token ids and scores: all that a line must carry."""

    def __init__(self) -> None:
        self.count = 0

    async def generate(self, prompt: Any, plan: DecodingPlan, sampling: Any) -> Completion:
        self.count += 1
        return Completion(
            f'{{"n":{self.count}}} \ud800 ü',
            "stop",
            True,
            engine="numbered",
            plan_digest=plan.digest,
            prompt_tokens=7,
            seconds=0.25,
            token_ids=(5, 6),
            logprobs=({5: -0.5}, {6: -1.5, 7: float("-inf")}),
            token_ends=(3, 9),
            refusal="no \x00",
            reasoning="because",
            audit="done",
            audit_seconds=0.5,
            unmasked=((-0.75, 0.25), (float("-inf"), 0.0)),
        )

    async def start(self, plans: Any) -> None: ...

    async def close(self) -> None: ...


def player(path: Path) -> RecordedEngine:
    return RecordedEngine(RecordedConfig(engine="recorded", recording=str(path)))


@pytest.mark.asyncio
async def test_replay_equals_the_recorded_run(xgrammar_engine: Any, plan_of: Any, ask: Any, tmp_path: Path) -> None:
    plan = plan_of()
    recorder = RecordingEngine(xgrammar_engine, tmp_path)
    users = [f"document {number}" for number in range(5)]
    live = [await ask(recorder, plan, user, token_ids=True, logprobs=0) for user in users]
    played = player(tmp_path)
    await played.start([plan])
    for user, completion in reversed(list(zip(users, live, strict=True))):
        answer = await ask(played, plan, user)
        assert answer == replace(completion, engine=f"recorded:{completion.engine}")
        assert answer.constrained


@pytest.mark.asyncio
async def test_every_field_survives(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    recorder = RecordingEngine(Numbered(), tmp_path)
    live = await ask(recorder, plan_of())
    await recorder.close()
    assert await ask(player(tmp_path), plan_of()) == replace(live, engine="recorded:numbered")


@pytest.mark.asyncio
async def test_a_recording_of_an_older_version_plays(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    live = await ask(RecordingEngine(Numbered(), tmp_path), plan_of())
    (file,) = tmp_path.glob("*.jsonl")
    line = json.loads(file.read_text())
    for name in ("token_ends", "refusal", "token_ids", "logprobs", "audit", "audit_seconds", "unmasked"):
        del line["completion"][name]
    file.write_text(json.dumps(line) + "\n")
    played = await ask(player(file), plan_of())
    assert (played.text, played.token_ends, played.refusal) == (live.text, (), "")


@pytest.mark.asyncio
async def test_answers_to_one_prompt_play_in_order_and_the_last_repeats(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    plan, inner = plan_of(), Numbered()
    for _ in range(2):  # two recorders, two files, one recording
        recorder = RecordingEngine(inner, tmp_path)
        await ask(recorder, plan)
        await recorder.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    played = player(tmp_path)
    await played.start([plan])
    assert [(await ask(played, plan)).text[:7] for _ in range(3)] == ['{"n":1}', '{"n":2}', '{"n":2}']


@pytest.mark.asyncio
async def test_a_single_file_is_a_recording(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    await ask(RecordingEngine(Numbered(), tmp_path), plan_of())
    (file,) = tmp_path.glob("*.jsonl")
    assert (await ask(player(file), plan_of())).prompt_tokens == 7


@pytest.mark.asyncio
async def test_what_was_not_recorded_is_missing(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    await ask(RecordingEngine(Numbered(), tmp_path), plan_of(), "one")
    answer = await ask(player(tmp_path), plan_of(), "two")
    assert (answer.finish_reason, answer.error, answer.text) == ("error", "recording_missing", "")


@pytest.mark.asyncio
async def test_a_changed_plan_is_stale(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    old, new = plan_of(), plan_of({"type": "object"})
    await ask(RecordingEngine(Numbered(), tmp_path), old)
    answer = await ask(player(tmp_path), new)
    assert (answer.finish_reason, answer.error) == ("error", "recording_stale")
    assert old.digest in answer.detail
    assert new.digest in answer.detail
    with pytest.raises(EngineError, match=r"stale: schema person@1 .* Record"):
        await player(tmp_path).start([new])
    await player(tmp_path).start([old])


@pytest.mark.asyncio
async def test_a_plan_that_was_never_recorded_does_not_start(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    for name in ("b@1", "a@1"):
        await ask(RecordingEngine(Numbered(), tmp_path), plan_of(name=name))
    with pytest.raises(EngineError, match=r"holds nothing of schema c@1, only of a@1, b@1\. Record"):
        await player(tmp_path).start([plan_of(name="a@1"), plan_of(name="c@1")])


@pytest.mark.asyncio
async def test_a_plan_that_was_recorded_with_no_document_is_known(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    plans = [plan_of(), plan_of(name="no-document@1")]
    recorder = RecordingEngine(Numbered(), tmp_path)
    await recorder.start(plans)
    live = await ask(recorder, plans[0])
    played = player(tmp_path)
    await played.start(plans)
    assert await ask(played, plans[0]) == replace(live, engine="recorded:numbered")
    assert (await ask(played, plans[1])).error == "recording_missing"
    with pytest.raises(EngineError, match="stale: schema no-document@1"):
        await played.start([plan_of({"type": "object"}, name="no-document@1")])


@pytest.mark.asyncio
async def test_recording_again_beside_the_old_makes_it_fresh(plan_of: Any, ask: Any, tmp_path: Path) -> None:
    old, new = plan_of(), plan_of({"type": "object"})
    inner = Numbered()
    for plan in (old, new):
        await ask(RecordingEngine(inner, tmp_path), plan)
    played = player(tmp_path)
    await played.start([new])
    assert (await ask(played, new)).text.startswith('{"n":2}')


@pytest.mark.asyncio
async def test_no_recording_and_an_empty_one_do_not_start(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="there is no recording"):
        await player(tmp_path / "nowhere").start([])
    with pytest.raises(EngineError, match="is empty"):
        await player(tmp_path).start([])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "damage",
    [
        b'{"key":"k","plan":"p","dig',
        b"[]\n",
        b'{"key":"k","plan":"p","digest":"d"}\n',
        b'{"key":"k","plan":"p","digest":"d","completion":{"text":"","finish_reason":"stop","constrained":true,"x":1}}',
        b'{"key":"k","plan":"p","digest":"d","completion":{"text":"","finish_reason":"stop","constrained":true,"logprobs":[1]}}',
        b'{"key":"k","plan":"p","digest":"d","completion":{"text":"","finish_reason":"stop","constrained":true,"token_ends":["x"]}}',
        b"\xff\xfe\n",
    ],
)
async def test_a_damaged_line_is_named(plan_of: Any, ask: Any, tmp_path: Path, damage: bytes) -> None:
    await ask(RecordingEngine(Numbered(), tmp_path), plan_of())
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes() + damage)
    with pytest.raises(EngineError, match=rf"{file.name}, line 2: not a recorded completion"):
        await player(tmp_path).start([])
