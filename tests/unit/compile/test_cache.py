"""Verdicts on disk: what was put comes back, and nothing else ever does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.compile.cache import VerdictCache, tokenizer_digest
from pipeline.engines.models import resolve
from pipeline.errors import EngineError

KEY: dict[str, Any] = {"schema": "ab12", "backend": "xgrammar 0.2.8", "compact": True, "format": 3}
VALUE: dict[str, Any] = {"verdicts": [["#/properties/a", "enforced"]], "seconds": 0.25, "words": "Schlüssel\n\ud800"}


def only_file(root: Path) -> Path:
    (path,) = root.glob("*.json")
    return path


def test_what_was_put_comes_back_in_another_process_too(tmp_path: Path) -> None:
    VerdictCache(tmp_path / "deep/down").put(KEY, VALUE)
    assert VerdictCache(tmp_path / "deep/down").get(dict(reversed(KEY.items()))) == VALUE


@pytest.mark.parametrize("other", [{"compact": False}, {"compact": 1}, {"format": 4}, {"schema": "ab13"}, {"more": 0}])
def test_another_key_finds_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    cache = VerdictCache(tmp_path)
    cache.put(KEY, VALUE)
    assert cache.get(KEY | other) is None


@given(value=st.recursive(st.integers() | st.floats(allow_nan=False) | st.text(), lambda x: st.lists(x) | st.tuples(x)))
def test_a_value_comes_back_as_json_would_give_it(tmp_path_factory: Any, value: Any) -> None:
    cache = VerdictCache(tmp_path_factory.mktemp("verdicts"))
    for put in (value, {10: value, 9: value}):
        try:
            cache.put(KEY, put)
        except ValueError:  # infinity
            continue
        assert cache.get(KEY) == json.loads(json.dumps(put))


def test_the_last_value_stands(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    cache.put(KEY, 1)
    cache.put(KEY, 2)
    assert cache.get(KEY) == 2
    assert [path.name for path in tmp_path.iterdir()] == [only_file(tmp_path).name]


_FILES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"{}", b"[]", b"null", b"[" * 100_000, b'{"key":1,"value":2,"check":3}', b'{"value":NaN}']),
)


@given(content=_FILES)
def test_a_foreign_file_is_absent_and_gets_overwritten(tmp_path_factory: Any, content: bytes) -> None:
    root = tmp_path_factory.mktemp("verdicts")
    cache = VerdictCache(root)
    cache.put(KEY, VALUE)
    only_file(root).write_bytes(content)
    assert cache.get(KEY) is None
    cache.put(KEY, VALUE)
    assert cache.get(KEY) == VALUE


def test_a_file_that_is_cut_or_changed_anywhere_never_gives_another_value(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    cache.put(KEY, VALUE)
    whole = only_file(tmp_path).read_bytes()
    for place in range(len(whole)):
        only_file(tmp_path).write_bytes(whole[:place])
        assert cache.get(KEY) is None
        only_file(tmp_path).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert cache.get(KEY) in (None, VALUE)


def test_the_file_of_another_key_under_this_name_is_absent(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    cache.put(KEY, VALUE)
    mine = only_file(tmp_path)
    cache.put(KEY | {"schema": "other"}, "another verdict")
    (other,) = set(tmp_path.glob("*.json")) - {mine}
    os.replace(other, mine)
    assert cache.get(KEY) is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_what_is_not_a_file_holds_nobody_up(tmp_path: Path, kind: str, capsys: Any) -> None:
    cache = VerdictCache(tmp_path)
    cache.put(KEY, VALUE)
    path = only_file(tmp_path)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "nowhere")
    assert cache.get(KEY) is None
    cache.put(KEY, VALUE)
    assert cache.get(KEY) == (None if kind == "folder" else VALUE)


def test_a_directory_that_cannot_be_written_is_said_once(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VerdictCache(tmp_path / "file/verdicts")
    for number in range(3):
        cache.put(KEY | {"n": number}, VALUE)
        assert cache.get(KEY | {"n": number}) is None
    assert capsys.readouterr().err.count("GRISTMILL_CACHE") == 1


def test_the_oldest_beyond_the_bounds_go_and_the_used_stay(tmp_path: Path) -> None:
    for number in range(10):
        VerdictCache(tmp_path).put({"n": number}, number)
    for number, path in enumerate(sorted(tmp_path.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(path, (1000 + number, 1000 + number))
    assert VerdictCache(tmp_path).get({"n": 0}) == 0  # used: now the youngest
    VerdictCache(tmp_path, max_files=4).put({"n": 10}, 10)
    cache = VerdictCache(tmp_path)
    assert [n for n in range(11) if cache.get({"n": n}) is not None] == [0, 8, 9, 10]


def test_the_bound_on_size_holds(tmp_path: Path) -> None:
    for number in range(6):
        VerdictCache(tmp_path, max_mib=1).put({"n": number}, "x" * 300_000)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.json")) <= 1 << 20
    assert VerdictCache(tmp_path).get({"n": 5})


def test_what_interrupted_writers_left_goes_in_time(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.part", tmp_path / ".b.part"
    old.touch()
    young.touch()
    os.utime(old, (1000, 1000))
    VerdictCache(tmp_path).put(KEY, VALUE)
    assert (old.exists(), young.exists()) == (False, True)


WRITER = """
import sys
from pathlib import Path
from pipeline.compile.cache import VerdictCache
cache = VerdictCache(Path(sys.argv[1]), max_files=8)
for round in range(300):
    key, size = {"n": round % 12}, 1000 + int(sys.argv[2])
    cache.put(key, str(round % 12) * size)
    found = cache.get(key)
    assert found is None or found in [str(round % 12) * (1000 + n) for n in range(3)], found[:9]
"""


def test_writers_at_once_never_show_half_a_value(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(n)], stderr=subprocess.PIPE, text=True) for n in range(3)]
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert (writer.returncode, said) == (0, "")
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("value", [None, {1, 2}, float("nan"), object()])
def test_what_is_not_json_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError):
        VerdictCache(tmp_path).put(KEY, value)
    with pytest.raises(ValueError):
        VerdictCache(tmp_path).put({"key": {1}}, 1)
    assert not list(tmp_path.iterdir())


def test_it_lies_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_CACHE", str(tmp_path / "own"))
    assert VerdictCache().root == tmp_path / "own/verdicts"
    monkeypatch.delenv("GRISTMILL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert VerdictCache().root == tmp_path / "gristmill/verdicts"


def test_the_tokenizers_digest_follows_its_files(tmp_path: Path) -> None:
    for name, text in {"tokenizer.json": "{}", "config.json": '{"vocab_size": 8}', "model.safetensors": "w"}.items():
        (tmp_path / name).write_text(text)
    first = tokenizer_digest(str(tmp_path))
    (tmp_path / "model.safetensors").write_text("other weights")
    assert tokenizer_digest(str(tmp_path)) == first
    seen = {first}
    for name in ("tokenizer.json", "config.json", "added_tokens.json"):
        (tmp_path / name).write_text(json.dumps({"changed": name}))
        seen.add(tokenizer_digest(str(tmp_path)))
    assert len(seen) == 4
    assert len(tokenizer_digest(resolve("embedded"))) == 16


def test_no_tokenizer_no_digest(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for model in (str(tmp_path), "nobody/no-such-model", str(tmp_path / "nowhere")):
        with pytest.raises(EngineError, match=r"tokenizer|no model"):
            tokenizer_digest(model)
