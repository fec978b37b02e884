"""One contract, kept by a local disk and by S3."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import s3_server

from pipeline.errors import OutputError
from pipeline.runtime.store import Entry, Store, open_store


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Store]]:
    with s3_server.stores(monkeypatch) as make:
        yield make


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "out")) if request.param == "local" else request.getfixturevalue("s3")()


def test_what_is_put_is_got_and_replaced_and_deleted(store: Store) -> None:
    key = "status=valid/schema=réceipt@1/000001-abc.parquet"
    assert (store.get(key), store.size(key)) == (None, None)
    for data in (b"one", b"\0" * 300_000, b""):
        store.put(key, data)
        assert (store.get(key), store.size(key)) == (data, len(data))
    store.delete(key)
    store.delete(key)
    assert store.get(key) is None
    assert list(store.list()) == []


def test_a_listing_has_every_key_that_starts_so_in_order(store: Store) -> None:
    assert list(store.list("_commits/")) == []
    keys = ["a.json", "a/b/c.json", "a/b.json", "a-b/x", "_commits/000002.json", "_commits/000010.json", "b/é", "b/z"]
    for number, key in enumerate(keys):
        store.put(key, b"x" * number)
    everything = [Entry(key, keys.index(key)) for key in sorted(keys)]
    assert list(store.list()) == everything
    for prefix in ("a", "a/", "a/b", "a/b/", "_commits/0000", "b/é", "none"):
        assert list(store.list(prefix)) == [entry for entry in everything if entry.key.startswith(prefix)], prefix


def test_folders_at_the_top_are_listed_without_what_is_in_them(store: Store) -> None:
    assert store.folders("run=") == ()
    for key in ("run=b/x/y.json", "run=a/z.json", "run=c", "other/run=d/x", "run=é/q", "run=\u002b/q"):
        store.put(key, b"")
    assert store.folders("run=") == ("run=+", "run=a", "run=b", "run=é")
    assert store.at("other").folders("") == ("run=d",)


def test_a_store_below_a_prefix_sees_only_that(store: Store) -> None:
    below = store.at("run=2/x")
    assert below.where.endswith("run=2/x")
    assert below.create("y/z.json", b"1")
    store.put("other", b"")
    assert [entry.key for entry in below.list()] == ["y/z.json"]
    assert store.get("run=2/x/y/z.json") == b"1"


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../../b", ".", "a\\b", "a\0b"])
def test_no_key_leaves_the_root(store: Store, key: str) -> None:
    for call in (store.get, store.size, store.delete, store.at):
        with pytest.raises(ValueError, match="is no key"):
            call(key)
    for write in (store.put, store.create):
        with pytest.raises(ValueError, match="is no key"):
            write(key, b"")
    if key not in ("", "a/"):
        with pytest.raises(ValueError, match="is no key"):
            list(store.list(key))


def test_of_many_who_create_a_key_one_succeeds_and_it_is_whole(store: Store) -> None:
    contents = [str(number).encode() * 50_000 for number in range(8)]
    won: list[bytes] = []
    threads = [
        threading.Thread(target=lambda data=data: won.append(data) if store.create("x/y.json", data) else None)
        for data in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.get("x/y.json")] == won
    assert [entry.key for entry in store.list()] == ["x/y.json"]


def test_a_copy_in_another_process_is_the_same_store(store: Store) -> None:
    store.put("x", b"1")
    other = copy.copy(store)  # by what pickle would carry
    assert (other.where, other.get("x")) == (store.where, b"1")


def test_what_cannot_be_an_output_says_what_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for output in ("gs://bucket/x", "s3a://bucket/x", "file:///tmp/x"):
        with pytest.raises(OutputError, match="s3://bucket/prefix"):
            open_store(output)
    for output in ("s3://id:hush@bucket/x", "s3://bucket/x?secret_key=hush", "s3://id:hush"):
        with pytest.raises(OutputError, match="AWS_ENDPOINT_URL") as caught:
            open_store(output)
        assert "hush" not in str(caught.value)
    for output in ("s3://", "s3:///x", "s3://bucket/a/../b", "s3://bucket/%ff"):
        with pytest.raises(OutputError, match="names no bucket"):
            open_store(output)
    monkeypatch.chdir(tmp_path)
    relative = open_store("out")
    monkeypatch.chdir("/")
    relative.put("x", b"")
    assert relative.where == "out"
    assert (tmp_path / "out/x").exists()
