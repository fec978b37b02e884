"""Verdicts about schemas on disk, so that a schema is probed once per machine and set of versions.

Nothing here is trusted: a file counts only if it holds the very key that is asked for and its checksum is right.
Losing the cache costs time and nothing else, so no write is synced and no failure stops anybody.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.engines import models
from pipeline.errors import EngineError
from pipeline.schema.fingerprint import canonical

FORMAT = 1
"""Version of the file layout. What a verdict means is the business of the key."""

_SUFFIX = ".json"
_ABANDONED_SECONDS = 3600
_PRUNE_EVERY = 64
_MAX_FILE = 64 << 20
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "tekken.json",
    # Holds the size of the model's vocabulary, which the masks depend on.
    "config.json",
)


class VerdictCache:
    """A directory of verdicts. Safe under concurrent readers and writers; a directory that fails is said once."""

    def __init__(self, root: Path | None = None, max_files: int = 20_000, max_mib: int = 512) -> None:
        """`root`: by default `verdicts` in the user's cache directory, beside the converted model."""
        self.root = root if root is not None else models.cache_directory() / "verdicts"
        self._max_files = max_files
        self._max_bytes = max_mib << 20
        self._puts = 0
        self._told = False

    def get(self, key: Mapping[str, Any]) -> Any:
        """The value that was put under an equal key, or None. A file that is not whole or not ours is absent."""
        path, text = self._place(key)
        try:
            # Neither a pipe nor a directory of that name may hold us up.
            if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > _MAX_FILE:
                return None
            content = json.loads(path.read_bytes())
            if content["key"] != json.loads(text) or content["check"] != _check(text, content["value"]):
                return None
        # Whatever stands in the file, it is not a verdict: not JSON, too deep, another layout.
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # what is used stays longest
        return content["value"]

    def put(self, key: Mapping[str, Any], value: Any) -> None:
        """Keep a JSON value (not None, which means absent).

        Raises:
            ValueError: key or value is not JSON.
        """
        path, text = self._place(key)
        if value is None:
            raise ValueError("None cannot be cached: `get` answers it for what is absent")
        _check(text, value)  # it is JSON
        value = json.loads(json.dumps(value))  # as it will be read: tuples are lists, numbers as keys are strings
        content = {"key": json.loads(text), "value": value, "check": _check(text, value)}
        data = canonical(content).encode()
        try:
            self._write(path, data)
            if self._puts % _PRUNE_EVERY == 0:
                self._prune()
            self._puts += 1
        except OSError as error:
            self._tell(error)

    def _place(self, key: Mapping[str, Any]) -> tuple[Path, str]:
        try:
            text = canonical({"format": FORMAT, **key})
        except TypeError as error:
            raise ValueError(f"a cache key must be JSON: {error}") from error
        return self.root / (hashlib.sha256(text.encode()).hexdigest() + _SUFFIX), text

    def _write(self, path: Path, data: bytes) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.root, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _prune(self) -> None:
        """Remove the files not used for longest beyond the bounds, and what interrupted writers left."""
        found: list[tuple[float, int, str]] = []
        for entry in os.scandir(self.root):
            with contextlib.suppress(FileNotFoundError):  # another process prunes as well
                if not entry.is_file(follow_symlinks=False):
                    continue
                state = entry.stat(follow_symlinks=False)
                if entry.name.endswith(_SUFFIX):
                    found.append((state.st_mtime, state.st_size, entry.path))
                elif entry.name.endswith(".part") and state.st_mtime < time.time() - _ABANDONED_SECONDS:
                    os.unlink(entry.path)
        found.sort()
        count, total = len(found), sum(size for _, size, _ in found)
        for _, size, path in found:
            if count <= self._max_files and total <= self._max_bytes:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            count, total = count - 1, total - size

    def _tell(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            print(
                f"verdicts about schemas are not kept: {error}. Every start probes anew; "
                "point GRISTMILL_CACHE at a directory that can be written.",
                file=sys.stderr,
            )


def tokenizer_digest(model: str) -> str:
    """16 hex digits over the tokenizer's files and the configuration of a model: a directory or a cached hub name.

    Raises:
        EngineError: there is no such model on this machine, or it has no tokenizer file.
    """
    folder = Path(model)
    if not folder.is_dir():
        folder = _in_hub_cache(model)
    digest, seen = hashlib.sha256(), 0
    for name in _TOKENIZER_FILES:
        file = folder / name
        if file.is_file():
            seen += name != "config.json" and name != "tokenizer_config.json"
            with file.open("rb") as stream:
                digest.update(f"{name}:{hashlib.file_digest(stream, 'sha256').hexdigest()};".encode())
    if not seen:
        raise EngineError(f"{folder} holds no tokenizer file (tokenizer.json or its older forms).")
    return digest.hexdigest()[:16]


def _in_hub_cache(model: str) -> Path:
    from huggingface_hub import try_to_load_from_cache

    with contextlib.suppress(ValueError):  # a name that no hub can have
        found = try_to_load_from_cache(model, "config.json")
        if isinstance(found, str):
            return Path(found).parent
    raise EngineError(f"no model {model} on this machine: neither a directory nor in the hub cache.")


def _check(key_text: str, value: Any) -> str:
    try:
        return hashlib.sha256(f"{key_text}\n{canonical(value)}".encode()).hexdigest()
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a cached value must be JSON: {error}") from error
