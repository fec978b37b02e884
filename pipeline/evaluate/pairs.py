"""Pairs: the documents that two committed runs have in common, a unit of either in memory at a time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Set

from pipeline.errors import OutputError
from pipeline.evaluate.comparison import Pairing
from pipeline.evaluate.measured import Seen, seen
from pipeline.runtime.output.browse import Browsed, chosen

MAX_IDS = 20
"""Ids that are told of documents that only one run has."""

_REPEATED = "duplicate_id"


def pairs_of(a: Browsed, b: Browsed, most: int) -> tuple[list[tuple[Seen, Seen]], Pairing]:
    """The pairs of two runs of which all files are to be read, A and B of each, by id: of the same document by its id
    and its schema's name. At most about `most` of them: of larger runs, those of evenly chosen units of the smaller.

    Raises:
        OutputError: a run cannot be read, or they have no document in common.
    """
    swapped = a.manifest.documents > b.manifest.documents
    few, many = (b, a) if swapped else (a, b)
    base = Browsed(few.store, few.manifest, few.record, chosen(few.files, most))
    kept, repeated = _kept(base, None)
    ids = {key[1] for key in kept}
    sampled = base.documents < few.documents
    lone, first = (0, []) if sampled else _not_in(many.ids(), ids)
    others, repeats = _kept(many, ids)
    matched, renamed = _matched(kept, others)
    if not matched:
        raise OutputError(
            f"{a.store.where} and {b.store.where} have no document in common: documents are joined by their id. "
            "Compare runs over the same input, with an id column."
        )
    paired = {one.document_id for one, _ in matched}
    alone, unpaired = sorted(ids - paired), {key[1] for key in others} - paired
    here = len(alone), tuple(alone[:MAX_IDS])
    there = lone + len(unpaired), tuple(sorted([*first, *unpaired])[:MAX_IDS])
    sides = (there, here) if swapped else (here, there)
    matched.sort(key=lambda pair: (pair[0].document_id, pair[0].schema))
    pairing = Pairing(
        documents=len(matched),
        only_a=sides[0][0],
        only_b=sides[1][0],
        ids_only_a=sides[0][1],
        ids_only_b=sides[1][1],
        renamed=renamed,
        repeated=repeated + repeats,
        unread=few.documents - base.documents,
    )
    return [(two, one) for one, two in matched] if swapped else matched, pairing


def _not_in(names: Iterable[str], known: Set[str]) -> tuple[int, list[str]]:
    """How many names are not known, and the first of them in order: a canary on a small share of a large run has
    millions of them, which are not kept."""
    count = itertools.count()
    first = heapq.nsmallest(MAX_IDS, (name for name in names if name not in known and next(count) >= 0))
    return next(count), first


def _kept(run: Browsed, only: Set[str] | None) -> tuple[dict[tuple[str, str], Seen], int]:
    """By (schema, id), what the run's rows are worth, and how many rows repeat an id."""
    found: dict[tuple[str, str], Seen] = {}
    repeated = 0
    for row in run.rows(only):
        one = seen(row)
        key = (one.schema, one.document_id)
        if _REPEATED in one.codes or key in found:
            repeated += 1
        else:
            found[key] = one
    return found, repeated


def _matched(
    kept: dict[tuple[str, str], Seen], others: dict[tuple[str, str], Seen]
) -> tuple[list[tuple[Seen, Seen]], int]:
    """Pairs of equal id and schema; then those of equal id that neither run has under several schemas."""
    matched = [(one, others[key]) for key, one in kept.items() if key in others]
    mine, theirs = _alone(kept, others), _alone(others, kept)
    renamed = [(one, theirs[name]) for name, one in mine.items() if name in theirs]
    return matched + renamed, len(renamed)


def _alone(some: dict[tuple[str, str], Seen], others: dict[tuple[str, str], Seen]) -> dict[str, Seen]:
    """By id, what has no partner, if it is the only one of its id."""
    return {one.document_id: one for one in _once(some) if (one.schema, one.document_id) not in others}


def _once(some: dict[tuple[str, str], Seen]) -> Iterator[Seen]:
    often: dict[str, int] = {}
    for _, name in some:
        often[name] = often.get(name, 0) + 1
    return (one for one in some.values() if often[one.document_id] == 1)
