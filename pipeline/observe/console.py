"""What a person sees while a job runs and when it ends. Plain lines when the output is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from pipeline.observe.tally import Tally
from pipeline.observe.visible import cell
from pipeline.records import STATUSES, Manifest

PLAIN_SECONDS = 10.0
TOP_POINTERS = 8


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
        """How many documents are still to be done. The clock starts here."""
        self._total, self._began = documents, time.monotonic()
        if self._bar is not None:
            self._task = self._bar.add_task("starting the engine", total=documents, rates="")

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


def summary(manifest: Manifest, directory: Path) -> Table:
    """The table a run ends with. The rates of the layers stand apart, each with its own denominator."""
    table = Table(title=cell(f"{manifest.job}  run {manifest.run_id}"), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in _lines(manifest, Tally.from_json(manifest.totals)):
        table.add_row(cell(name), cell(value))
    table.add_row("output", cell(str(directory)))
    return table


def _lines(manifest: Manifest, total: Tally) -> Iterator[tuple[str, str]]:
    parts = " + ".join(f"{manifest.counts[status]} {status}" for status in STATUSES)
    yield "documents", f"{manifest.documents} in = {parts}"
    for schema in sorted(manifest.schemas):
        yield f"  {schema}", ", ".join(f"{total.schemas[f'{schema} {status}']} {status}" for status in STATUSES)
    yield "first pass: JSON as it came", _share(total.first_pass_format, total.asked)
    yield "first pass: schema holds", _share(total.first_pass_valid, total.asked)
    yield "repaired", _share(total.repaired, total.asked)
    yield "asked the model again", f"{_share(total.retried, total.asked)}, resolved {total.resolved_by_retry}"
    if total.engine_retries:
        yield "engine failures, sent again", f"{total.engine_retries} of {total.attempts} requests"
    yield "salvaged", _share(total.salvaged, total.asked)
    yield "truncated", _share(total.truncated, total.asked)
    for found in (total.codes, total.pointers):
        for name, count in found.most_common(TOP_POINTERS):
            yield f"  {name}", str(count)
    prompt = f"{total.prompt_tokens} prompt ({total.cached_tokens} cached)"
    yield "tokens", f"{prompt}, {total.output_tokens} output ({total.wasted_tokens} on attempts without a record)"


def _share(part: int, asked: int) -> str:
    return f"{part} of {asked} documents asked" + (f" ({part / asked:.1%})" if asked else "")
