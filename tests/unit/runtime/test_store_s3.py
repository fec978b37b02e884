"""What can go wrong between us and an S3 server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import pytest
import s3_server

from pipeline.runtime.store import S3Store, Store


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Store]]:
    with s3_server.stores(monkeypatch) as make:
        yield make


def once(fault: str, method: str) -> s3_server.Fault:
    """That fault at the first request of the method."""
    left = [fault]
    return lambda asked, path: left.pop() if asked == method and left else ""


@pytest.mark.parametrize("fault", ["lose", "500 InternalError", "409 ConditionalRequestConflict"])
def test_a_creation_that_is_tried_again_is_still_ours(s3: Callable[..., Store], fault: str) -> None:
    """After "lose" the second try is answered 412 for what the first has written."""
    store = s3(once(fault, "PUT"))
    assert store.create("x.json", b'{"attempt": 1}')
    assert not store.create("x.json", b'{"attempt": 2}')
    assert store.get("x.json") == b'{"attempt": 1}'


def test_content_that_breaks_off_is_read_again(s3: Callable[..., Store]) -> None:
    store = s3(once("cut", "GET"))
    store.put("x", b"0123456789" * 1000)
    assert store.get("x") == b"0123456789" * 1000


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("403 AccessDenied", PermissionError),
        ("404 NoSuchBucket", FileNotFoundError),
        ("400 InvalidArgument", OSError),
        ("404 NoSuchKey", FileNotFoundError),
    ],
)
def test_s3_fails_with_oserrors_that_hold_no_keys(
    s3: Callable[..., Store], fault: str, expected: type[OSError]
) -> None:
    store = s3(lambda method, path: fault if "bucket" in path else "")
    writes: list[Callable[[], Any]] = [lambda: store.put("x", b""), lambda: store.create("x", b"")]
    reads: list[Callable[[], Any]] = [lambda: store.get("x"), lambda: list(store.list()), lambda: store.delete("x")]
    for call in [*writes, *([] if "Key" in fault else reads)]:
        with pytest.raises(expected) as caught:
            call()
        assert s3_server.SECRET not in str(caught.value)
        assert store.where in str(caught.value)


def test_no_server_and_no_keys_are_oserrors_too(s3: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = s3()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hush@127.0.0.1:9")
    with pytest.raises(TimeoutError, match=r"127\.0\.0\.1:9 did not answer") as caught:
        store.get("x")
    assert "hush" not in repr(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hush@127.0.0.1:x")
    with pytest.raises(OSError, match="in the settings or answer of S3") as caught:
        store.get("x")
    assert "hush" not in repr(caught.value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:10")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with pytest.raises(OSError, match="set AWS_ACCESS_KEY_ID"):
        store.get("x")


def test_a_server_of_ones_own_is_asked_by_path(s3: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a server has seldom a host name for each bucket."""
    asked: list[str] = []
    store = s3(lambda method, path: asked.append(path) or "403 AccessDenied")
    monkeypatch.setenv("HTTP_PROXY", os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio.test:9000")
    with pytest.raises(PermissionError, match=r"minio\.test:9000 answered 403 AccessDenied"):
        store.put("x", b"")
    assert [unquote(url) for url in asked] == [unquote(f"http://minio.test:9000/{store.where[5:]}/x")]


def test_an_input_on_the_same_server_is_read_with_the_same_environment(s3: Callable[..., Store]) -> None:
    from pyarrow.fs import FileSystem

    store = s3()
    store.put("in/a.jsonl", b"{}")
    assert isinstance(store, S3Store)
    filesystem, root = FileSystem.from_uri(f"{store.where}/in")
    assert filesystem.open_input_file(f"{root}/a.jsonl").read() == b"{}"
