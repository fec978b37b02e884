"""Compared: two committed runs, paired by document (docs/compare.md has the statistics)."""

from __future__ import annotations

from pipeline.errors import OutputError
from pipeline.evaluate.changes import changes_of, warnings_of
from pipeline.evaluate.comparison import RunComparison, Side
from pipeline.evaluate.paired import About, Score, compare_pairs
from pipeline.evaluate.pairs import pairs_of
from pipeline.runtime.output.browse import Browsed
from pipeline.runtime.output.commit import MANIFEST, read_manifest
from pipeline.runtime.output.run_record import read_run_record
from pipeline.runtime.store import Store

ALPHA = 0.01
"""Chance at most that anything is called changed where nothing is."""
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


def _browsed(store: Store) -> Browsed:
    manifest = read_manifest(store)
    if manifest is None:
        raise OutputError(f"{store.where}/{MANIFEST} is not there: the run is not committed. Run the job again.")
    return Browsed(store, manifest, read_run_record(store) or {}, manifest.files)


def _side(run: Browsed) -> Side:
    manifest = run.manifest
    return Side(run.store.where, manifest.run_id, manifest.job, manifest.committed, manifest.documents)
