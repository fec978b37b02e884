"""Freeze: rows of a run, with the answers that it kept, become the next version of a set."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.evaluate.review.case import Case, Player, differing, outcome_json
from pipeline.evaluate.review.choose import Wanted, choose
from pipeline.evaluate.review.frozen import check_open, read_set, schema_files, work_file, work_of, write_set
from pipeline.evaluate.review.redaction import NotHidden, Redaction
from pipeline.job import WorkConfig
from pipeline.records import Document, Problem
from pipeline.runtime.lookups import load_lookups
from pipeline.runtime.output.lookup import find_rows, find_run
from pipeline.runtime.output.recall import Recalled, differences, recall_rows
from pipeline.runtime.output.run_record import recorded_job
from pipeline.steps.rules import NO_LOOKUPS, Lookups

_PROBLEM = ("code", "message", "attempt", "layer")


@dataclass(slots=True)
class Froze:
    """What a freeze wrote: `added` cases, `replaced` ones of the same document, `kept` ones of the version before.
    `otherwise` counts cases whose outcome is not the run's, and `hidden` those in which something was hidden."""

    path: str = ""
    version: int = 0
    added: int = 0
    replaced: int = 0
    kept: int = 0
    otherwise: int = 0
    hidden: int = 0
    notes: list[str] = field(default_factory=list)


def freeze(run_path: str, set_path: Path, wanted: Wanted, patterns: Sequence[str] = ()) -> Froze:
    """Freeze the rows that are wanted, beside the cases that the set has; of the same document the new case stays.

    Raises:
        InputError: no row is wanted, or the set is damaged.
        OutputError: no committed run, it keeps no job, or the set cannot be written.
    """
    redaction, store = Redaction(patterns), find_run(run_path)
    before, told = read_set(set_path), Froze()
    check_open(set_path, before)
    chosen = choose(find_rows(store, status=None, document_id=None, layer=None, limit=sys.maxsize), wanted)
    if chosen.repeated:
        told.notes.append(f"{chosen.repeated} rows repeat an id that another document has: they are left out")
    if chosen.matched - chosen.repeated > len(chosen.rows):
        told.notes.append(f"{chosen.matched} rows match; {len(chosen.rows)} were picked by seed {wanted.seed}")
    job, lacks = recorded_job(store)
    told.notes += [f"the run did not keep {name}, which may be secret" for name in lacks]
    work, lookups = _looking_up(work_of(job), told.notes)
    key, files = work_file(work)
    schemas, more = schema_files(job.schemas, [row["schema"] for row in chosen.rows])
    maker = _Maker(Player(work), lookups, redaction, key, schemas)
    made = []
    for found in recall_rows(store, chosen.rows):
        if not isinstance(found, Recalled):
            told.notes.append(f"left out: {found}")
        elif (case := maker.case(found, told)) is not None:
            made.append(case)
    if not made:
        raise InputError("; ".join([f"{store.where}: no row that is asked for can be frozen", *told.notes]) + ".")
    new = {case.name for case in made}
    kept = [case for case in before.cases if case.name not in new]
    _check_kept(kept, redaction, set_path)
    told.added, told.kept = len(made), len(kept)
    told.replaced = len(before.cases) - len(kept)
    redacted = {"patterns": len(patterns), "cases": told.hidden}
    path = write_set(set_path, before, [*kept, *made], {**before.files, **files, **more}, {"redacted": redacted})
    told.path, told.version = str(path), before.version + 1
    return told


def _looking_up(work: WorkConfig, notes: list[str]) -> tuple[WorkConfig, Lookups]:
    """The config with the values that it looks up, or without lookups if they are not there any more."""
    try:
        return work, load_lookups(work)
    except InputError as error:
        notes.append(f"lookups are left out: {error}")
        return work.model_copy(update={"lookups": ()}), NO_LOOKUPS


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes cases of recalled rows of one run."""

    player: Player
    lookups: Lookups
    redaction: Redaction
    work: str
    schemas: str

    def case(self, found: Recalled, told: Froze) -> Case | None:
        """The case of a row, of which `told` takes note; None where something cannot be hidden."""
        plain = self._frozen(found)
        notes = [f"not as in the run: {name}" for name in self._otherwise(found)]
        try:
            case = plain if self.redaction.idle else self._frozen(self._hidden(found))
            self.redaction.check(_said(case))
        except NotHidden:
            told.notes.append("a document was left out: something in it cannot be hidden for certain")
            return None
        told.otherwise += bool(notes)
        if changed := plain.document != case.document or plain.attempts != case.attempts:
            told.hidden += 1
        moved = differing(plain.outcome, case.outcome) if changed else {}
        if "status" in moved:
            notes.append(f"hiding made it {case.outcome['status']}, which was {plain.outcome['status']}")
        return dataclasses.replace(case, notes=tuple(notes))

    def _frozen(self, found: Recalled) -> Case:
        outcome, looked_up = self.player.play(found, self.lookups)
        source = found.document.source.rpartition("/")[2]  # where it lay on this machine is nobody's business
        return Case(
            document=json.loads(json.dumps({**asdict(found.document), "source": source})),
            work=self.work,
            schemas=self.schemas,
            attempts=[dict(one) for one in found.row["attempts"]],
            problems=[{name: one[name] for name in _PROBLEM} for one in found.row["problems"]],
            lookups=looked_up,
            outcome=outcome_json(outcome),
            run=str(found.row.get("run_id", "")),
        )

    def _otherwise(self, found: Recalled) -> list[str]:
        """The columns in which this version's outcome is not the run's; a row keeps no log probabilities."""
        plan = self.player.plan(found.document.schema, found.row["attempts"])
        outcome, _ = self.player.play(found, self.lookups)
        return list(differences(found.row, outcome, plan, without=("confidence",))[1])

    def _hidden(self, found: Recalled) -> Recalled:
        hide, document = self.redaction, found.document
        problems = tuple(
            Problem(one.code, hide.text(one.pointer), hide.text(one.message), one.attempt, one.severity)
            for one in document.problems
        )
        shown = Document(
            hide.text(document.id),
            hide.text(document.text),
            hide.text(document.source),
            document.schema,
            problems,
            hide.value(dict(document.columns)),
        )
        row = {
            **found.row,
            "attempts": [{**one, "raw_text": hide.text(one["raw_text"])} for one in found.row["attempts"]],
            "problems": [{**one, "message": hide.text(one["message"])} for one in found.row["problems"]],
        }
        return Recalled(row, shown, ())


def _check_kept(cases: Sequence[Case], redaction: Redaction, path: Path) -> None:
    """Refuse to go on with cases that hold what is to be hidden now: every version of the set has it.

    Raises:
        InputError: there is such a case.
    """
    for case in cases:
        try:
            redaction.check(_said(case))
        except NotHidden:
            raise InputError(
                f"{path} holds cases in which --redact finds something: they were frozen without it. Freeze into a new "
                "set, and delete this one if what it holds must not be kept."
            ) from None


def _said(case: Case) -> list[Any]:
    """What of a case is not this program's own words."""
    document = {name: value for name, value in case.document.items() if name != "schema"}
    answers = [one["raw_text"] for one in case.attempts] + [one["message"] for one in case.problems]
    made = [case.outcome[name] for name in ("record", "problems", "repairs", "fields")]
    return [document, answers, [one["values"] for one in case.lookups], made]
