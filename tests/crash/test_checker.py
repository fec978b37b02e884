"""The checker finds every fault that can be planted in a run, and none in a run that is right."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.runtime.store import open_store
from tests.crash.checked import Rows, read_folder, read_input
from tests.crash.checker import committed, main, uncommitted
from tests.crash.core import Oracle, drive
from tests.crash.small_job import SmallJob, make

Objects = dict[str, bytes]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallJob:
    job = make(tmp_path_factory.mktemp("checked"), 18, 4)
    drive(job, open_store(job.job.output), Oracle())
    return job


@pytest.fixture
def objects(small: SmallJob) -> Objects:
    return read_folder(run_of(small))


def run_of(small: SmallJob) -> Path:
    return Path(small.job.output) / f"run={small.identity.run_id}"


def files(objects: Objects) -> list[str]:
    return sorted(key for key in objects if key.startswith("status="))


def second(objects: Objects) -> str:
    """A file that is not the only one of its table."""
    paths = files(objects)
    return next(b for a, b in pairwise(paths) if a.rpartition("/")[0] == b.rpartition("/")[0])


def edit(objects: Objects, key: str, change: Callable[[Any], None]) -> None:
    value = json.loads(objects[key])
    change(value)
    objects[key] = json.dumps(value).encode()


def every_description(objects: Objects, path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change how manifest and record describe a file."""
    for key in [*(key for key in objects if key.startswith("_commits/")), "manifest.json"]:
        edit(objects, key, lambda value: [change(one) for one in value["files"] if one["path"] == path])


def rewrite(objects: Objects, path: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a file's table, and describe the file as it is now."""
    table = change(pq.ParquetFile(pa.BufferReader(objects[path])).read())
    sink = io.BytesIO()
    pq.write_table(table, sink)
    data = objects[path] = sink.getvalue()
    facts = {"rows": table.num_rows, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    every_description(objects, path, lambda one: one.update(facts))


def other_id(table: pa.Table) -> pa.Table:
    return table.set_column(0, table.schema.field(0), pa.array(["d0", *table.column(0).to_pylist()[1:]], pa.string()))


def refused(objects: Objects) -> str:
    """The file that holds the row of a repeated id."""
    return next(path for path in files(objects) if b"duplicate_id" in str(problems_of(objects[path])).encode())


def first_file(objects: Objects) -> str:
    return next(path for path in files(objects) if path.startswith("status=rejected"))


def problems_of(data: bytes) -> list[Any]:
    found: list[Any] = pq.ParquetFile(pa.BufferReader(data)).read(["problems"]).column(0).to_pylist()
    return found


def _with_problems(table: pa.Table, problems: list[Any]) -> pa.Table:
    place = table.schema.get_field_index("problems")
    return table.set_column(place, table.schema.field(place), pa.array(problems, table.schema.field(place).type))


def no_problems(table: pa.Table) -> pa.Table:
    return _with_problems(table, [[]] * table.num_rows)


def all_repeated(table: pa.Table) -> pa.Table:
    repeated = {"code": "duplicate_id", "pointer": "", "message": "", "attempt": 0, "severity": ""}
    return _with_problems(table, [[repeated]] * table.num_rows)


def first_record(objects: Objects) -> str:
    return "_commits/000000.json"


def move(objects: Objects) -> None:
    """The rows of one status under another."""
    path = next(path for path in files(objects) if path.startswith("status=degraded"))
    new = path.replace("degraded", "valid") + ".parquet"
    objects[new] = objects.pop(path)
    every_description(objects, path, lambda one: one.update(path=new))


def late(objects: Objects) -> None:
    """A second attempt's file that somebody named, too."""
    path = files(objects)[0]
    new = path.replace("-", "-late")
    objects[new] = objects[path]
    add = dict(next(one for one in json.loads(objects["manifest.json"])["files"] if one["path"] == path), path=new)
    edit(objects, "manifest.json", lambda value: value["files"].append(add))


FAULTS: dict[str, tuple[Callable[[Objects], Any], str]] = {
    "no manifest": (lambda o: o.pop("manifest.json"), "manifest.json is missing"),
    "torn manifest": (lambda o: o.update({"manifest.json": o["manifest.json"][:-9]}), "manifest.json is missing or no"),
    "lost file": (lambda o: o.pop(files(o)[0]), "named and not there"),
    "spoilt byte": (lambda o: o.update({files(o)[0]: o[files(o)[0]][:-1] + b"?"}), "another sha256"),
    "cut file": (lambda o: o.update({files(o)[0]: o[files(o)[0]][:-1]}), "bytes, not"),
    "row lost": (lambda o: rewrite(o, files(o)[0], lambda t: t.slice(1)), "of the input are not written"),
    "row twice": (lambda o: rewrite(o, files(o)[0], lambda t: pa.concat_tables([t, t.slice(0, 1)])), "written twice"),
    "another's id": (lambda o: rewrite(o, files(o)[-1], other_id), "ids stand in more rows"),
    "another layout": (
        lambda o: rewrite(o, second(o), lambda t: t.append_column("x", pa.nulls(t.num_rows))),
        "another Arrow schema",
    ),
    "rows miscounted": (lambda o: every_description(o, files(o)[0], lambda one: one.update(rows=77)), "rows, not 77"),
    "incomplete": (lambda o: every_description(o, files(o)[0], lambda one: one.pop("sha256")), "incompletely"),
    "wrong folder": (move, "lies in the wrong folder"),
    "unnamed file": (lambda o: o.update({files(o)[0] + ".parquet": b""}), "there and not named"),
    "file of a loser": (late, "do not name the same files"),
    "record lost": (lambda o: o.pop(first_record(o)), "do not name the same files"),
    "record doubled": (lambda o: o.update({"_commits/000009.json": o[first_record(o)]}), "written twice"),
    "counts": (lambda o: edit(o, "manifest.json", lambda m: m["counts"].update(valid=99)), "the manifest counts"),
    "documents": (lambda o: edit(o, "manifest.json", lambda m: m.update(documents=99)), "tells 99 documents"),
    "digest": (lambda o: edit(o, "manifest.json", lambda m: m.update(ids_digest="0" * 32)), "digest of ids is not"),
    "unit digest": (lambda o: edit(o, first_record(o), lambda r: r.update(ids_digest="0")), "unit 000000: the digest"),
    "unit tally": (
        lambda o: edit(o, first_record(o), lambda r: r["tally"]["statuses"].update(valid=9)),
        "unit 000000: its tally",
    ),
    "journal": (lambda o: o.update({"_journal/000000/x.jsonl.zst": b""}), "left in the journal"),
    "torn write": (lambda o: o.update({"_commits/.tmp-" + "0" * 32: b""}), "broke off"),
    "a repeated id that counts": (lambda o: rewrite(o, refused(o), no_problems), "have more than one row that counts"),
    "no row that counts": (lambda o: rewrite(o, first_file(o), all_repeated), "have no row that counts"),
    "no duplicates": (lambda o: o.pop("duplicates.json"), "duplicates.json is not there"),
    "no metrics": (lambda o: o.pop("metrics.prom"), "metrics.prom is named and not there"),
}


def test_a_run_that_is_right_has_nothing_wrong(small: SmallJob, objects: Objects) -> None:
    assert committed(objects, small.rows) == []
    assert {key.split("/")[0] for key in files(objects)} == {"status=valid", "status=degraded", "status=rejected"}
    assert sum(small.rows.values()) == small.found.documents


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(small: SmallJob, objects: Objects, fault: str) -> None:
    plant, words = FAULTS[fault]
    plant(objects)
    assert words in "\n".join(committed(objects, small.rows))


def test_the_input_is_held_against_the_rows(small: SmallJob, objects: Objects, tmp_path: Path) -> None:
    lost = Rows(small.rows) + Rows({("in-18.jsonl#18", "d18"): 1})
    assert "1 rows of the input are not written" in "\n".join(committed(objects, lost))
    table = tmp_path / "rows.csv"
    table.write_text('id,text\nd1,a\n"d\n2",b\n,c\n')
    assert list(read_input(table)) == [("rows.csv#0", "d1"), ("rows.csv#1", "d\n2"), ("rows.csv#2", "rows.csv#2")]


def test_a_run_without_a_manifest_is_judged_by_its_units(small: SmallJob, objects: Objects) -> None:
    assert uncommitted(objects, small.rows) == ["there is a manifest"]
    del objects["manifest.json"], objects[first_record(objects)]
    assert uncommitted(objects, small.rows) == []
    objects["_commits/000009.json"] = objects["_commits/000001.json"]
    assert "written twice" in "\n".join(uncommitted(objects, small.rows))


def test_the_command_tells_and_exits(small: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    run, rows = str(run_of(small)), str(small.job.input.path)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.crash.checker", run, rows]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing is wrong\n", "")
    assert main([run, rows, "--uncommitted"]) == 1
    assert capsys.readouterr().out == "there is a manifest\n"
