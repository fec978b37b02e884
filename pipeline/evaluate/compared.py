"""Compared: two committed runs, paired by document (docs/compare.md has the statistics)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pipeline.errors import InputError, OutputError
from pipeline.evaluate.bodies import bodies_of, run_of
from pipeline.evaluate.changes import changes_of, warnings_of
from pipeline.evaluate.comparison import RunComparison, Side
from pipeline.evaluate.gold import GoldConfig
from pipeline.evaluate.gold_score import scoring
from pipeline.evaluate.paired import About, Score, compare_pairs
from pipeline.evaluate.pairs import pairs_of
from pipeline.runtime.output.browse import Browsed
from pipeline.runtime.output.commit import MANIFEST, read_manifest
from pipeline.runtime.output.run_record import read_run_record
from pipeline.runtime.store import Store

ALPHA = 0.01
"""Chance at most that anything is called changed, or a rule of the gate broken, where nothing differs."""
MAX_DOCUMENTS = 20_000


def compare_runs(
    a: Store, b: Store, *, alpha: float = ALPHA, most: int = MAX_DOCUMENTS, score: Score | None = None
) -> RunComparison:
    """Run B held against run A on the documents of both, at most about `most` of them. The same runs always give the
    same comparison.

    Raises:
        OutputError: a run is not committed, or cannot be read; or they have no document in common.
    """
    runs = _browsed(a), _browsed(b)
    matched, pairing = pairs_of(*runs, most)
    changes = changes_of(*runs)
    about = About(_side(runs[0]), _side(runs[1]), pairing, changes, tuple(warnings_of(*runs, changes)))
    return compare_pairs(matched, about, alpha=alpha, score=score)


def compare_paths(
    paths: tuple[str, str],
    *,
    alpha: float = ALPHA,
    most: int = MAX_DOCUMENTS,
    gold: GoldConfig | None = None,
    schemas: str | None = None,
) -> RunComparison:
    """The runs that two paths mean (as for `gristmill evaluate`), scored against gold if that is given; `schemas` is
    where its schemas are, if not where the runs' jobs have them.

    Raises:
        InputError: the gold cannot be read, or no document of both runs has any.
        JobFileError: a path is a job file that cannot be used.
        OutputError: as for `compare_runs`.
    """
    (a, schemas_a), (b, schemas_b) = run_of(paths[0]), run_of(paths[1])
    if gold is None:
        return compare_runs(a.store, b.store, alpha=alpha, most=most)
    notes: list[str] = []
    bodies: dict[str, Mapping[str, Any]] = {}
    for run, place in ((b, schemas_b), (a, schemas_a)):
        names = [name for name in run.manifest.schemas if name not in bodies]
        bodies |= bodies_of(run, schemas or place, names, notes)
    with scoring(gold, bodies) as score:
        found = compare_runs(a.store, b.store, alpha=alpha, most=most, score=score)
    if not score.counts["scored"]:
        raise InputError(f"no document of both runs has gold in {gold.path} that can be used. Do the ids agree?")
    if invalid := score.counts["invalid"]:
        notes.append(f"{invalid} times gold was not used, since its schema refuses it")
    return dataclasses.replace(found, warnings=(*found.warnings, *notes))


def _browsed(store: Store) -> Browsed:
    manifest = read_manifest(store)
    if manifest is None:
        raise OutputError(f"{store.where}/{MANIFEST} is not there: the run is not committed. Run the job again.")
    return Browsed(store, manifest, read_run_record(store) or {}, manifest.files)


def _side(run: Browsed) -> Side:
    manifest = run.manifest
    return Side(run.store.where, manifest.run_id, manifest.job, manifest.committed, manifest.documents)
