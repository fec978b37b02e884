"""Check: a set is played again, without a model, and what comes of it is held against what was frozen."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.evaluate.review.case import Case, Player, differing, outcome_json, recalled_of
from pipeline.evaluate.review.frozen import FrozenSet, check_open, read_set, schema_files, work_file, work_of, write_set
from pipeline.job import JobConfig, WorkConfig
from pipeline.jobfile import load_job
from pipeline.runtime.lookups import load_lookups
from pipeline.runtime.output.run_record import kept_job, versions
from pipeline.steps.rules import Lookups


@dataclass(frozen=True, slots=True)
class Result:
    """A case whose outcome is another one now. `words`: only in texts for people."""

    id: str
    schema: str
    frozen: str
    now: str
    differences: dict[str, dict[str, Any]]

    @property
    def words(self) -> bool:
        """Whether no program that reads outcomes would see a difference."""
        return all(one["words"] for one in self.differences.values())


@dataclass(slots=True)
class Checked:
    """What a check found. `changed` names packages that are not those that the set was frozen with; `accepted` is the
    new version that holds today's outcomes, empty if none was asked for or needed."""

    path: str
    version: int
    cases: int
    results: list[Result] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    accepted: str = ""

    @property
    def differing(self) -> int:
        """Cases that differ in more than words."""
        return sum(not result.words for result in self.results)


def check(path: Path, job_path: Path | None = None, *, accept: bool = False) -> Checked:
    """Play each case of a set's latest version, or of the version whose folder is given. With `job_path` it is played
    by a job's policy, schemas and lookups of today, and not by those that were frozen. `accept`: what comes of it
    becomes the next version.

    Raises:
        InputError: there is no set, or it is damaged.
        GristmillError: the job file or its lookups cannot be used.
        OutputError: the new version cannot be written.
    """
    frozen = read_set(path)
    if not frozen.cases:
        raise InputError(f"{path} holds no set: `gristmill review freeze RUN {path}` makes one.")
    if accept:
        check_open(path, frozen)
    found = Checked(str(frozen.root), frozen.version, len(frozen.cases), changed=_changed(frozen))
    today = _Today(frozen, load_job(job_path) if job_path else None)
    made = []
    for number, case in enumerate(frozen.cases, 1):
        try:
            now = today.case(case)
            differences = differing(case.outcome, now.outcome)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{frozen.root}: case {number} is none that this version knows: {error!r}.") from error
        made.append(now)
        if differences:
            statuses = case.outcome["status"], now.outcome["status"]
            found.results.append(Result(case.document["id"], case.document["schema"], *statuses, differences))
    if accept and found.results:
        kinds = Counter("words" if one.words else "differing" for one in found.results)
        told = {"redacted": frozen.manifest.get("redacted"), "accepted": dict(kinds)}
        found.accepted = str(write_set(path, frozen, made, {**frozen.files, **today.files}, told))
    return found


class _Today:
    """Plays cases by what they were frozen with, or by a job."""

    def __init__(self, frozen: FrozenSet, job: JobConfig | None) -> None:
        self._frozen = frozen
        self._players: dict[tuple[str, str], Player] = {}
        self._job: WorkConfig | None = None
        self._lookups: Lookups = {}
        self.files: dict[str, bytes] = {}
        if job:
            self._job = work_of(JobConfig.model_validate(kept_job(job)[0]))  # what is accepted is written down
            self._lookups = load_lookups(self._job)
            self._work, works = work_file(self._job)
            self._schemas, schemas = schema_files(job.schemas, [case.document["schema"] for case in frozen.cases])
            self.files = {**works, **schemas}

    def case(self, case: Case) -> Case:
        """The case with the outcome of today."""
        lookups = self._lookups if self._job else case.known()
        outcome, kept = self._player(case).play(recalled_of(case), lookups)
        made = dataclasses.replace(case, outcome=outcome_json(outcome))
        if self._job is None:
            return made
        return dataclasses.replace(made, work=self._work, schemas=self._schemas, lookups=kept)

    def _player(self, case: Case) -> Player:
        key = ("", "") if self._job else (case.work, case.schemas)
        if key not in self._players:
            self._players[key] = Player(self._job or self._frozen.work(case))
        return self._players[key]


def _changed(frozen: FrozenSet) -> list[str]:
    then, today = frozen.manifest.get("versions") or {}, versions()
    pairs = {name: (then.get(name, "none"), today.get(name, "none")) for name in sorted({*then, *today})}
    return [f"{name}: {before} then, {now} now" for name, (before, now) in pairs.items() if before != now]
