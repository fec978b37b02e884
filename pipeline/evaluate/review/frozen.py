"""Frozen: a set on disk. Each version is a folder that is made whole and never changed; digests tell if one was.

SET/v0001/manifest.json                       what it holds, sha256 of each other file
         /cases.jsonl                         a case a line
         /works/<digest>.json                 the config that cases were frozen with
         /schemas/<digest>/<name>/<version>/  their schemas
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from pipeline.errors import InputError, OutputError
from pipeline.evaluate.review.case import Case
from pipeline.job import JobConfig, WorkConfig
from pipeline.runtime.output.run_record import now, versions
from pipeline.schema.fingerprint import digest

FORMAT = 1
MANIFEST, CASES = "manifest.json", "cases.jsonl"
MAX_CASES = 10_000
_VERSION = re.compile(r"v([0-9]{4,})")
_PARTS = ("schema.json", "instructions.md", "examples.jsonl")

Files = Mapping[str, bytes]
"""Content by path below a version's folder."""


@dataclass(frozen=True, slots=True)
class FrozenSet:
    """One version of a set; `files` are those beside cases and manifest. Version 0 is that of a set that is empty."""

    version: int = 0
    root: Path = Path()
    cases: tuple[Case, ...] = ()
    files: Files = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    def work(self, case: Case) -> WorkConfig:
        """The config that a case was frozen with; its schemas are those of the set.

        Raises:
            InputError: this version of the program does not know it.
        """
        path = f"works/{case.work}.json"
        try:
            work = WorkConfig.model_validate_json(self.files[path])
        except (KeyError, ValidationError) as error:
            words = f"{self.root}/{path} is no config that this version knows: {error}. Freeze again."
            raise InputError(words) from error
        return work.model_copy(update={"schemas": str(self.root / "schemas" / case.schemas)})


def work_of(job: JobConfig) -> WorkConfig:
    """What of a job decides over kept answers."""
    kept = job.model_dump(mode="json", by_alias=True, include=set(WorkConfig.model_fields) - {"events"})
    return WorkConfig.model_validate(kept)


def work_file(work: WorkConfig) -> tuple[str, Files]:
    """The digest of a config, and the file that keeps it."""
    kept = work.model_dump(mode="json", by_alias=True, include=set(WorkConfig.model_fields) - {"events", "schemas"})
    name = digest(kept)
    return name, {f"works/{name}.json": _bytes(kept)}


def schema_files(root: str, names: Sequence[str]) -> tuple[str, Files]:
    """The digest of some schemas, and the files that keep them. One that is not there is left out.

    Raises:
        InputError: a file of one cannot be read.
    """
    found: dict[str, bytes] = {}
    for name in sorted(set(names)):
        folder, _, version = name.partition("@")
        for part in _PARTS:
            path = Path(root, folder, version, part)
            try:
                found[f"{folder}/{version}/{part}"] = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror}.") from error
    key = digest({path: _sha256(content) for path, content in found.items()})
    return key, {f"schemas/{key}/{path}": content for path, content in found.items()}


def read_set(path: Path) -> FrozenSet:
    """The latest version of a set, or the one whose folder is given; that of version 0 if there is none.

    Raises:
        InputError: it is damaged, was changed, or is of another format.
    """
    root = path
    if not (path / MANIFEST).is_file():
        numbers = [int(found[1]) for one in _inside(path) if (found := _VERSION.fullmatch(one))]
        if not numbers:
            return FrozenSet()
        root = path / _folder(max(numbers))
    manifest = _json(root / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise InputError(f"{root} is of format {manifest.get('format')!r}; this version reads {FORMAT}.")
    files = {}
    for name, sha in manifest["files"].items():
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise InputError(f"{root / MANIFEST} names a file outside of the set.")
        files[name] = _read(root / name)
        if _sha256(files[name]) != sha:
            raise InputError(f"{root / name} was changed since it was frozen. Take it as it was, or freeze again.")
    lines = files.pop(CASES, b"").splitlines()
    if len(lines) > MAX_CASES:
        raise InputError(f"{root} holds more than {MAX_CASES} cases.")
    try:
        cases = tuple(_case(line) for line in lines)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{root / CASES} cannot be read: {error}.") from error
    return FrozenSet(int(manifest["version"]), root, cases, files, manifest)


def check_open(path: Path, found: FrozenSet) -> None:
    """Refuse to add to the folder of one version.

    Raises:
        InputError: it is one.
    """
    if found.version and found.root == path:
        raise InputError(f"{path} is one version of a set, and is not changed: give the folder of the set.")


def write_set(path: Path, before: FrozenSet, cases: Sequence[Case], files: Files, told: Mapping[str, Any]) -> Path:
    """Write the next version of a set: these cases, and `files` beside them. `told` goes into its manifest.

    Raises:
        OutputError: it cannot be written, or somebody else wrote that version meanwhile.
        InputError: it would be too large.
    """
    if len(cases) > MAX_CASES:
        raise InputError(f"{path} would hold more than {MAX_CASES} cases: begin another set.")
    lines = b"".join(_bytes(case.to_json()) for case in cases)
    needed = {f"works/{case.work}.json" for case in cases} | {f"schemas/{case.schemas}/" for case in cases}
    kept = {name: content for name, content in files.items() if any(name.startswith(one) for one in needed)}
    content = {CASES: lines, **kept}
    manifest = {
        "format": FORMAT,
        "version": before.version + 1,
        "created": now(),
        "versions": versions(),
        "cases": len(cases),
        "counts": dict(Counter(case.outcome["status"] for case in cases)),
        "runs": sorted({case.run for case in cases}),
        **told,
        "files": {name: _sha256(data) for name, data in sorted(content.items())},
    }
    final, new = path / _folder(before.version + 1), path / f".new-{uuid.uuid4().hex}"
    try:
        for name, data in {**content, MANIFEST: _bytes(manifest, indent=1)}.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(data)
        os.rename(new, final)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise OutputError(f"cannot write {final}: {error.strerror}. Nothing of it is left.") from error
    return final


def _case(line: bytes) -> Case:
    data = json.loads(line)
    return Case(**{**data, "notes": tuple(data["notes"])})


def _folder(version: int) -> str:
    return f"v{version:04d}"


def _inside(path: Path) -> list[str]:
    try:
        return [one.name for one in path.iterdir() if one.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot look into {path}: {error.strerror}.") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}.") from error
    kinds = {"files": dict, "version": int}
    if not isinstance(data, dict) or not all(isinstance(data.get(name), kind) for name, kind in kinds.items()):
        raise InputError(f"{path} is no manifest of a set.")
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}. The set is not whole.") from error


def _bytes(value: Any, indent: int | None = None) -> bytes:
    # ASCII: half a surrogate pair in an answer has no other form, and no line ends within a case.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent).encode("ascii") + b"\n"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
