"""Nights of an incremental job without Ray and engines: real stores, runs, index and manifests; outcomes are made up.

An input row is (id, content); the content says the status. A row of the output holds the content that it was made of.
"""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.job import JobConfig
from pipeline.records import STATUSES
from pipeline.runtime.input import InputScan
from pipeline.runtime.output.commit import Run, open_run, read_manifest
from pipeline.runtime.output.identity import identity_of
from pipeline.runtime.output.parquet import parquet_from
from pipeline.runtime.since import Since, since_last
from pipeline.runtime.store import open_store, publish
from pipeline.schema.fingerprint import digest

Rows = Sequence[tuple[str, str]]
ROOT = Path(__file__).resolve().parents[3]


def recipe() -> Callable[..., Any]:
    """`current` of docs/incremental.md."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "incremental.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "recipe.py"
        script.write_text(block)
        return runpy.run_path(str(script))["current"]  # type: ignore[no-any-return]


def status_of(content: str) -> str:
    """The status that a document of this content gets."""
    return {"b": "rejected", "d": "degraded"}.get(content[:1], "valid")


class Dying:
    """A store of which one effect, the `last` one from now on, is followed or preceded by `error`."""

    def __init__(self, store: Any, fate: Fate) -> None:
        self._store, self._fate = store, fate

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name == "at":
            return lambda prefix: Dying(real(prefix), self._fate)
        return self._fate.met(real) if name in ("put", "create", "delete") else real


class CrashError(Exception):
    """Stands for the death of the driver."""


class Fate:
    """`error` at the effect number `last`, counted from 1; `after` it took place, or instead. 0: never."""

    def __init__(self, last: int = 0, after: bool = False, error: type[Exception] = CrashError) -> None:
        self.last, self.after, self.error, self.effects = last, after, error, 0

    def met(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.effects += 1
            mine = self.effects == self.last
            if mine and not self.after:
                raise self.error("before")
            made = real(*arguments)
            if mine:
                raise self.error("after")
            return made

        return call


class Nights:
    """A job in a folder, run night after night; `fate` is that of what the end of a night writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_schema("s", {"type": "object", "properties": {"x": {"type": "string"}}})
        self.fate = Fate()
        self.made: list[str] = []
        """Ids that the last night extracted, duplicates left out."""

    def write_schema(self, name: str, body: Any) -> None:
        path = self.folder / "schemas" / name / "1" / "schema.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(body))

    def job(self, **parts: Any) -> JobConfig:
        base = {
            "name": "nightly",
            "input": {"path": "in.jsonl", "schema": "s@1", "since": "last"},
            "output": str(self.folder / "out"),
            "schemas": str(self.folder / "schemas"),
            "engine": {"engine": "sampler"},
        }
        return JobConfig.model_validate({**base, **parts})

    def since(self, again: Sequence[str] = (), values: Any = None, **parts: Any) -> Since:
        job = self.job(**parts)
        return since_last(job, values or {}, Dying(open_store(job.output), self.fate), again)

    def night(self, rows: Rows, again: Sequence[str] = (), **parts: Any) -> dict[str, Any] | None:
        """What the manifest says of the run; None if there was nothing to do."""
        begun = self.begin(rows, again, **parts)
        return self.commit(*begun) if begun else None

    def begin(
        self, rows: Rows, again: Sequence[str] = (), values: Any = None, **parts: Any
    ) -> tuple[Since, Run] | None:
        """A night up to its last unit. `values` are the digests of lookups."""
        self.made = []
        job, since = self.job(**parts), self.since(again, values, **parts)
        select, schema = since.select(), job.input.schema_name or ""
        earlier: set[str] = set()
        taken = []
        for one, content in rows:
            if select(one, schema, digest(content)):
                taken.append((one, content, one in earlier))
            earlier.add(one)
        found = InputScan((), len(taken), "", digest(list(rows)), {}, 0, ())
        identity = identity_of(job, found, {}, values, since.origin)
        if since.nothing or since.is_done(identity):
            return None
        run = open_run(job, identity, open_store(job.output))
        if taken:
            self._write(run, taken, schema)
        return since, dataclasses.replace(run, store=Dying(run.store, self.fate))

    def _write(self, run: Run, taken: Sequence[tuple[str, str, bool]], schema: str) -> None:
        rows: dict[str, list[dict[str, Any]]] = {}
        for one, content, again in taken:
            row = {"document_id": one, "record": content, "run_id": run.identity.run_id}
            problems = [{"code": "duplicate_id"}] if again else [{"code": "abstained"}]
            rows.setdefault("rejected" if again else status_of(content), []).append({**row, "problems": problems})
            self.made += [] if again else [one]
        files = []
        for status, of_status in rows.items():
            data, path = parquet_from(pa.Table.from_pylist(of_status)), f"status={status}/schema={schema}/000000-x"
            run.store.put(path, data)
            about = {"rows": len(of_status), "bytes": len(data), "sha256": ""}
            files.append({"path": path, "status": status, "schema": schema, **about})
        record = {"unit": "000000", "ids_digest": "0", "tally": {}, "files": files, "input": {}, "attempt": "a"}
        publish(run.store, "_commits/000000.json", record)

    def commit(self, since: Since, run: Run) -> dict[str, Any]:
        return self.publish(since, run, since.finish(run))

    def publish(self, since: Since, run: Run, incremental: dict[str, Any]) -> dict[str, Any]:
        """The manifest, after the last look that `Run.commit` takes."""
        since.check(run)
        records = json.loads((run.store.get("_commits/000000.json") or b'{"files": []}').decode())
        values: dict[str, Any] = {name: {} for name in ("counts", "schemas", "totals")}
        values |= {"run_id": run.identity.run_id, "job": "nightly", "documents": 0, "ids_digest": ""}
        values |= {"files": records["files"], "incremental": incremental, "attempt": run.identity.run_id}
        publish(run.store, "manifest.json", values)
        manifest = read_manifest(run.store)
        assert manifest is not None
        return dict(manifest.incremental)

    def table(self, schema: str = "s@1") -> dict[str, tuple[str, str]]:
        """The current table by the recipe of the documentation: id → (status, content); no id is there twice."""
        found: dict[str, tuple[str, str]] = {}
        current = recipe()
        for status in STATUSES:
            table = current(self.folder / "out", "nightly", status, schema)
            for row in table.to_pylist() if table is not None else []:
                if row["problems"][0]["code"] != "duplicate_id":
                    assert row["document_id"] not in found
                    found[row["document_id"]] = status, row["record"]
        return found

    def superseded(self, incremental: dict[str, Any], run_id: str) -> list[tuple[str, str]]:
        import pyarrow.parquet as pq

        run = self.folder / "out" / f"run={run_id}"
        tables = [pq.ParquetFile(run / part["path"]).read() for part in incremental["superseded"]]
        return sorted((row["document_id"], row["why"]) for table in tables for row in table.to_pylist())


def table_of(rows: Rows) -> dict[str, tuple[str, str]]:
    """What a whole run on the same input gives."""
    first: dict[str, tuple[str, str]] = {}
    for one, content in rows:
        first.setdefault(one, (status_of(content), content))
    return first
