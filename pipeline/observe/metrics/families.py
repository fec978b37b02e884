"""Families: the series of every metric, from Numbers. Pure, and the only place where labels are made.

Every label value is the job's name, a schema's, an engine's fingerprint (`observe/paths.py` bounds both how many and
how long), a place of a schema (`observe/left.py`), or one of a closed set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import get_args

from pipeline.observe.buckets import ANSWER_TOKENS, DOCUMENT_ANSWERS, GENERATION_MS, QUEUE_MS, Histogram, histogram
from pipeline.observe.metrics.catalogue import METRICS
from pipeline.observe.metrics.labels import TOGETHER
from pipeline.observe.metrics.numbers import Numbers, RunState
from pipeline.observe.tally import Tally
from pipeline.records import STATUSES, Match
from pipeline.steps.codes import CODES

Value = float | Histogram

ALARMS = tuple(name for name, code in CODES.items() if code.alarm)
"""Codes whose series are there from the start: an alert sees the first one."""

MATCHES = tuple(match for match in get_args(Match) if match)
"""Where anything was looked for, each of these has its series: a share of what is not there is no gap."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a metric. `labels` are the values, in the order of `Metric.labels`."""

    labels: tuple[str, ...]
    value: Value


Families = Mapping[str, Sequence[Series]]
"""The series of each metric of the catalogue that has any, by its name."""


def families_of(numbers: Numbers) -> Families:
    """Every series of these numbers, in the order of the catalogue."""
    found: dict[str, list[Series]] = {name: [] for name in METRICS}
    for label, tally in sorted(numbers.schemas.items()):
        for name, labels, value in chain(_documents(tally), _answers(tally), _quality(tally, label), _cost(tally)):
            found[name].append(Series((numbers.job, label, *labels), value))
    for label, speeds in sorted(numbers.speeds.items()):
        for name, labels, value in _speeds(speeds):
            found[name].append(Series((numbers.job, label, *labels), value))
    for name, labels, value in chain(_run(numbers.run), _http(numbers.http)):
        found[name].append(Series((numbers.job, *labels), value))
    return {name: series for name, series in found.items() if series}


_Found = Iterator[tuple[str, tuple[str, ...], Value]]


def _documents(tally: Tally) -> _Found:
    for status in STATUSES:
        yield "gristmill_documents_total", (status,), tally.statuses[status]
    yield "gristmill_documents_asked_total", (), tally.asked
    yield "gristmill_salvaged_documents_total", (), tally.salvaged
    yield "gristmill_retried_documents_total", (), tally.retried
    for key, count in sorted(tally.resolved.items()):
        answer, _, resolved = key.partition(" ")
        yield "gristmill_resolved_documents_total", (answer, resolved), count
    yield "gristmill_exhausted_documents_total", (), tally.exhausted
    yield "gristmill_document_answers", (), histogram(tally.document_answers, DOCUMENT_ANSWERS)


def _answers(tally: Tally) -> _Found:
    for rates in tally.rates():
        labels = (rates.engine, "constrained" if rates.constrained else "free", rates.place)
        yield "gristmill_answers_total", labels, rates.answers
        yield "gristmill_answers_format_first_total", labels, rates.format_first
        yield "gristmill_answers_format_repaired_total", labels, rates.format_repaired
        yield "gristmill_answers_schema_total", labels, rates.schema
        yield "gristmill_answers_semantic_total", labels, rates.semantic
        yield "gristmill_answers_truncated_total", labels, rates.cut


def _quality(tally: Tally, label: str) -> _Found:
    for code, count in sorted({**dict.fromkeys(ALARMS, 0), **tally.codes}.items()):
        yield "gristmill_problems_total", (code,), count
    for kind, count in sorted(tally.repairs.items()):
        yield "gristmill_repairs_total", (kind,), count
    sites = {"other": tally.left.total()} if label in TOGETHER and tally.left else tally.left
    for site, count in sorted(sites.items()):
        yield "gristmill_left_violations_total", (site,), count
    for state, count in sorted(tally.required.items()):
        yield "gristmill_required_values_total", (state,), count
    for match, count in sorted({**(dict.fromkeys(MATCHES, 0) if tally.matches else {}), **tally.matches}.items()):
        yield "gristmill_values_total", (match,), count
    yield from _clipped(tally)


def _clipped(tally: Tally) -> _Found:
    tokens: dict[str, int] = {}
    millionths: dict[str, int] = {}
    for key, count in tally.clipped.items():
        _, part, measure = key.rsplit(" ", 2)
        counts = tokens if measure == "tokens" else millionths
        counts[part] = counts.get(part, 0) + count
    for part in sorted(tokens):
        yield "gristmill_clipped_tokens_total", (part,), tokens[part]
        yield "gristmill_clipped_mass_total", (part,), millionths.get(part, 0) / 1e6
    for result, count in sorted(tally.audits.items()):
        yield "gristmill_audits_total", (result,), count


def _cost(tally: Tally) -> _Found:
    yield "gristmill_prompt_tokens_total", (), tally.prompt_tokens
    yield "gristmill_cached_tokens_total", (), tally.cached_tokens
    yield "gristmill_output_tokens_total", (), tally.output_tokens
    yield "gristmill_wasted_tokens_total", (), tally.wasted_tokens
    yield "gristmill_queue_seconds", (), histogram(tally.queue_ms, QUEUE_MS, 1000)
    yield "gristmill_generation_seconds", (), histogram(tally.generation_ms, GENERATION_MS, 1000)
    yield "gristmill_answer_tokens", (), histogram(tally.answer_tokens, ANSWER_TOKENS)


def _speeds(speeds: Mapping[str, float]) -> _Found:
    for measure, seconds in sorted(speeds.items()):
        if measure == "compile":
            yield "gristmill_compile_seconds", (), seconds
        else:
            yield "gristmill_mask_seconds", (measure,), seconds


def _run(run: RunState | None) -> _Found:
    if run is None:
        return
    values = {
        "gristmill_run_up": run.up,
        "gristmill_run_elapsed_seconds": run.elapsed_seconds,
        "gristmill_run_documents": run.documents,
        "gristmill_run_units": run.units,
        "gristmill_run_units_done": run.units_done,
        "gristmill_run_idle_seconds": run.idle_seconds,
        "gristmill_run_engine_deaths_total": run.engine_deaths,
        "gristmill_run_poison_documents": run.poison_documents,
        "gristmill_run_stopped_schemas": run.stopped_schemas,
    }
    for name, value in values.items():
        if value is not None:
            yield name, (), value
    yield "gristmill_run_info", astuple(run.info), 1


def _http(http: Mapping[int, int] | None) -> _Found:
    for code, count in sorted((http or {}).items()):
        yield "gristmill_endpoint_answers_total", (str(code),), count
