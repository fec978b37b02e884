"""Publication happens once, whatever the storage says about it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
import s3_server

from pipeline.errors import OutcomeUnknownError, OutputError
from pipeline.runtime.store import LocalStore, json_object, open_store, publish, writing

KEY = "_commits/000001.json"
OURS, THEIRS = {"attempt": "a", "rows": 3}, {"attempt": "b", "rows": 3}


class Shaky(LocalStore):
    """Raises from `create`, before or after the effect, and from as many `get`s as wanted."""

    def __init__(self, root: Path, effect: str, unreadable: int = 0) -> None:
        super().__init__(str(root), "there")
        self.effect, self.unreadable = effect, unreadable
        self.late: list[Callable[[], bool]] = []

    def create(self, key: str, data: bytes) -> bool:
        create = super().create
        if self.effect == "after":
            create(key, data)
            raise OSError(errno.EIO, "Input/output error")
        if self.effect == "before":
            raise OSError(errno.ENOSPC, "No space left on device")
        self.late.append(lambda: create(key, data))
        raise TimeoutError(errno.ETIMEDOUT, "no answer")

    def get(self, key: str) -> bytes | None:
        if self.unreadable:
            self.unreadable -= 1
            raise OSError(errno.EIO, "Input/output error")
        return super().get(key)


def test_one_attempt_is_published_and_the_others_know_it(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert publish(store, KEY, OURS)
    assert not publish(store, KEY, THEIRS)
    assert json_object(store.get(KEY)) == OURS


def test_what_took_effect_before_it_failed_is_ours(tmp_path: Path) -> None:
    assert publish(Shaky(tmp_path, "after"), KEY, OURS)


@pytest.mark.parametrize("effect", ["before", "after", "late"])
def test_a_failure_where_somebody_else_was_first_is_a_loss(tmp_path: Path, effect: str) -> None:
    store = Shaky(tmp_path, effect)
    LocalStore.create(store, KEY, b'{"attempt": "b"}')
    assert not publish(store, KEY, OURS)


@pytest.mark.parametrize(("effect", "words"), [("before", "No space left on device"), ("late", "no answer")])
def test_a_failure_that_left_nothing_to_read_is_unknown_and_a_rerun_finds_out(
    tmp_path: Path, effect: str, words: str
) -> None:
    store = Shaky(tmp_path, effect)
    with pytest.raises(OutcomeUnknownError, match=words) as caught:
        publish(store, KEY, OURS)
    assert f"there/{KEY}" in str(caught.value)
    assert all(late() for late in store.late)  # the write arrives after all
    again = publish(open_store(str(tmp_path)), KEY, THEIRS)
    assert (again, json_object(store.get(KEY))) == ((False, OURS) if effect == "late" else (True, THEIRS))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_what_cannot_be_read_back_is_unknown(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(OutcomeUnknownError):
        publish(Shaky(tmp_path, "after", unreadable=1), KEY, OURS)
    foreign = Shaky(tmp_path, "before")
    foreign.put("x.json", content)
    with pytest.raises(OutcomeUnknownError):
        publish(foreign, "x.json", OURS)


def test_without_an_attempt_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        publish(open_store(str(tmp_path)), KEY, {"rows": 3})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("first", ["", "another's"])
def test_on_s3_an_answer_that_is_lost_decides_nothing(monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """Our first try takes effect and its answer is lost; the second is answered 412 for what we wrote ourselves."""
    left = ["lose"]
    with s3_server.faulty(lambda method, path: left.pop() if method == "PUT" and KEY in path and left else "") as url:
        for name, value in s3_server.environment(url).items():
            monkeypatch.setenv(name, value)
        store = open_store(f"s3://{s3_server.new_bucket()}")
        if first:
            monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint())
            assert publish(store, KEY, THEIRS)
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        assert publish(store, KEY, OURS) is not bool(first)
        assert left == []
        assert json_object(store.get(KEY)) == (THEIRS if first else OURS)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_none(content: bytes | None) -> None:
    assert json_object(content) is None


def test_what_the_storage_raises_names_what_could_not_be_written() -> None:
    import pyarrow as pa

    words = r"^cannot write it: No space left on device\. .*run the same command"
    with pytest.raises(OutputError, match=words), writing("it"):
        raise OSError(errno.ENOSPC, "No space left on device", "some/file")
    with pytest.raises(OutputError, match="cannot write it: odd"), writing("it"):
        raise pa.ArrowInvalid("odd")
    with pytest.raises(ZeroDivisionError), writing("it"):
        raise ZeroDivisionError
