"""Exactly once: attempts may repeat, publication happens once.

A run lies in one place of the output and holds `run.json` (its identity and job), one `_commits/<unit>.json` per
finished unit, `duplicates.json` and, last, `manifest.json`. Commit records and the manifest are created exclusively:
whoever comes second finds the object and drops what it made. Readers trust only files that the manifest names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pipeline import __version__
from pipeline.errors import OutputError, RunChangedError
from pipeline.job import JobConfig
from pipeline.observe.metrics.numbers import NO_SPEEDS, Speeds
from pipeline.records import STATUSES, Manifest
from pipeline.runtime.input import InputScan
from pipeline.runtime.input.saved import VERSION
from pipeline.runtime.output.duplicates import find_duplicates
from pipeline.runtime.output.gather import COMMITS, Gathered, commit_key, committed_units, gather, unit_of
from pipeline.runtime.output.identity import Identity
from pipeline.runtime.output.metrics_file import write_metrics
from pipeline.runtime.output.run_record import RUN, now, read_run_record, reading, run_record, runs_of, versions
from pipeline.runtime.output.sweep import data_files, sweep, sweep_index
from pipeline.runtime.store import Store, json_bytes, json_object, publish, writing

MANIFEST = "manifest.json"
DUPLICATES = "duplicates.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One run, opened by `open_run`; `store` is its place in the output. `begun`: it was not there before."""

    store: Store
    identity: Identity
    unit_documents: int | None
    started: str
    begun: bool = False

    @property
    def where(self) -> str:
        """The run's place as people see it."""
        return self.store.where

    def manifest(self) -> Manifest | None:
        """The committed manifest, or None while the run is not finished."""
        return read_manifest(self.store)

    def committed_units(self) -> set[str]:
        """The ids of units that are written and will not be processed again: one listing.

        Raises:
            OutputError: the run's place cannot be listed.
        """
        with reading(f"{self.where}/{COMMITS}"):
            return set(committed_units(self.store))

    def commit(
        self,
        found: InputScan,
        schemas: Mapping[str, str],
        incremental: Mapping[str, Any] | None = None,
        last_look: Callable[[], object] = lambda: None,
        speeds: Speeds = NO_SPEEDS,
        clock: Mapping[str, float] | None = None,
    ) -> Manifest:
        """Check that every document of the input was written exactly once, report duplicates and metrics, then publish.

        `incremental` is told in the manifest as it is; `last_look` is called right before that is published; `speeds`
        are told in the metrics; `clock` stands in the totals as it is.

        Raises:
            OutputError: the written rows are not the input's rows, id by id, or a file is not as it was written, or
                the manifest cannot be written; nothing is published.
            OutcomeUnknownError: nobody can tell whether the manifest was published.
        """
        if (published := self.manifest()) is not None:
            return published
        gathered = gather(self.store, sorted(self.committed_units()))
        manifest = self._manifest(gathered, schemas, incremental or {})
        self._check(found, gathered.units, manifest)
        with reading(self.where):
            there = data_files(self.store)
        self._check_files(gathered, there)
        with writing(f"the manifest of {self.where}"):
            sweep(self.store, there, {file["path"] for file in manifest.files})
            metrics = write_metrics(self.store, manifest, gathered, found.schema_counts, speeds)
            reports = {"duplicates": self._report_duplicates(gathered), "metrics": metrics, "clock": dict(clock or {})}
            manifest = dataclasses.replace(manifest, totals={**manifest.totals, **reports})
            last_look()
            publish(self.store, MANIFEST, {**_members(manifest), "attempt": uuid.uuid4().hex})
        published = self.manifest()
        assert published is not None
        if published.incremental:
            with contextlib.suppress(OSError):  # the manifest does not name it, and a rerun tries again
                sweep_index(self.store, _named(published))
        return published

    def sweep_late(self) -> None:
        """Of a committed run, remove what came after the manifest: files of attempts that had lost and did not know.

        Nothing that cannot be removed is told: the manifest does not name it.
        """
        manifest = self.manifest()
        if manifest is not None:
            with contextlib.suppress(OSError):
                sweep(self.store, data_files(self.store), _named(manifest))
                sweep_index(self.store, _named(manifest))

    def _manifest(self, gathered: Gathered, schemas: Mapping[str, str], incremental: Mapping[str, Any]) -> Manifest:
        totals = gathered.totals
        return Manifest(
            run_id=self.identity.run_id,
            job=self.identity.origin["job"],
            documents=totals.documents,
            counts={status: totals.statuses[status] for status in STATUSES},
            ids_digest=gathered.ids_digest,
            schemas=schemas,
            files=tuple(gathered.files),
            totals=totals.to_json(),
            versions=versions(),
            started=self.started,
            committed=now("milliseconds"),  # tells which of two runs is the later one
            incremental=incremental,
        )

    def _report_duplicates(self, gathered: Gathered) -> dict[str, Any]:
        """Write the report beside the manifest that will name it. A later committer of a run finds it written."""
        found = find_duplicates(self.store, gathered.files, gathered.digests)
        if self.store.size(MANIFEST) is None:
            self.store.put(DUPLICATES, json_bytes(found.to_json()))
        return {"file": DUPLICATES, **found.counts()}

    def _check(self, found: InputScan, units: list[str], manifest: Manifest) -> None:
        expected = [unit.id for unit in found.units]
        written = sum(file["rows"] for file in manifest.files)
        complaints = []
        if sorted(units) != sorted(expected):
            complaints.append(f"{len(units)} units are committed, the input has {len(expected)}")
        if not manifest.documents == written == sum(manifest.counts.values()) == found.documents:
            complaints.append(f"the input has {found.documents} documents, {written} rows were written")
        if manifest.ids_digest != found.ids_digest:
            complaints.append("the ids written are not the ids read")
        if complaints:
            raise OutputError(
                f"not committed: {'; '.join(complaints)}. {self.where} is kept as it is; "
                "did the input change while the run was under way? Run again to re-read it, and report this if not."
            )

    def _check_files(self, gathered: Gathered, there: Mapping[str, int]) -> None:
        """Every file that the manifest will name is there, as long as it was written."""
        spoilt = sorted(file["path"] for file in gathered.files if there.get(file["path"]) != file["bytes"])
        if spoilt:
            record = commit_key(unit_of(spoilt[0]))
            raise OutputError(
                f"not committed: {len(spoilt)} files are missing or not as long as they were written, such as "
                f"{spoilt[0]}. Put them back, or delete {self.where}/{record} and its like to have the documents of "
                "these units extracted again."
            )


def read_manifest(store: Store) -> Manifest | None:
    """The manifest of a run, or None if the run is not committed.

    Raises:
        OutputError: it cannot be read, or is one that this version did not write.
    """
    with reading(f"{store.where}/{MANIFEST}"):
        data = store.get(MANIFEST)
    if data is None:
        return None
    members = json_object(data) or {}
    members.pop("attempt", None)
    try:
        return Manifest(**{**members, "files": tuple(members["files"])})
    except (KeyError, TypeError) as error:
        raise OutputError(
            f"{store.where}/{MANIFEST} is not a manifest that gristmill {__version__} can read."
        ) from error


def open_run(
    job: JobConfig, identity: Identity, output: Store, *, fresh: bool = False, leave: Collection[str] = ()
) -> Run:
    """Create or reopen a run in an output, which is the job's. Unfinished runs whose work differs in nothing but
    `leave` are left as they are: whoever changed that said so.

    Raises:
        OutputError: the output cannot be written, or the run's place holds a `run.json` of something else.
        RunChangedError: another, unfinished run of the same job on the same input exists, and `fresh` is not set.
    """
    store = output.at(f"run={identity.run_id}")
    with reading(store.where):
        created = store.size(RUN) is None
    if created:
        if not fresh:
            _refuse_changed(output, identity, set(leave))
        record: Mapping[str, Any] = {**run_record(job, identity), "attempt": uuid.uuid4().hex}
        with writing(store.where):
            created = publish(store, RUN, record)
    if not created:
        record = read_run_record(store) or {}
        if record.get("run_id") != identity.run_id:
            raise OutputError(
                f"{store.where}/{RUN} is not what gristmill {__version__} writes there, so nobody can tell what else "
                "is there. Move it all away, or choose another `output`."
            )
        if record.get("cut", VERSION) != VERSION:
            raise RunChangedError(
                f"{store.where} was begun by another version of gristmill, which cuts an input into other units. "
                "Finish it with that version, or move it away to begin anew."
            )
    return Run(store, identity, record["unit_documents"], record["started"], begun=created)


def _refuse_changed(output: Store, identity: Identity, leave: set[str]) -> None:
    """This very run may always go on, and is not there yet."""
    for store in runs_of(output):
        other = None
        with contextlib.suppress(OutputError):  # nobody's run that can be read
            other = read_run_record(store)
        if other is None or other["origin"] != identity.origin or other["run_id"] == identity.run_id:
            continue
        with reading(store.where):
            if store.size(MANIFEST) is not None:
                continue
        differences = identity.differences(other["work"])
        if leave.issuperset(differences):
            continue
        raise RunChangedError(
            f"{store.where} is an unfinished run of this job on this input, begun {other['started']}. "
            f"Since then changed: {', '.join(differences)}. Records made before and after the change must not be "
            "mixed: undo the change to finish that run, or start a new one with --fresh (the unfinished one stays)."
        )


def _named(manifest: Manifest) -> set[str]:
    """The keys of all files that a manifest names."""
    told = [file for part in manifest.incremental.values() if isinstance(part, list) for file in part]
    return {file["path"] for file in [*manifest.files, *(one for one in told if isinstance(one, dict))]}


def _members(manifest: Manifest) -> dict[str, Any]:
    """Its members as they are; `dataclasses.asdict` would copy every file's description."""
    return {name: getattr(manifest, name) for name in manifest.__slots__}
