"""Rows of a run that was broken off, so that `--resume` need not measure them again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pipeline
from bench.coverage.measure import Row
from bench.coverage.sets import Case
from pipeline.compile.cache import VerdictCache
from pipeline.engines import models


class Kept:
    """Rows on disk by case, program and options. Rows of a changed program are never found."""

    def __init__(self, options: dict[str, Any], root: Path | None = None) -> None:
        self._cache = VerdictCache(root or models.cache_directory() / "coverage")
        self._options = options | {"program": _program()}

    def get(self, case: Case) -> Row | None:
        """The row of a case, if it was measured before."""
        row: Row | None = self._cache.get(self._key(case))
        return row

    def put(self, case: Case, row: Row) -> None:
        """Keep a row."""
        self._cache.put(self._key(case), row)

    def _key(self, case: Case) -> dict[str, Any]:
        # By its text: the order of keys is part of a schema here, and a key of the cache does not see it.
        text = repr(asdict(case)).encode("utf-8", "surrogatepass")
        return self._options | {"case": hashlib.sha256(text).hexdigest()}


def _program() -> str:
    files = [*Path(pipeline.__file__).parent.rglob("*.py"), *Path(__file__).parent.glob("*.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
