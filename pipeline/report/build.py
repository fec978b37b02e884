"""Build: from a committed run to its page. `write_report` is all that others call."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

from pipeline.errors import OutputError
from pipeline.job import JobConfig
from pipeline.observe.shift import Comparison
from pipeline.observe.tally import Tally
from pipeline.report.against import pairs_of
from pipeline.report.cost import cost_of
from pipeline.report.findings import collect, names_of
from pipeline.report.moved import compared
from pipeline.report.page import Facts, page_of
from pipeline.report.passages import in_document
from pipeline.report.problems import SHOWN_EXAMPLES, SHOWN_GROUPS, Example, Group
from pipeline.runtime.output.browse import MAX_DOCUMENTS, Browsed, browse, run_before, texts_of
from pipeline.runtime.output.run_record import recorded_job
from pipeline.runtime.store import writing

REPORT = "report.html"


def write_report(
    path: str, *, output: Path | None = None, price: float | None = None, most: int = MAX_DOCUMENTS, keep: bool = False
) -> str:
    """Write the page of a committed run beside its manifest, or to a file, and say where it lies. With `keep`, a page
    that is there already is left as it is.

    `price` is that of a GPU for an hour; `most` is how many documents are read.

    Raises:
        OutputError: there is no committed run, it cannot be read, or the page cannot be written.
    """
    run = browse(path, most)
    if keep and output is None and run.store.size(REPORT) is not None:
        return f"{run.store.where}/{REPORT}"
    page = report_of(run, price).encode("utf-8")
    if output is None:
        with writing(f"{run.store.where}/{REPORT}"):
            run.store.put(REPORT, page)
        return f"{run.store.where}/{REPORT}"
    try:
        output.write_bytes(page)
    except OSError as error:
        raise OutputError(f"cannot write the report to {output}: {error.strerror or error}.") from error
    return os.fspath(output)


def report_of(run: Browsed, price: float | None = None) -> str:
    """The page.

    Raises:
        OutputError: the run's files cannot be read.
    """
    job = _job(run)
    documents = dict.fromkeys(run.manifest.schemas, 0) | _documents(run)
    kept = run.record.get("work", {}).get("sampling.max_tokens")
    budget = job.sampling.max_tokens if job else kept if type(kept) is int else 0
    names = names_of(documents)
    findings = collect(run.rows(), names, budget)
    whole = findings.documents == run.manifest.documents
    before, moved = _before(run, documents)
    return page_of(
        Facts(
            run=run,
            findings=findings,
            groups=_with_texts(run, findings.problems.ranked()[:SHOWN_GROUPS]),
            tallies=findings.tallies if whole else _tallies(run, names),
            total=findings.total if whole else Tally.from_json(run.manifest.totals),
            cost=cost_of(run.manifest, job, price),
            before=before,
            pairs=list(pairs_of(run.manifest, before.manifest)) if before else [],
            moved=moved,
        )
    )


def _job(run: Browsed) -> JobConfig | None:
    """The job that the run kept; runs of earlier versions did not."""
    with contextlib.suppress(OutputError):
        return recorded_job(run.store)[0]
    return None


def _before(run: Browsed, documents: dict[str, int]) -> tuple[Browsed | None, Comparison | None]:
    """The run before and how its fields differ; what of it cannot be read takes nothing from this run's page."""
    before = None
    with contextlib.suppress(OutputError):
        before = run_before(run)
        return before, compared(run.store, before.store, documents) if before else None
    return before, None


def _documents(run: Browsed) -> dict[str, int]:
    """Documents by schema, all of them."""
    found: dict[str, int] = {}
    for file in run.manifest.files:
        found[file["schema"]] = found.get(file["schema"], 0) + file["rows"]
    return found


def _tallies(run: Browsed, names: dict[str, str]) -> dict[str, Tally]:
    """The counts of all documents by the name of their schema."""
    found: dict[str, Tally] = {}
    for schema, tally in run.tallies().items():
        found.setdefault(names.get(schema, schema), Tally()).merge(tally)
    return found


def _with_texts(run: Browsed, groups: list[Group]) -> list[Group]:
    """The groups, their examples with a passage of the document. Rejected rows keep the text; others are read again."""
    wanted: dict[str, set[str]] = {}
    for group in groups[:SHOWN_EXAMPLES]:
        if group.example and group.example.passage is None:
            wanted.setdefault(group.example.unit, set()).add(group.example.source)
    texts = texts_of(run.store, wanted)
    for group in groups:
        if group.example and group.example.passage is None:
            group.example = _with_text(group.example, texts)
    return groups


def _with_text(example: Example, texts: dict[str, str]) -> Example:
    text = texts.get(example.source)
    return example if text is None else dataclasses.replace(example, passage=in_document(text, example.spans))
