"""Sampled: the part of the input that is a seeded share of the documents of another run, committed before.

Its units are cut out of that run's, so what came to the input since is none of its business, whatever part of the
input that run was about itself, and no document can be in it that is not in that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import InputError, OutputError
from pipeline.job import InputConfig, JobConfig
from pipeline.records import Manifest
from pipeline.runtime.input import InputScan, Unit, saved
from pipeline.runtime.input.locate import Located, place_of
from pipeline.runtime.input.share import share_of
from pipeline.runtime.output.commit import Run, read_manifest
from pipeline.runtime.output.gather import THREADS, commit_record, committed_units
from pipeline.runtime.output.identity import Identity
from pipeline.runtime.output.run_record import read_run_record, reading
from pipeline.runtime.store import Store
from pipeline.schema.fingerprint import digest

_NOT_READING = {"path", "limit", "since"}
"""Keys of `input` that say which rows are taken, and not how one is read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A `share` (above 0, at most 1) of the documents of the committed run in `of`, picked by `seed`."""

    of: Store
    share: float
    seed: int

    def holds(self, document_id: str) -> bool:
        """Whether a document is picked: the same on every machine and in every run, and a larger share of one seed
        holds all of a smaller one."""
        drawn = digest(["share", self.seed, document_id])
        return int(drawn, 16) < self.share * 16.0 ** len(drawn)


class Sampled:
    """A `runtime.source.Source`."""

    def __init__(self, job: JobConfig, sample: Sample, output: Store) -> None:
        manifest, record = read_manifest(sample.of), read_run_record(sample.of)
        if manifest is None or record is None:
            raise OutputError(f"{sample.of.where} is not a committed run: there is nothing to take a share of.")
        self._manifest = manifest
        self._record = record
        self._input = job.input
        self._sample = sample
        self._output = output

    @property
    def origin(self) -> dict[str, str]:
        """Another run, share or seed is another run."""
        sample = self._sample
        return {"sample of": self._manifest.run_id, "share": repr(sample.share), "seed": str(sample.seed)}

    def scan(self, unit_documents: int | None) -> InputScan:
        """The units of the share. Saved beside the runs: a resumed run does not read for them again.

        Raises:
            InputError: the input is gone, is read otherwise than that run read it, or holds it no longer.
            OutputError: what that run says of its units cannot be read.
        """
        self._check_reading()
        if not (units := self._units()):
            raise InputError(f"{self._sample.of.where} has no documents, so there is none to take a share of.")
        about = digest([saved.VERSION, self._input.model_dump(mode="json", exclude={"path"}), unit_documents])
        key = f"{saved.SCANS}/{digest(['sample', self._manifest.job])}-{digest([self.origin, about])}.json.gz"
        place = replace(place_of(self._input), base=units[0].base)
        if (found := saved.load(self._output, key, Located(place, units[0].format, ()))) is not None:
            return found
        snapshot = str(self._record["origin"]["input"])
        found = share_of(units, self._input, snapshot, unit_documents, self._sample.holds)
        saved.save(self._output, key, found)
        return found

    def done(self, identity: Identity | None = None) -> tuple[str, Manifest] | None:
        """Its own run tells."""
        return None

    def told(self) -> str:
        """What it is a share of."""
        sample = self._sample
        return (
            f"{sample.share:.6g} of the {self._manifest.documents} documents of {sample.of.where}, seed {sample.seed}"
        )

    def finish(self, run: Run) -> Mapping[str, Any] | None:
        """The identity says it all."""
        return None

    def check(self, run: Run) -> None:
        """Nothing that it rests on can change: a committed run stays."""

    def _check_reading(self) -> None:
        """Raises InputError if rows would become other documents than that run had."""
        try:
            theirs = InputConfig(**self._record["input"]).model_dump(exclude=_NOT_READING)
        except (TypeError, ValueError, KeyError) as error:
            raise OutputError(f"what {self._sample.of.where} says of its input cannot be read: {error}") from error
        ours = self._input.model_dump(exclude=_NOT_READING)
        if differing := sorted(name for name in ours if ours[name] != theirs[name]):
            raise InputError(
                f"`input` is no longer what {self._sample.of.where} was read with (changed: {', '.join(differing)}). "
                "Run the job itself first, then take a share of that run."
            )

    def _units(self) -> list[Unit]:
        store = self._sample.of
        with reading(f"{store.where}/_commits"), ThreadPoolExecutor(THREADS, thread_name_prefix="units") as pool:
            names = committed_units(store)
            units = list(pool.map(lambda name: Unit.from_json(commit_record(store, name)["input"]), names))
        if sum(unit.rows for unit in units) != self._manifest.documents:
            raise OutputError(f"the commit records in {store.where} are not those that its manifest was made from.")
        return units
