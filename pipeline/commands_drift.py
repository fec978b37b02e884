"""`gristmill drift`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import InputError
from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.observe.profile import Profile
    from pipeline.observe.shift import Comparison
    from pipeline.observe.shifted import Side
    from pipeline.runtime.store import Store

LOG_WIDTH = 140
SHIFTED = 9

RunPath = Annotated[
    str, typer.Argument(help="A run, or an output (its latest run): a directory, or an s3:// URI.", metavar="RUN")
]
Against = Annotated[
    str | None,
    typer.Option(
        help="What to hold it against: a run, an output, or a file of records, one JSON on each line.",
        metavar="RUN|FILE.jsonl",
        show_default="the previous run of the same job",
    ),
]
Schema = Annotated[str | None, typer.Option(help="Only this schema. Needed for a file, if RUN has several.")]
Member = Annotated[
    str | None, typer.Option(help="The lines of the file are objects that hold the record under this key.")
]
Alpha = Annotated[
    float,
    typer.Option(min=1e-6, max=0.5, help="Chance of calling anything beyond chance where nothing shifted."),
]
Least = Annotated[float, typer.Option(min=0, max=1, help="Share of documents from which a shift matters.")]
Documents = Annotated[int, typer.Option(min=1, help="Documents of a schema to read; of more, evenly chosen units.")]
All = Annotated[bool, typer.Option("--all", help="Show every test.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout; docs/field-drift.md lists its keys.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 where a field shifted.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    path: RunPath,
    *,
    against: Against = None,
    schema: Schema = None,
    member: Member = None,
    alpha: Alpha = 0.01,
    least: Least = 0.05,
    documents: Documents = 20_000,
    everything: All = False,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """Say which fields of a run's records are distributed differently than before: than in a run, or in a file.

    For each field: what is missing or empty, values, languages, lengths, numbers, with a **named statistic**, the
    counts, and a chance that is corrected for the number of tests. See docs/field-drift.md.

    Exit codes: 0 compared, 2 options, 3 the file or a run to compare with is missing, 6 no committed run or it cannot
    be read; with --strict 9: a field shifted.
    """
    from pipeline.observe.shift import compare
    from pipeline.runtime.output.lookup import find_run

    store = find_run(path)
    now, this = _run_side(store, schema, documents)
    if schema is not None and schema not in now:
        known = ", ".join(map(visible, sorted(now))) or "none"
        said = f"{visible(store.where)} has no document of {visible(schema)}, but of {known}."
        raise typer.BadParameter(said, param_hint="--schema")
    if against is not None and os.path.isfile(against):
        before, other = _file_side(against, member, _the_schema(now))
    elif member is not None:
        raise typer.BadParameter("it is for a file of records.", param_hint="--member")
    else:
        before, other = _run_side(find_run(against) if against else _previous(store), schema, documents)
    found = compare(before, now, alpha=alpha, least=least)
    _show(found, other, this, everything=everything, as_json=as_json)
    raise typer.Exit(SHIFTED if strict and found.shifted else 0)


def _show(found: Comparison, other: Side, this: Side, *, everything: bool, as_json: bool) -> None:
    from pipeline.observe.shifted import as_document, rendered

    if as_json:
        # ASCII, so that no character of a record acts on a terminal; DEL is the one control that JSON lets through.
        text = json.dumps(as_document(found, other, this), indent=1, ensure_ascii=True)
        typer.echo(text.replace("\x7f", "\\u007f"))
        return
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for part in rendered(found, other, this, everything=everything):
        console.print(part)


def _run_side(store: Store, schema: str | None, documents: int) -> tuple[dict[str, Profile], Side]:
    from pipeline.observe.shifted import Side
    from pipeline.runtime.output.profiles import profiles_of_run

    found = profiles_of_run(store, only=schema, documents=documents)
    read = {name: profile.records for name, profile in found.profiles.items()}
    return dict(found.profiles), Side(store.where, read, found.records)


def _file_side(path: str, member: str | None, schema: str) -> tuple[dict[str, Profile], Side]:
    from pipeline.compile.report_sources import read_samples
    from pipeline.observe.profile import profile_of
    from pipeline.observe.shifted import Side

    records = read_samples(path)
    if member is not None:
        lacking = [n for n, one in enumerate(records, 1) if not isinstance(one, dict) or member not in one]
        if lacking:
            raise InputError(f"{path}: record {lacking[0]} is no object with the key {member!r} of --member.")
        records = [one[member] for one in records]
    if not records:
        raise InputError(f"{path} holds no record. Give one JSON record on each line.")
    profile = profile_of(schema, ((f"line {number}", record) for number, record in enumerate(records, 1)))
    return {schema: profile}, Side(path, {schema: len(records)}, {schema: len(records)})


def _the_schema(now: dict[str, Profile]) -> str:
    """The one schema of the run's records, which those of a file are of."""
    named = [name for name, profile in now.items() if profile.records]
    if len(named) != 1:
        said = f"name the one that the file's records are of: {', '.join(map(visible, sorted(named)))}"
        raise typer.BadParameter(said if named else "the run has no record to compare.", param_hint="--schema")
    return named[0]


def _previous(store: Store) -> Store:
    from pipeline.runtime.output.lookup import previous_run

    found = previous_run(store)
    if found is None:
        raise InputError(f"no earlier run of this job lies beside {store.where}. Name what to compare with: --against.")
    return found
