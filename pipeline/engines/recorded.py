"""Recording completions, and playing them back as an engine.

A recording is a directory of JSON lines files (or one of them), a line per completion and per plan that the
recorded engine was started with. A completion is found by schema name and user message, and is played only under
the plan that it was recorded under.
`RecordedEngine` keeps keys and file offsets in memory, no texts.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pipeline.engines import Engine
from pipeline.errors import EngineError
from pipeline.job import RecordedConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan

_RECORD_AGAIN = "Record with `gristmill run --record DIR`."
_KEYS = ("key", "plan", "digest")
_FIELDS = frozenset(item.name for item in fields(Completion))


@dataclass(frozen=True, slots=True)
class _Line:
    """One recorded completion, or without one a plan; `plan` is the schema's name, `digest` the plan's."""

    key: str
    plan: str
    digest: str
    completion: Completion | None


class _Place(NamedTuple):
    file: int
    offset: int
    digest: str


class RecordingEngine:
    """Another engine, whose completions are also written to a file of this object's own in `directory`.

    Files of several recorders in one directory make up one recording, later files after earlier ones.
    """

    def __init__(self, inner: Engine, directory: str | Path) -> None:
        self._inner = inner
        self._directory = Path(directory)
        self._file: BinaryIO | None = None

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        await self._inner.start(plans)
        for plan in plans:
            self._write(_Line("", plan.name, plan.digest, None))

    async def close(self) -> None:
        await self._inner.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Answer as the inner engine does, and write the answer down before handing it on.

        Raises:
            EngineError: from the inner engine, or the recording cannot be written.
        """
        completion = await self._inner.generate(prompt, plan, sampling)
        self._write(_Line(_key(plan, prompt), plan.name, plan.digest, completion))
        return completion

    def _write(self, line: _Line) -> None:
        try:
            file = self._open()
            file.write(_encode(line))
            file.flush()
        except OSError as error:
            raise EngineError(f"cannot record into {self._directory}: {error}. Free space or drop --record.") from error

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            # Names sort by time, because that is the order of playing.
            name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.jsonl"
            self._file = (self._directory / name).open("xb")
        return self._file


class RecordedEngine:
    """Plays a recording without delay; token counts and times are those of the recorded engine.

    Several completions of one key are played in the order of recording, and then the last one again and
    again.
    """

    def __init__(self, config: RecordedConfig) -> None:
        self._path = Path(config.recording)
        self._files: list[Path] = []
        self._places: dict[str, list[_Place]] = {}
        self._played: dict[str, int] = {}
        self._digests: dict[str, set[str]] = {}

    async def start(self, plans: Sequence[DecodingPlan]) -> None:
        """Read the recording's keys.

        Raises:
            EngineError: it is missing, empty or damaged, or knows one of the plans not at all or only as it no
                longer is.
        """
        self._index()
        for plan in plans:
            recorded = self._digests.get(plan.name, set())
            if not recorded:
                raise EngineError(
                    f"the recording {self._path} holds nothing of schema {plan.name}, only of "
                    f"{', '.join(sorted(self._digests))}. {_RECORD_AGAIN}"
                )
            if plan.digest not in recorded:
                raise EngineError(
                    f"the recording {self._path} is stale: schema {plan.name} was recorded under plan "
                    f"{', '.join(sorted(recorded))} and is {plan.digest} now (schema, instructions, examples "
                    f"or back end changed). {_RECORD_AGAIN}"
                )

    async def close(self) -> None:
        self._played.clear()

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        """Play the next completion of this schema and user message.

        Raises:
            EngineError: the recording was taken away or damaged after it was indexed.
        """
        if not self._places:
            self._index()
        key = _key(plan, prompt)
        places = self._places.get(key, [])
        usable = [place for place in places if place.digest == plan.digest]
        if not places:
            return _failed(plan, "recording_missing", f"{self._path} holds no completion of this prompt")
        if not usable:
            detail = f"recorded under plan {places[-1].digest}, asked under plan {plan.digest}"
            return _failed(plan, "recording_stale", detail)
        turn = self._played.get(key, 0)
        self._played[key] = turn + 1
        completion = self._read(usable[min(turn, len(usable) - 1)])
        return replace(completion, engine=f"recorded:{completion.engine}")

    def _index(self) -> None:
        self._files = _recording_files(self._path)
        self._places, self._played, self._digests = {}, {}, {}
        for number, path in enumerate(self._files):
            for offset, line in _lines(path):
                # One string object per plan, not per line.
                plan_digest = sys.intern(line.digest)
                self._digests.setdefault(line.plan, set()).add(plan_digest)
                if line.completion is not None:
                    self._places.setdefault(line.key, []).append(_Place(number, offset, plan_digest))
        if not self._places:
            raise EngineError(f"the recording {self._path} is empty. {_RECORD_AGAIN}")

    def _read(self, place: _Place) -> Completion:
        path = self._files[place.file]
        try:
            with path.open("rb") as file:
                file.seek(place.offset)
                completion = _decode(file.readline()).completion
            if completion is None:
                raise ValueError("a plan where a completion was")
            return completion
        except (OSError, ValueError) as error:
            raise EngineError(f"the recording {path} changed while it was played: {error}") from error


def recorded_digests(recording: str) -> set[str]:
    """The digests of the plans that a recording was made under; none if it is not there, as its engine will say."""
    path = Path(recording)
    return {line.digest for file in _recording_files(path) for _, line in _lines(file)} if path.exists() else set()


def _key(plan: DecodingPlan, prompt: Prompt) -> str:
    return digest([plan.name, prompt.user])


def _failed(plan: DecodingPlan, error: str, detail: str) -> Completion:
    base = Completion("", "error", False, engine="recorded:", plan_digest=plan.digest)
    return replace(base, error=error, detail=detail)


def _recording_files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not path.exists():
        raise EngineError(f"there is no recording at {path}. {_RECORD_AGAIN}")
    return files


def _lines(path: Path) -> Iterator[tuple[int, _Line]]:
    """Each line with its offset in bytes.

    Raises:
        EngineError: the file cannot be read, or a line of it is not a recorded completion.
    """
    number, offset = 1, 0
    try:
        with path.open("rb") as file:
            for text in file:
                yield offset, _decode(text)
                number, offset = number + 1, offset + len(text)
    except OSError as error:
        raise EngineError(f"cannot read the recording {path}: {error.strerror}.") from error
    except ValueError as error:
        raise EngineError(
            f"{path}, line {number}: not a recorded completion ({error}). Delete the line or record again."
        ) from error


def _encode(line: _Line) -> bytes:
    # ASCII escapes carry lone surrogates, which UTF-8 cannot.
    return json.dumps(asdict(line), separators=(",", ":")).encode("ascii") + b"\n"


def _decode(text: bytes) -> _Line:
    """Raises ValueError, saying what is wrong with the line."""
    data: Any = json.loads(text)
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in _KEYS):
        raise ValueError("no key, plan or digest")
    saved = data.get("completion", False)
    if saved is None:
        return _Line(data["key"], data["plan"], data["digest"], None)
    if not isinstance(saved, dict) or not {"text", "finish_reason", "constrained"} <= set(saved) <= _FIELDS:
        raise ValueError("no completion, or one of another version")
    try:
        for name in ("token_ids", "token_ends"):
            saved[name] = tuple(map(int, saved.get(name, ())))
        scores = saved.get("logprobs", ())
        saved["unmasked"] = tuple((float(token), float(blanks)) for token, blanks in saved.get("unmasked", ()))
        saved["logprobs"] = tuple({int(token): score for token, score in row.items()} for row in scores)
    except (TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"damaged token_ids, token_ends, logprobs or unmasked: {error}") from error
    return _Line(data["key"], data["plan"], data["digest"], Completion(**saved))
