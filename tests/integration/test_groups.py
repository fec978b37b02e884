"""Schemas that cannot be used, and schemas of both grammar back ends, in one job."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
from one_job import Bench


def save_schema(bench: Bench, name: str, body: dict[str, Any]) -> None:
    folder = bench.folder / "schemas" / name / "1"
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(json.dumps(body))


NOBODY = {"type": "object", "properties": {"a": False}, "required": ["a"], "additionalProperties": False}


def test_a_job_whose_only_schema_cannot_be_used_stops_with_the_reason(bench: Bench) -> None:
    save_schema(bench, "odd", NOBODY)
    bench.job |= {"schemas": "schemas"}
    bench.job["input"]["schema"] = "odd@1"
    done = bench.run()
    assert done.returncode == 4, done.stderr
    assert "odd@1" in done.stderr
    assert "no document can satisfy" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_bad_schemas_cost_their_own_documents_and_each_good_one_gets_its_back_end(bench: Bench) -> None:
    number = {"type": "integer", "minimum": 0, "maximum": 99}
    counted = {"type": "object", "properties": {"a": number, "b": number, "c": number}, "additionalProperties": False}
    price = {"type": "number", "minimum": 0, "maximum": 9}
    save_schema(bench, "counted", {**counted, "minProperties": 2})  # guidance does not count optional keys
    save_schema(bench, "price", {"type": "object", "properties": {"total": price}, "required": ["total"]})
    save_schema(bench, "odd", NOBODY)
    names = ["counted@1", "price@1", "odd@1", "unknown@1"]
    bench.write([{"id": f"d{n}", "text": f"text {n}", "schema": names[n % 4]} for n in range(40)])
    bench.job |= {"schemas": "schemas", "input": {"path": "in.jsonl", "schema_column": "schema"}}
    bench.job["placement"] = {"unit_documents": 16}
    done = bench.run()
    assert done.returncode == 0, done.stderr
    assert "odd@1: refused" in done.stdout
    tables = [pq.read_table(path, partitioning=None) for path in bench.folder.glob("out/run=*/status=*/*/*.parquet")]
    rows = [row for table in tables for row in table.to_pylist()]
    assert sorted(row["document_id"] for row in rows) == sorted(f"d{n}" for n in range(40))
    engines = {row["document_id"]: {attempt["engine"] for attempt in row["attempts"]} for row in rows}
    asked = {name: set().union(*(engines[f"d{n}"] for n in range(40) if names[n % 4] == name)) for name in names}
    assert [len(asked[name]) for name in names] == [1, 1, 0, 0]
    assert "xgrammar" in asked["counted@1"].pop()
    assert "guidance" in asked["price@1"].pop()
    refused = [row for row in rows if not row["attempts"]]
    assert len(refused) == 20
    assert all([problem["code"] for problem in row["problems"]] == ["schema_refused"] for row in refused)
