"""Since: what an incremental run leaves out, by what the last run of the job holds.

last run's index ── doubts (on request, or because a run is gone) ── one pass over the input ── units of the rest
the run's rows + what is carried over ── index of this run, list of what is superseded ── manifest
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from pipeline.errors import OutputError, RunChangedError
from pipeline.job import JobConfig
from pipeline.records import Manifest
from pipeline.runtime.input import InputScan, scan
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.commit import Run
from pipeline.runtime.output.gather import gather
from pipeline.runtime.output.identity import Identity, work_of
from pipeline.runtime.output.run_record import read_run_record
from pipeline.runtime.since.entries import (
    ASKED,
    CHANGED,
    DOUBTED,
    FRESH,
    KEPT,
    LOST,
    NEW,
    REGAINED,
    RETURNED,
    WORDS,
    Doubts,
    Entries,
    Pass,
)
from pipeline.runtime.since.index import INDEX, SUPERSEDED, Parts, index_schema, read_parts, superseded_schema
from pipeline.runtime.since.last import Base, claim, is_committed, last_run
from pipeline.runtime.since.rows import THREADS, Present, carried, made
from pipeline.runtime.since.saved import key_of, load, save
from pipeline.runtime.since.work import Work
from pipeline.runtime.store import Store, writing

AGAIN = ("rejected", "degraded", "engine", "all")
"""What can be asked for: documents of a status; those made by another engine, sampling or retries; all."""

_FOUND = ("new", "changed", "lost", "returned", "gone", "newly_repeated")
"""Documents that are to be done whatever is asked for."""
_MADE_BY = ("engine.", "engines.", "sampling.", "retry.")
_BY_GROUP = ("schema ", "prompt of ", "grammar of ")
_BASES = ("since", "lost")
_COLUMNS = ["status", "run_id", "gone", "repeats", "id_hash", "reuse_digest"]


def since_last(job: JobConfig, lookups: Digests, output: Store, again: Collection[str] = ()) -> Since:
    """What an incremental run of a job starts from. `again` are some of AGAIN.

    Raises:
        OutputError: the output, or the index of the last run, cannot be read.
    """
    return Since(job, lookups, output, last_run(output, job.name), frozenset(again))


class Since:
    """An incremental run, from its base to its index. `base` is None for the first one."""

    def __init__(
        self, job: JobConfig, lookups: Digests, output: Store, base: Base | None, again: frozenset[str]
    ) -> None:
        self._job = job
        self._work = Work(job, lookups)
        self._lookups = lookups
        self._output = output
        self.base = base
        self._again = again
        self._doubts = self._doubted()
        parts = read_parts(base.store, base.files, _COLUMNS) if base else ()
        self._entries = Entries.of(parts, self._doubts)
        self._met = Pass(self._entries, self._work)

    @property
    def origin(self) -> dict[str, str]:
        """What the run's identity says of where it starts from: another base is another run."""
        more = {"again": ",".join(sorted(self._again)), "lost": ",".join(sorted(self._doubts.lost))}
        return {"since": self.base.run_id if self.base else ""} | {key: value for key, value in more.items() if value}

    def scan(self, unit_documents: int | None) -> InputScan:
        """The units of what is to be extracted. A pass that was interrupted after it, on the same input, is not made
        again; saving it is no more than a help.

        Raises:
            InputError: as `scan`.
        """
        source, store, name, base = self._job.input, self._output, self._job.name, self.origin
        if "engine" in self._again:
            base |= {"made otherwise": ",".join(sorted(self._doubts.runs))}
        key = key_of(source, unit_documents, base)
        with contextlib.suppress(OSError):
            if key and (saved := load(store, name, key, source, (self._entries, self._work))) is not None:
                found, met = saved
                self._forget(met)
                return found
        found = scan(source, unit_documents, self.select())
        if key and key_of(source, unit_documents, base) == key:  # nothing was written while it was read
            with contextlib.suppress(OSError):
                save(store, name, key, found, self._met, self._work)
        return found

    def select(self) -> Pass:
        """Forgets what was met of the input so far. What is returned is to be called for each of its rows, in order."""
        self._forget(Pass(self._entries, self._work))
        return self._met

    def _forget(self, instead: Pass) -> None:
        self._met = instead
        self.__dict__.pop("counts", None)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Documents of the input by what becomes of them, and those that are `gone` from it. Of further rows of ids
        whose document is left out: those that are left out as well (`repeated`) and those that are new."""
        found = self._met.counts()
        return {
            "new": found[NEW],
            "changed": found[CHANGED],
            "asked": found[ASKED],
            "lost": found[REGAINED],
            "unchanged": found[KEPT],
            "returned": found[RETURNED],
            "gone": found[FRESH] + found[DOUBTED] + found[LOST],
            "repeated": self._met.repeats.total() - self._met.further,
            "newly_repeated": self._met.further,
        }

    @property
    def examples(self) -> tuple[str, ...]:
        """A few ids of the `repeated` rows."""
        return tuple(self._met.examples)

    def told(self) -> str:
        """The counts in one line, for people."""
        if self.base is None:
            return f"the first incremental run of `{self._job.name}`: {self.counts['new']} documents, all new"
        counts = ", ".join(f"{self.counts[name]} {word}" for name, word in WORDS.items() if self.counts[name])
        return f"since run {self.base.run_id}: {counts or 'no documents'}"

    def done(self, identity: Identity | None = None) -> tuple[str, Manifest] | None:
        """Where the last run lies, and its manifest, if the input is what it left, or if, by the identity that a new
        run would have, it is this very one: then there is nothing to run."""
        if self.base is None or not (self.nothing or (identity is not None and self.is_done(identity))):
            return None
        return self.base.store.where, self.base.manifest

    @property
    def nothing(self) -> bool:
        """Whether the input is what the last run left: then there is nothing to run, and nothing to record."""
        same = ("unchanged", "repeated")
        return self.base is not None and not any(n for name, n in self.counts.items() if name not in same)

    def is_done(self, identity: Identity) -> bool:
        """Whether the last run is this very one: what it was asked for is done, and a rerun does nothing."""
        if any(self.counts[name] for name in _FOUND):
            return False
        record = read_run_record(self.base.store) if self.base and self._again else None
        if record is None:
            return False
        before, now = ({k: v for k, v in one.items() if k not in _BASES} for one in (record["origin"], identity.origin))
        names = {name for name in {*record["work"], *identity.work} if not name.startswith(_BY_GROUP)}
        names |= {*record["work"]} & {*identity.work}
        return bool(before == now and not set(identity.differences(record["work"])) & names)

    def finish(self, run: Run) -> dict[str, Any]:
        """Take the run's number, write the index and what is superseded; what the manifest is to say of them.

        What it does has no effect until the manifest is there, and is done again by a resumed run.

        Raises:
            RunChangedError: another run of the job was committed since this one began.
            OutputError: the rows that were written are not those that were chosen, or something cannot be read or
                written.
            OutcomeUnknownError: nobody can tell whether the number was taken.
        """
        self.check(run)
        run_id, sequence = run.identity.run_id, claim(self._output, self._job.name, run.identity.run_id)
        files = gather(run.store, sorted(run.committed_units())).files
        index, superseded = Parts(run.store, INDEX, index_schema()), Parts(run.store, SUPERSEDED, superseded_schema())
        tally = Present()
        with writing(f"the index of {run.where}"):
            parts = read_parts(self.base.store, self.base.files) if self.base else ()
            for rows, lost in carried(parts, self._entries, self._met, sequence):
                tally.add(rows)
                index.add(rows)
                superseded.add(lost)
            for rows in made(run.store, run_id, files, self._met):
                tally.add(rows)
                index.add(rows)
            written = {"index": index.close(), "superseded": superseded.close()}
        expected = sum(self.counts[key] for key in ("new", "changed", "asked", "lost", "unchanged", "returned"))
        if tally.documents != expected:
            raise OutputError(
                f"not committed: the input holds {expected} documents and the index {tally.documents}. "
                f"{run.where} is kept as it is; please report this."
            )
        self.check(run)  # writing took a while
        numbers = {"since": self.base.run_id if self.base else None, "sequence": sequence, "again": sorted(self._again)}
        counted = {"documents": expected, **self.counts, "repeated_ids": list(self.examples)}
        return {**numbers, **counted, "runs": dict(sorted(tally.runs.items())), **written}

    def check(self, run: Run) -> None:
        """To be asked last before the manifest is published, too: two runs must not start from one base.

        Raises:
            RunChangedError: another run of the job was committed since this one began.
        """
        last = last_run(self._output, self._job.name)
        if (last and last.run_id) != (self.base and self.base.run_id):
            now = last.store.where if last else "another run, or its base is gone"
            raise RunChangedError(
                f"{run.where} is not committed: the last run of `{self._job.name}` is no longer the one that it began "
                f"from, but {now}. Run the same command again: it starts from there, and extracts only what that run "
                "does not hold."
            )

    def _doubted(self) -> Doubts:
        if self.base is None:
            return Doubts()
        runs = list(self.base.manifest.incremental["runs"])
        with ThreadPoolExecutor(THREADS, thread_name_prefix="runs") as pool:
            there = list(pool.map(lambda one: is_committed(self._output, one), runs))
        lost = frozenset(one for one, committed in zip(runs, there, strict=True) if not committed)
        if "all" in self._again:
            return Doubts(frozenset(("valid", "degraded", "rejected")), lost=lost)
        statuses = self._again & {"rejected", "degraded"}
        others = frozenset(runs) - lost if "engine" in self._again else frozenset()
        return Doubts(statuses, frozenset(filter(self._made_otherwise, others)), lost)

    def _made_otherwise(self, run_id: str) -> bool:
        """Whether a run had another engine, sampling or retries than the job has now."""
        record = read_run_record(self._output.at(f"run={run_id}"))
        now = json.loads(json.dumps(_made_by(work_of(self._job, {}, self._lookups))))
        return record is None or _made_by(record["work"]) != now


def _made_by(work: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in work.items() if name.startswith(_MADE_BY)}
