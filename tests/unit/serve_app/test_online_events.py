"""The endpoint's events: those of documents that are not valid, and nobody's answer depends on them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from serving import JSON, ONE, TEXT, Given, client_of, service_of
from support import completion

from pipeline.jobfile import read_work
from pipeline.serve_app.endpoint import events_of
from pipeline.serve_app.settings import AppConfig


def app_of(folder: Path, **events: Any) -> AppConfig:
    settings = {"name": "online", "engine": {"engine": "sampler", "backend": "xgrammar"}, "events": events}
    return read_work(settings, folder, AppConfig, "here")


def asked(service: Any, answer: Any) -> int:
    async def ask() -> int:
        service._engine = Given(answer)
        async with client_of(service) as client:
            got = await client.post("/v1/extract", content=json.dumps({**ONE, "id": "r-17"}), headers=JSON)
        return got.status_code

    return asyncio.run(ask())


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text("ascii").splitlines()]


def test_documents_that_are_not_valid_have_lines_and_their_text_has_none(tmp_path: Path) -> None:
    service = service_of(Given())
    service.events = events_of(app_of(tmp_path, path="logs"))
    assert asked(service, None) == 200
    assert asked(service, completion("no json")) == 422
    service.events.close()
    lines = lines_of(tmp_path / "logs")
    assert {(line["job"], line["run"], line["document"]) for line in lines} == {("online", "", "r-17")}
    assert {line["event"] for line in lines} >= {"document_rejected"}
    assert lines[0]["process"].startswith("endpoint-")
    assert TEXT not in json.dumps(lines)


def test_a_place_that_cannot_be_written_is_told_in_the_log_and_costs_no_answer(tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "file").write_text("")
    service = service_of(Given())
    service.events = events_of(app_of(tmp_path, path="file/logs"))
    assert asked(service, completion("no json")) == 422
    service.events.close()
    assert "events are lost" in caplog.text
