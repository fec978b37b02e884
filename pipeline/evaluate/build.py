"""Build: from a committed run and a file of gold to an Evaluation. `evaluate` is all that others call."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import InputError
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.calibration import Calibration, calibration_of
from pipeline.evaluate.gold import GoldConfig, GoldRow, fault_of, read_gold, without_nulls
from pipeline.evaluate.intervals import RESAMPLES, Bootstrap, Rate, Slice
from pipeline.evaluate.judged import ALL, Judged, contributions, length_of
from pipeline.evaluate.kept import KeptGold
from pipeline.evaluate.match import match, match_nothing
from pipeline.evaluate.mistakes import Group, Mistakes
from pipeline.evaluate.scores import Scores, published_of, scores_of, slices_of
from pipeline.evaluate.texts import Texts
from pipeline.records import Outcome
from pipeline.report.rows import outcome_of
from pipeline.runtime.output.browse import Browsed
from pipeline.runtime.output.gather import unit_of
from pipeline.schema.validator import validator_of
from pipeline.steps.declared.language import script_and_language

MAX_TOLD = 5000
"""Documents whose language is told, chosen by a hash; lingua takes about a millisecond for each."""
MAX_FIELDS = 500
MAX_SLICES = 50
"""Values of one kind of slice that are told apart."""
NOTED = 5
OTHER, UNKNOWN = "(other)", "(unknown)"
_DUPLICATE = "duplicate_id"


@dataclass(frozen=True, slots=True)
class Asked:
    """What to evaluate and how. `run` is a run, an output or a job file; `schemas` a directory of schemas, if not the
    job's; `only_extracted`: gold of documents that the run has no row of is left out, not counted as mistakes."""

    run: str
    gold: GoldConfig
    schemas: str | None = None
    only_extracted: bool = False
    resamples: int = RESAMPLES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a run is worth. `gold` counts its rows by what became of them, `documents` those that were judged and those
    that were not; `faults` names gold that was not used. `slices` are kinds of slices, each by value."""

    run: Browsed
    asked: Asked
    gold: Mapping[str, int]
    faults: list[dict[str, str]]
    documents: Mapping[str, int]
    overall: Scores
    schemas: Mapping[str, Scores]
    fields: Mapping[str, Mapping[str, Scores]]
    slices: Mapping[str, Mapping[str, Scores]]
    calibration: Mapping[str, Calibration]
    published: Mapping[str, Mapping[str, Rate]] | None
    mistakes: list[Group]
    notes: list[str]


@dataclass
class _Few:
    """A name as it is while it is one of the first so many, then OTHER."""

    most: int
    known: set[str] = field(default_factory=set)

    def __call__(self, name: str) -> str:
        if name not in self.known and len(self.known) >= self.most:
            return OTHER
        self.known.add(name)
        return name


def evaluate(asked: Asked) -> Evaluation:
    """Judge every document that has gold. Memory grows with fields and schemas, not with documents.

    Raises:
        InputError: the gold cannot be read, or no document of the run has any.
        OutputError: there is no committed run, or it cannot be read.
        JobFileError: the job file cannot be used.
    """
    run, schemas = run_of(asked.run)
    notes: list[str] = []
    names = sorted({*run.manifest.schemas, *(file["schema"] for file in run.files)} - {"none"})
    bodies = bodies_of(run, asked.schemas or schemas, names, notes)
    with KeptGold() as kept:
        kept.fill(read_gold(asked.gold))
        judging = _Judging(asked, run, bodies, kept)
        judging.rows()
        judging.left()
        return judging.evaluation(notes)


class _Judging:
    def __init__(self, asked: Asked, run: Browsed, bodies: Mapping[str, Mapping[str, Any]], kept: KeptGold) -> None:
        self.asked, self.run, self.bodies, self.kept = asked, run, bodies, kept
        self.validators = {name: validator_of(body) for name, body in bodies.items()}
        self.boot = Bootstrap(asked.resamples, asked.seed)
        self.mistakes = Mistakes()
        self.texts = Texts(run.store)
        self.documents: Counter[str] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.told = min(1.0, MAX_TOLD / max(1, kept.counts["rows"]))
        self.few = {"field": _Few(MAX_FIELDS), "schema": _Few(MAX_SLICES)}

    def rows(self) -> None:
        """Judge the run's rows that have gold, unit after unit."""
        files = sorted(self.run.files, key=lambda file: (unit_of(file["path"]), file["path"]))
        for row in dataclasses.replace(self.run, files=tuple(files)).rows():
            outcome = outcome_of(row)
            if any(problem.code == _DUPLICATE for problem in outcome.problems):
                self.documents["repeated"] += 1  # the row that came first is the document
                continue
            gold = self.kept.take(outcome.document_id, outcome.schema)
            if gold is None:
                self.documents["without_gold"] += 1
                if len(self.elsewhere) < MAX_SLICES:  # gold may name another schema in every row
                    self.elsewhere.update(f"{outcome.schema} {one}" for one in self.kept.schemas(outcome.document_id))
                continue
            self._judge(gold, outcome.schema, outcome, self.texts.of(row))

    def left(self) -> None:
        """Judge what the run has no row of: of a document that was lost everything is missing."""
        only = next(iter(self.bodies)) if len(self.bodies) == 1 else ""
        for gold in self.kept.left():
            if self.asked.only_extracted:
                self.documents["left_out"] += 1
                continue
            named = [name for name in self.bodies if gold.schema in (name, name.partition("@")[0])]
            self._judge(gold, named[-1] if named else only if not gold.schema else gold.schema, None, None)

    def _judge(self, gold: GoldRow, schema: str, outcome: Outcome | None, text: str | None) -> None:
        body = self.bodies.get(schema, {})
        if (fault := self._fault(gold, schema)) is not None:
            record = without_nulls(gold.record)
            if record == gold.record or self._fault(dataclasses.replace(gold, record=record), schema) is not None:
                self.kept.refuse("invalid", gold, f"{schema or 'the schema'} refuses the record {fault}")
                return
            gold = dataclasses.replace(gold, record=record)
        if outcome is not None and outcome.status != "rejected":
            matched = match(gold.record, outcome.record, body, gold.acceptable)
        else:
            matched = match_nothing(gold.record, body)
        shown = self.few["schema"](schema or UNKNOWN)
        fields = [dataclasses.replace(one, pointer=self._pointer(shown, one.pointer)) for one in matched.fields]
        judged = Judged(gold, shown, dataclasses.replace(matched, fields=fields), outcome, text)
        self.documents["in_order"] += matched.in_order > 0
        self.documents["left_out_leaves"] += matched.left_out
        self.boot.add(gold.id, contributions(judged, self._slices(gold, text)))
        self.mistakes.add(judged)

    def _fault(self, gold: GoldRow, schema: str) -> str | None:
        validator = self.validators.get(schema)
        return (fault_of(gold.record, validator) or None) if validator is not None else None

    def _pointer(self, schema: str, pointer: str) -> str:
        return pointer if self.few["field"](f"{schema}\0{pointer}") != OTHER else OTHER

    def _slices(self, gold: GoldRow, text: str | None) -> dict[str, str]:
        made = {"language": self._language(gold, text), "length": length_of(text)}
        made |= {f"by {name}": value for name, value in gold.by.items()}
        return {kind: self.few.setdefault(kind, _Few(MAX_SLICES))(value) for kind, value in made.items()}

    def _language(self, gold: GoldRow, text: str | None) -> str:
        rank = int.from_bytes(hashlib.blake2b(gold.id.encode(), digest_size=4).digest(), "big") / 2**32
        if text is None:
            return "unknown"
        return script_and_language(text)[1] or "not sure" if rank < self.told else "not told"

    def evaluation(self, notes: list[str]) -> Evaluation:
        """All that was found."""
        boot = self.boot
        if not boot.documents:
            raise InputError(
                f"no document can be judged: of {self.kept.counts['rows']} rows of gold {self._unused()}; "
                f"{self.documents['without_gold']} documents of the run have none. Do the ids agree (--gold-id)?"
            )
        schemas = {where[1]: scores_of(boot, where) for where in slices_of(boot, "schema")}
        kinds = [kind for kind in self.few if kind not in ("field", "schema")]
        return Evaluation(
            run=self.run,
            asked=self.asked,
            gold={**self.kept.counts, "used": boot.documents},
            faults=self.kept.faults,
            documents=self.documents,
            overall=scores_of(boot, ALL),
            schemas=schemas,
            fields={name: self._fields(name) for name in schemas},
            slices={kind: {where[1]: scores_of(boot, where) for where in slices_of(boot, kind)} for kind in kinds},
            calibration=self._calibration(schemas),
            published=published_of(boot),
            mistakes=self.mistakes.ranked(),
            notes=[*notes, *self._notes()],
        )

    def _unused(self) -> str:
        counts = self.kept.counts
        return ", ".join(f"{counts[name]} are {name}" for name in ("unreadable", "conflicting", "invalid"))

    def _fields(self, schema: str) -> dict[str, Scores]:
        found: list[Slice] = [where for where in slices_of(self.boot, "field") if where[1] == schema]
        return {where[2]: scores_of(self.boot, where) for where in sorted(found)}

    def _calibration(self, schemas: Mapping[str, Scores]) -> dict[str, Calibration]:
        made = {name: calibration_of(self.boot, name, scores.documents) for name, scores in schemas.items()}
        return {name: one for name, one in made.items() if one is not None}

    def _notes(self) -> list[str]:
        notes, documents = [], self.documents
        if self.run.manifest.incremental and self.boot.sums((ALL, "unextracted"))[0]:
            notes.append("the run is incremental: documents that only earlier runs hold count as unextracted")
        if documents["in_order"]:
            notes.append(f"in {documents['in_order']} documents a list was too long to be aligned: compared in order")
        if documents["left_out_leaves"]:
            notes.append(f"{documents['left_out_leaves']} values beyond what is judged of one record count as mistakes")
        for pair, count in self.elsewhere.most_common(NOTED):
            ours, _, theirs = pair.partition(" ")
            notes.append(
                f"{count} documents were extracted as {ours} and have gold of {theirs}: not held against each other"
            )
        if self.texts.failure:
            notes.append(f"texts of documents cannot be read again: {self.texts.failure}")
        if self.mistakes.left_out:
            notes.append(f"{self.mistakes.left_out} mistakes of further kinds are in no group")
        return notes
