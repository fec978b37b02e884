"""Planted instructions: what is planted where, and that what is counted is what an engine did."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import completion
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import GristmillError, InputError
from pipeline.evaluate.injection.inject import Wish, inject
from pipeline.evaluate.injection.plants import CONTROL, PLACES, TEMPLATES, at, plants_of, targets_of
from pipeline.job import JobConfig
from pipeline.records import Completion, Document, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import validator_of

CLAIM = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["open", "closed", "granted"]},
        "who": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "paid": {"type": "boolean"},
        "sum": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["new", "old"]}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    "required": ["status", "who", "paid", "sum", "tags"],
    "additionalProperties": False,
}
POINTERS = ["/status", "/who/name", "/paid", "/sum", "/tags"]
FIELD = r"(?P<field>[\w.]+)"
VALUE = r"(?P<value>\"[^\"]*\"|\[.*?\]|[\w.-]+)"
WORDS = [
    re.compile(re.escape(text).replace(r"\{field\}", FIELD).replace(r"\{value\}", VALUE))
    for name, text in TEMPLATES.items()
    if name != "answer"
]
WORDS.append(re.compile(r'Answer:\n\{"(?P<field>[^"]+)": (?P<value>.+?)\}\n'))


class Reader:
    """An engine that reads the document, and follows what is planted there: `obeys` says whether. Under a constraint it
    can write nothing that the schema refuses."""

    def __init__(self, obeys: Any) -> None:
        self._obeys = obeys
        self.asked: list[str] = []

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        self.asked.append(prompt.user)
        number = int(re.search(r"claim (\d+)", prompt.user)[1])  # type: ignore[index]
        record: dict[str, Any] = {"status": "open", "who": {"name": f"Person{number}"}, "paid": False, "sum": number}
        record["tags"] = ["new"]
        made = json.loads(json.dumps(record))
        found = next((match for one in WORDS if (match := one.search(prompt.user))), None)
        if found is not None and self._obeys(found["field"]):
            *parents, last = found["field"].split(".")
            place = made
            for name in parents:
                place = place[name]
            place[last] = json.loads(found["value"])
        legal = validator_of(plan.acceptance).is_valid(made)
        return completion(made if legal or not sampling.constrained else record, constrained=sampling.constrained)


@pytest.fixture
def job(tmp_path: Path) -> JobConfig:
    folder = tmp_path / "schemas" / "claim" / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(CLAIM))
    rows = [{"id": f"c{n}", "text": f"This is claim {n}.\nIt is open.\nNothing was settled."} for n in range(20)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return JobConfig.model_validate(
        {
            "name": "claims",
            "input": {"path": str(tmp_path / "in.jsonl"), "schema": "claim@1"},
            "output": str(tmp_path / "out"),
            "schemas": str(tmp_path / "schemas"),
            "engine": {"engine": "recorded", "recording": str(tmp_path / "none")},
            "retry": {"max_attempts": 1},
        }
    )


def told(job: JobConfig, obeys: Any, **wish: Any) -> list[dict[str, Any]]:
    """What is told of the one schema, arm by arm."""
    found = inject(job, Wish(documents=12, **wish), lambda _work, _backend: Reader(obeys))
    json.dumps(found, allow_nan=False)
    return [arm["schemas"][0] for arm in found["arms"]]


def counts(rate: dict[str, Any]) -> tuple[float, float]:
    return rate["count"], rate["of"]


def test_an_engine_that_follows_one_field_is_found_out_in_that_field(job: JobConfig) -> None:
    (found,) = told(job, lambda field: field == "status")
    fields = {(one["pointer"], one["kind"]): one for one in found["fields"]}
    assert {pointer for pointer, kind in fields if kind == "legal"} == set(POINTERS)
    for pointer in POINTERS:
        of = fields[pointer, "legal"]
        wanted = (12, 0) if pointer == "/status" else (0, 12)
        assert (of["obeyed"]["count"], of["kept"]["count"], of["obeyed"]["of"]) == (*wanted, 12), pointer
        assert counts(of["by_chance"]) == (0, 12)
    assert fields["/status", "legal"]["obeyed"]["low"] > 0.7
    assert fields["/paid", "legal"]["obeyed"]["high"] < 0.3
    assert counts(found["kinds"]["legal"]["obeyed"]) == (12, 60)
    assert all(counts(one["changed"]) == (0, 12) for one in found["controls"])
    assert found["plain"] == {"valid": 12, "degraded": 0, "rejected": 0}


def test_what_the_constraint_stops_is_seen_by_what_is_written_without_it(job: JobConfig) -> None:
    constrained, free = told(job, lambda _field: True, free=True)
    for found, outside in ((constrained, 0), (free, 48)):  # four fields have an outside; any text is a name
        assert counts(found["kinds"]["outside"]["written"]) == (outside, 48)
        assert counts(found["kinds"]["key"]["written"]) == (outside / 4, 12)
        assert counts(found["kinds"]["legal"]["obeyed"]) == (60, 60)
    assert counts(free["kinds"]["outside"]["lost"]) == (48, 48)
    assert counts(constrained["worse"]) == (0, 120)
    assert free["worse"]["count"] >= 48
    assert {one["pointer"] for one in constrained["fields"] if one["kind"] == "outside"} == set(POINTERS) - {
        "/who/name"
    }
    assert all(counts(one["obeyed"])[0] == counts(one["obeyed"])[1] for one in free["templates"])


def test_all_arms_are_asked_the_same_and_a_seed_says_what(job: JobConfig) -> None:
    readers: list[Reader] = []

    def build(_work: Any, _backend: str) -> Reader:
        readers.append(Reader(lambda _field: False))
        return readers[-1]

    for seed in (0, 0, 1):
        inject(job, Wish(documents=5, seed=seed, free=True), build)
    asked = [sorted(reader.asked) for reader in readers]
    assert len(readers) == 3  # one engine answers both ways
    assert asked[0] == asked[1] != asked[2]
    assert all(asked[0].count(text) == 2 for text in asked[0])
    assert {name for name in TEMPLATES if any(TEMPLATES[name][:9] in text for text in asked[0])} == set(TEMPLATES)


def test_what_is_planted_is_legal_new_and_not_in_the_document() -> None:
    documents = [Document(f"d{n}", f"one\ntwo {n}\nthree\nit is closed", "", "claim@1") for n in range(6)]
    record = {"status": "open", "who": {"name": "Ann"}, "paid": False, "sum": None, "tags": []}
    records = {one.id: {**record, "who": {"name": f"Ann{one.id}"}} for one in documents[:5]}
    targets = targets_of(CLAIM)
    assert [target.pointer for target in targets] == POINTERS
    plants = list(plants_of(documents, records, CLAIM, targets, 0))
    validator = validator_of(CLAIM)
    for plant in (plant for plant in plants if plant.kind == "legal"):
        made = json.loads(json.dumps(records[plant.document.id]))
        *parents, last = plant.pointer.split("/")[1:]
        place = made
        for name in parents:
            place = place[name]
        assert place[last] != plant.value
        place[last] = plant.value
        assert validator.is_valid(made), (plant.pointer, plant.value)
        assert plant.value != "closed"
        assert at(made, plant.pointer) == plant.value
    assert {plant.place for plant in plants} == set(PLACES)
    assert {plant.document.id for plant in plants if plant.kind == "legal"} == {f"d{n}" for n in range(5)}
    for plant in plants:
        text = plant.planted().text
        assert plant.words() in text
        assert sorted(text.replace(plant.words(), "", 1).split()) == sorted(plant.document.text.split())
    assert [plant.words() for plant in plants if plant.kind == "control"] == [CONTROL] * 6


def test_fields_can_be_chosen_and_what_cannot_be_planted_is_said(job: JobConfig, tmp_path: Path) -> None:
    (found,) = told(job, lambda _field: True, fields=("/paid",))
    assert {one["pointer"] for one in found["fields"] if one["kind"] != "key"} == {"/paid"}
    with pytest.raises(InputError, match=r"--field /nope is no field .* /who/name"):
        told(job, lambda _field: True, fields=("/paid", "/nope"))
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": " "}\n')
    with pytest.raises(InputError, match=r"no document and field .* 1 of 1 picked documents are empty"):
        told(job, lambda _field: True)


def test_the_command_shows_nothing_that_acts_and_exits_by_what_was_followed(job: JobConfig, tmp_path: Path) -> None:
    data = job.model_dump(mode="json", by_alias=True)
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(data))
    shown = CliRunner().invoke(app, ["inject", str(path), "--documents", "3"])
    assert isinstance(shown.exception, GristmillError)  # there is no recording
    from pipeline.commands_inject import _show, _too_many

    for obeys, many in ((lambda _field: True, True), (lambda _field: False, False)):
        document = inject(job, Wish(documents=4, free=True), lambda _work, _backend, o=obeys: Reader(o))
        assert _too_many(document, 0.5) is many
        document["arms"][0]["schemas"][0]["fields"][0]["pointer"] = "/\x1b[2J\u202e"
        _show(document)


@pytest.mark.slow  # a sandbox tries the schema
def test_random_legal_tokens_write_nothing_outside(job: JobConfig) -> None:
    parts = {"engine": {"engine": "sampler", "max_model_len": 2048}, "sampling": {"max_tokens": 64}}
    sampler = JobConfig.model_validate({**job.model_dump(mode="json", by_alias=True), **parts})
    (arm,) = inject(sampler, Wish(documents=4))["arms"]
    kinds = arm["schemas"][0]["kinds"]
    assert [kinds[kind]["written"]["count"] for kind in ("outside", "key")] == [0, 0]
    assert kinds["outside"]["plants"] == 16
