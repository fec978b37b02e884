"""What a person sees while a job runs and when it ends. Plain lines when the output is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from pipeline.observe.tally import Tally
from pipeline.observe.visible import cell
from pipeline.records import STATUSES, Manifest

PLAIN_SECONDS = 10.0
TOP_POINTERS = 8
FORMAT_ALARMS = frozenset({"constraint_failed", "constraint_leaked"})
"""Codes that say that a grammar in force let something through."""


class Reporter:
    """Shows a run's progress: counts by status, documents and output tokens per second, time left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._began = time.monotonic()
        self._printed = 0.0

    @contextmanager
    def live(self) -> Iterator[None]:
        """Draw the progress bar, on a terminal, for as long as the context is open."""
        if not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[rates]}", markup=False),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as self._bar:
            yield

    def expect(self, documents: int) -> None:
        """How many documents are still to be done."""
        self._total, self._began = documents, time.monotonic()
        if self._bar is not None:
            self._task = self._bar.add_task("starting the engine", total=documents, rates="")

    def asking(self, seconds: float) -> None:
        """Documents are put before an engine, since so many seconds: speeds and the time left are from then on."""
        self._began = time.monotonic() - seconds

    def update(self, tally: Tally) -> None:
        """Show the counts so far."""
        line = self._line(tally)
        if self._bar is not None and self._task is not None:
            name = "extracting" if tally.documents else "starting the engine"
            self._bar.update(self._task, completed=self._done(tally), description=name, rates=line)
        elif tally.documents and time.monotonic() - self._printed > PLAIN_SECONDS:
            self._printed = time.monotonic()
            self._console.print(line, soft_wrap=True)

    def _done(self, tally: Tally) -> int:
        return min(tally.documents, self._total)  # a unit that Ray ran twice is counted twice, and written once

    def _line(self, tally: Tally) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        counts = " ".join(f"{status} {tally.statuses[status]}" for status in STATUSES)
        done, speed, tokens = self._done(tally), tally.documents / seconds, tally.output_tokens / seconds
        left = f", about {(self._total - done) / speed:.0f} s left" if speed else ""
        return f"{done}/{self._total} documents: {counts}; {speed:.1f} docs/s, {tokens:.0f} tokens/s{left}"


def summary(manifest: Manifest, where: str) -> RenderableType:
    """What a run ends with: alarms, counts by document, and the rates of each path, each with its own denominator."""
    total = Tally.from_json(manifest.totals)
    table = Table(title=cell(f"{manifest.job}  run {manifest.run_id}"), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in _lines(manifest, total):
        table.add_row(cell(name), cell(value))
    table.add_row("output", cell(where))
    return Group(*_alarms(total), table, *_paths(total))


def _alarms(total: Tally) -> Iterator[RenderableType]:
    """What no document is to blame for, before anything else."""
    if not total.alarms:
        return
    counts = ", ".join(f"{name} {count}" for name, count in total.alarms.most_common(TOP_POINTERS))
    told = "faults of the engine, its configuration or this program, not of the documents (documents by code)"
    yield cell(f"ALARM {counts}: {told}", "bold red")
    if bugs := sorted(FORMAT_ALARMS & set(total.alarms)):
        yield cell(f"{', '.join(bugs)}: format failures on a constrained path are a bug of ours; please report", "red")


def _paths(total: Tally) -> Iterator[Table]:
    """Rates by path, a table for each engine. Shares are of the answers of the same line."""
    for engine, lines in groupby(total.rates(), key=lambda rates: rates.engine):
        columns = ("path", "answer", "of", "JSON as it came", "made JSON", "schema", "rules, ground", "cut", "tokens")
        table = Table(*columns, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
        table.title = cell(f"answers of {engine or 'an unnamed engine'}, by path: 1st, 2nd, … of a document")
        for rates in lines:
            parts = (rates.format_first, rates.format_repaired, rates.schema, rates.semantic, rates.cut)
            counted = [f"{part} ({part / rates.answers:.1%})" if rates.answers else str(part) for part in parts]
            path = "constrained" if rates.constrained else "free"
            row = (path, rates.place, str(rates.answers), *counted, str(rates.output_tokens))
            table.add_row(*map(cell, row))
        yield table


def _lines(manifest: Manifest, total: Tally) -> Iterator[tuple[str, str]]:
    parts = " + ".join(f"{manifest.counts[status]} {status}" for status in STATUSES)
    yield "documents", f"{manifest.documents} in = {parts}"
    for schema in sorted(manifest.schemas):
        yield f"  {schema}", ", ".join(f"{total.schemas[f'{schema} {status}']} {status}" for status in STATUSES)
    yield "first answer: JSON as it came", _share(total.first_pass_format, total.asked)
    yield "first answer: schema holds", _share(total.first_pass_valid, total.asked)
    yield "first answer: rules and ground, too", _share(total.first_pass_semantic, total.asked)
    yield "repaired", _share(total.repaired, total.asked)
    yield from _retries(total)
    yield "salvaged", _share(total.salvaged, total.asked)
    yield "truncated", _share(total.truncated, total.asked)
    if (found := manifest.totals.get("duplicates", {})).get("documents"):
        yield "equal records", f"{found['documents']} documents in {found['groups']} groups share one: {found['file']}"
    if sought := total.matches.total():
        supported = sought - total.matches["none"]
        kinds = ", ".join(f"{name} {count}" for name, count in total.matches.most_common())
        share = f"{supported} of {sought} looked for ({supported / sought:.1%})"
        yield "leaves found in their documents", f"{share}: {kinds}"
    for counts in (total.codes, total.pointers, total.repairs):
        for name, count in counts.most_common(TOP_POINTERS):
            yield f"  {name}", str(count)
    prompt = f"{total.prompt_tokens} prompt ({total.cached_tokens} cached)"
    yield "tokens", f"{prompt}, {total.output_tokens} output ({total.wasted_tokens} on attempts without a record)"
    if clock := manifest.totals.get("clock"):
        start = clock["seconds"] - clock["asking_seconds"]
        yield (
            "time",
            f"{clock['seconds']:.0f} s, of which {start:.0f} s for the start and the commit",
        )


def _retries(total: Tally) -> Iterator[tuple[str, str]]:
    """What asking again took and bought."""
    resolved = ", ".join(f"{count} by answer {name}" for name, count in sorted(total.resolved.items()))
    more = f" ({resolved})" if resolved else ""
    yield "asked the model again", f"{_share(total.retried, total.asked)}, resolved {total.resolved_by_retry}{more}"
    if prompt := total.retry_prompt_tokens:
        cached = f"{total.retry_cached_tokens} of {prompt} prompt tokens cached"
        share = f"{total.retry_cached_tokens / prompt:.1%}"
        yield "  for", f"{total.retry_output_tokens} output tokens; {cached} ({share})"
    if total.engine_retries:
        yield "engine failures, sent again", f"{total.engine_retries} of {total.attempts} requests"


def _share(part: int, asked: int) -> str:
    return f"{part} of {asked} documents asked" + (f" ({part / asked:.1%})" if asked else "")
