"""`gristmill check`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.compile.report import Asked
    from pipeline.compile.report_sources import Entry
    from pipeline.job import JobConfig
    from pipeline.records import JsonValue
    from pipeline.schema.registry import DocumentSchema

LOG_WIDTH = 160
"""Columns of tables in a log file: they have many."""

Sources = Annotated[
    list[str] | None,
    typer.Argument(help="`name@version`, a schema folder, or a .json file.", metavar="SCHEMA", show_default=False),
]
Root = Annotated[str | None, typer.Option("--schemas", help="Where registered schemas lie.", show_default="schemas")]
Backends = Annotated[
    list[str] | None,
    typer.Option("--backend", help="auto (both), xgrammar or guidance; may be repeated.", show_default="auto"),
]
Model = Annotated[
    str | None,
    typer.Option(help="Whose tokenizer counts: `embedded`, a directory, a hub name.", show_default="embedded"),
]
Job = Annotated[
    Path | None,
    typer.Option("--job", help="Take schemas, model, back end, max_tokens, context and policies from a job file."),
]
Against = Annotated[str | None, typer.Option(help="An older version of the one SCHEMA, to compare with.")]
Samples = Annotated[
    Path | None,
    typer.Option(help="JSONL, one record of a real document on each line: they calibrate the budget of one SCHEMA."),
]
Raw = Annotated[bool, typer.Option("--raw", help="Try the schema as it is written, too, to compare.")]
All = Annotated[bool, typer.Option("--all", help="Show every row.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/check.md lists its keys.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 where something should be looked at.")]
WriteLock = Annotated[
    bool, typer.Option("--write-lock", help="Write plan.lock.json beside each schema.json that is not refused.")
]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    schemas: Sources = None,
    *,
    root: Root = None,
    backend: Backends = None,
    model: Model = None,
    job_path: Job = None,
    against: Against = None,
    samples: Samples = None,
    raw: Raw = False,
    everything: All = False,
    as_json: AsJson = False,
    strict: Strict = False,
    write_lock: WriteLock = False,
) -> None:
    """Say what a grammar holds of a schema, what it costs, and what to change. No GPU and no model is run.

    For each keyword: what xgrammar and guidance do with it, and who catches a violation, the **grammar**, the
    **validator**, or **nobody**. Beside it: lint, token budget, columns, times, drift. See docs/check.md.

    Exit codes: 0 fine, 2 options or job file, 3 samples, 4 a schema is refused (all others are reported), 5 model or
    sandbox, 6 a lock file cannot be written; with --strict 9: left to nobody, lost, surprising, dead ends, more than
    10 % unproven, lint warnings, budget warnings, drift worse than widening, a stale lock.
    """
    from pipeline.compile.report import exit_code, report
    from pipeline.jobfile import load_job

    job = load_job(job_path) if job_path else None
    place = root or (job.schemas if job else "schemas")
    entries = _entries(place, schemas or (_names_of(job) if job else []), write_lock)
    asked = replace(_asked(job, backend, model), raw=raw)
    document = report(entries, asked, *_beside(place, entries, samples, against), write_lock)
    document["exit_code"] = exit_code(document, strict=strict)
    _show(document, as_json=as_json, everything=everything)
    raise typer.Exit(document["exit_code"])


def _entries(place: str, words: list[str], write_lock: bool) -> list[Entry]:
    from pipeline.compile.report_sources import load_entries

    if not words:
        raise typer.BadParameter("name a schema, or a job that has some.", param_hint="SCHEMA")
    entries = load_entries(place, words)
    if write_lock and any(entry.schema and not entry.folder for entry in entries):
        raise typer.BadParameter("a lock lies in the folder of a registered schema, not beside a file.")
    return entries


def _beside(
    place: str, entries: list[Entry], samples: Path | None, against: str | None
) -> tuple[list[JsonValue], DocumentSchema | None]:
    """The records and the older version that the one schema is held against."""
    from pipeline.compile.report_sources import load_entry, read_samples

    for option, value in (("--samples", samples), ("--against", against)):
        if value is not None and len(entries) != 1:
            raise typer.BadParameter("name one schema to use it with.", param_hint=option)
    old = load_entry(place, against) if against is not None else None
    if old is not None and old.schema is None:
        raise typer.BadParameter(visible(str(old.refused)), param_hint="--against")
    return read_samples(samples) if samples else [], old.schema if old else None


def _names_of(job: JobConfig) -> list[str]:
    """The schemas of a job: the named one, or those that its input names."""
    from pipeline.runtime.input import scan

    if job.input.schema_name:
        return [job.input.schema_name]
    return sorted(filter(None, scan(job.input, job.placement.unit_documents).schema_counts))


def _asked(job: JobConfig | None, backend: list[str] | None, model: str | None) -> Asked:
    """What to find out: a job's settings, and options over them."""
    from pipeline.compile.report import Asked, asked_by
    from pipeline.compile.trial import backends_of

    asked = asked_by(job) if job else Asked()
    for name in backend or ():
        if name not in ("auto", "xgrammar", "guidance"):
            raise typer.BadParameter(f"{visible(name)} is not auto, xgrammar or guidance", param_hint="--backend")
    if backend:
        named = dict.fromkeys(each for name in backend for each in backends_of(name))
        asked = replace(asked, backends=tuple(named))
    return replace(asked, model=model) if model else asked


def _show(document: dict[str, Any], *, as_json: bool, everything: bool) -> None:
    if as_json:
        # ASCII, so that no character of a schema acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(document, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
        return
    from pipeline.observe.checked import rendered

    console = _console()
    for one in document["schemas"]:
        for part in rendered(one, everything=everything):
            console.print(part)
    refused = sum(one["refused"] is not None for one in document["schemas"])
    console.print(f"\n{len(document['schemas'])} schemas, {refused} refused; exit code {document['exit_code']}")


def _console() -> Console:
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console
