"""What a job looks values up in: loaded once, the same from every format, and a changed list is a changed run."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import InputError
from pipeline.job import ExtractConfig
from pipeline.runtime import lookups
from pipeline.runtime.lookups import load_lookups, lookups_digest

VALUES = ["A1", "007", "Ä b", "\u2028"]


def config(path: object, column: str = "no", *more: dict[str, str]) -> ExtractConfig:
    first = {"pointer": "/order_no", "path": str(path), "column": column}
    return ExtractConfig.model_validate({"lookups": [first, *more]})


def write(path: Path, values: list[Any]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"no": values, "other": range(len(values))}), path)
    elif path.suffix == ".csv":
        path.write_text("other,no\n" + "".join(f'1,"{value or ""}"\n' for value in values), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps({"no": value}) + "\n" for value in values))
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "a.NDJSON"])
def test_the_values_of_a_column_are_the_same_from_every_format(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [*VALUES, None, "A1"])
    (found,) = load_lookups(config(path)).items()
    assert found == ((str(path), "no"), frozenset(VALUES))
    assert load_lookups(config(f"file://{path}")).popitem()[1] == frozenset(VALUES)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_integers_are_decimal_text_however_large(tmp_path: Path, name: str) -> None:
    values: list[Any] = [7, -1, 2**62, None]
    assert load_lookups(config(write(tmp_path / name, values))).popitem()[1] == {"7", "-1", str(2**62)}


def test_other_ways_to_store_text_and_integers(tmp_path: Path) -> None:
    for number, column in enumerate(
        [
            pa.array(["x", None]).dictionary_encode(),
            pa.array([b"x", None], pa.binary()),
            pa.array(["x", None], pa.large_string()),
        ]
    ):
        pq.write_table(pa.table({"no": column}), tmp_path / f"{number}.parquet")
        assert load_lookups(config(tmp_path / f"{number}.parquet")).popitem()[1] == {"x"}
    pq.write_table(pa.table({"no": pa.array([Decimal(2**70)], pa.decimal128(38, 0))}), tmp_path / "d.parquet")
    assert load_lookups(config(tmp_path / "d.parquet")).popitem()[1] == {str(2**70)}


@pytest.mark.parametrize(
    ("value", "says"),
    [(1.0, "floating-point"), (True, "a boolean"), ({"a": 1}, "an object"), (["a"], "a list"), (1.5, "Int64")],
)
@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_what_cannot_be_compared_as_text_is_refused_with_its_place(
    tmp_path: Path, name: str, value: Any, says: str
) -> None:
    path = write(tmp_path / name, [None, value])
    with pytest.raises(InputError, match=rf"row 1 .*{name}, column `no`.*{says}"):
        load_lookups(config(path))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"no": "1"}\nnot json\n', "row 1.*not JSON"),
        ("a.csv", b'no\n"a"b\n', "row 0.*not CSV"),
        ("a.csv", b"no\ncaf\xe9\n", "row 0.*UTF-8|byte"),
        ("a.jsonl", b'{"no": null}\n', "no value to look up"),
        ("a.csv", b"no,x\n,1\n,2\n", "no value to look up"),
        ("a.csv", b"nos\n1\n", r"`no` \(lookups.column\).*Did you mean `nos`"),
        ("a.parquet", b"PAR1", "cannot read"),
        ("a.txt", b"1\n", "lookups.path .*no known format"),
        ("a.xlsx", b"1\n", "ends in .parquet, .jsonl, .ndjson, .csv"),
    ],
)
def test_a_list_that_cannot_be_used_is_told(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"(?s){says}") as caught:
        load_lookups(config(tmp_path / name))
    assert "input." not in str(caught.value)


def test_a_missing_list_is_told_as_a_lookup_and_without_keys(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lookups\.path .*none\.csv does not exist"):
        load_lookups(config(tmp_path / "none.csv"))
    with pytest.raises(InputError) as caught:
        load_lookups(config("nosuch://user:SECRET@host/a.csv?k=SECRET"))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        load_lookups(config("s3://user:SECRET@host/a.xyz?k=SECRET"))
    assert "SECRET" not in str(caught.value)


def test_too_many_values_are_refused_over_all_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MAX_VALUES", 5)
    first, second = (write(tmp_path / name, [f"{name}{n % 3}" for n in range(9)]) for name in ("a.csv", "b.jsonl"))
    assert len(load_lookups(config(first))) == 1  # nine rows, three values
    both = config(first, "no", {"pointer": "/x", "path": str(second), "column": "no"})
    with pytest.raises(InputError, match="more than 5 different values"):
        load_lookups(both)


def test_a_list_that_is_used_twice_is_loaded_once_and_two_columns_are_two(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", ["a", "b"])
    twice = {"pointer": "/y/*", "path": str(path), "column": "no"}
    other = {"pointer": "/z", "path": str(path), "column": "other"}
    found = load_lookups(config(path, "no", twice, other))
    assert found == {(str(path), "no"): {"a", "b"}, (str(path), "other"): {"0", "1"}}


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl"])
def test_a_list_that_changed_since_the_run_began_is_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, VALUES)
    before = lookups_digest(load_lookups(config(path)))
    write(path, [*reversed(VALUES), VALUES[0]])  # the same values
    assert load_lookups(config(path), before)
    for changed in ([*VALUES, "new"], VALUES[1:]):
        write(path, changed)
        with pytest.raises(InputError, match=rf"column `no` of .*{name} was changed since the run began"):
            load_lookups(config(path), before)


def test_a_changed_list_is_a_changed_run_and_a_moved_one_is_not(make_work: Any, tmp_path: Path) -> None:
    from pipeline.runtime.output.identity import identity_of

    def identity(path: Path, **more: Any) -> Any:
        lookup = {"pointer": "/vendor", "path": str(path), "column": "no", **more}
        work = make_work(params={})
        job = work.job.model_copy(update={"lookups": ExtractConfig.model_validate({"lookups": [lookup]}).lookups})
        return identity_of(job, work.found, work.plans, lookups_digest(load_lookups(job)))

    path = write(tmp_path / "a.csv", VALUES)
    before = identity(path)
    assert identity(write(tmp_path / "moved.jsonl", VALUES)) == before
    assert identity(path, severity="observe").differences(before.work) == ["lookups"]
    assert identity(write(path, VALUES[1:])).differences(before.work) == ["values of lookups"]
    assert identity(path).origin == before.origin
