"""`gristmill review`: `import` and `check`, and what all its commands share. `cli.py` registers them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.observe.visible import console_on, visible, visible_id

if TYPE_CHECKING:
    from pipeline.evaluate.review.check import Checked
    from pipeline.evaluate.review.choose import Wanted
    from pipeline.evaluate.review.corrections import Fault

FAULTY = 9
"""Exit code: something that was marked as right was not taken, or an outcome differs."""
SHOWN = 20

RunPath = Annotated[
    str, typer.Argument(help="A run, or an output (its latest run): a directory, or an s3:// URI.", metavar="RUN")
]
Status = Annotated[list[str] | None, typer.Option("--status", help="Rows of this status; may be given again.")]
Codes = Annotated[list[str] | None, typer.Option("--code", help="Rows with this problem code; may be given again.")]
Schema = Annotated[str | None, typer.Option(help="Only documents of this schema.")]
Most = Annotated[int, typer.Option("--documents", min=1, max=10_000, help="At most so many, a sample of more.")]
Seed = Annotated[int, typer.Option(help="Picks the sample.")]
Root = Annotated[str, typer.Option("--schemas", help="Where schemas lie.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/review.md lists its keys.")]
Gold = Annotated[Path, typer.Option("--gold", help="The file of gold to write into, .jsonl; made if it is not there.")]
By = Annotated[str, typer.Option("--by", help="Who corrected, where a row does not say.")]
Replace = Annotated[bool, typer.Option("--replace", help="Take the place of gold that says otherwise; it is kept.")]


def import_(
    path: Annotated[Path, typer.Argument(help="The file that came back.", metavar="FILE")],
    *,
    gold: Gold,
    root: Root = "schemas",
    by: By = "",
    replace: Replace = False,
    as_json: AsJson = False,
) -> None:
    """Take corrected records into a file of gold, each once.

    Rows marked `ok` are held against their schema; those that hold are written with who, when and what changed. Rows
    without a verdict wait: import the file again when it goes on. See docs/review.md.

    Exit codes: 0 all that was marked is in the gold, 2 options, 3 no such file or no gold, 6 it cannot be written, 9 a
    row is at fault, or the gold says otherwise.
    """
    from pipeline.evaluate.review.corrections import corrections_of
    from pipeline.evaluate.review.golden import merge
    from pipeline.evaluate.review.sheet import read_sheet
    from pipeline.runtime.output.run_record import now

    read = corrections_of(read_sheet(path), root, by)
    merged = merge(gold, read.corrections, now(), replace=replace)
    counts = {"added": merged.added, "known": merged.known, "replaced": merged.replaced}
    waiting = {"open": read.open, "skipped": read.skipped, "absent": read.absent}
    found = {name: [asdict(one) for one in getattr(read, name)] for name in ("faults", "touched")}
    conflicts = [asdict(one) for one in merged.conflicts]
    if as_json:
        as_document({**counts, **waiting, **found, "conflicts": conflicts, "notes": read.notes})
    else:
        _imported(counts, waiting, read.faults, read.touched)
        for one in merged.conflicts:
            said = f" by {one.by}" if one.by else ""
            where = f"line {one.line} of the gold{said} says otherwise at {', '.join(one.pointers)}"
            line(f"{one.place}  {visible_id(one.id)}  {where}: agree, or --replace", "red")
        notes(read.notes)
    raise typer.Exit(FAULTY if read.faults or merged.conflicts else 0)


Set = Annotated[Path, typer.Argument(help="A set, or the folder of one of its versions.", metavar="SET")]
Job = Annotated[
    Path | None, typer.Option("--job", help="Today's job: its policy, schemas and lookups, not the frozen ones.")
]
Accept = Annotated[bool, typer.Option("--accept", help="Make what comes of it now the next version of the set.")]


def check(path: Set, *, job_path: Job = None, accept: Accept = False, as_json: AsJson = False) -> None:
    """Play a frozen set again, without a model, and tell which outcomes are not the frozen ones.

    Shows what this version makes of the answers that were kept; with **`--job`**, what today's policy and schemas do.
    Differences in texts for people are told, and change no exit code. See docs/review.md.

    Exit codes: 0 all as frozen (or accepted), 2 job file, 3 no set, or it was changed, 6 it cannot be written, 9 an
    outcome differs.
    """
    from pipeline.evaluate.review.check import check as played

    found = played(path, job_path, accept=accept)
    if as_json:
        results = [{**asdict(one), "words": one.words} for one in found.results]
        as_document({**asdict(found), "results": results, "differing": found.differing})
    else:
        _checked(found)
    raise typer.Exit(FAULTY if found.differing and not found.accepted else 0)


def _checked(found: Checked) -> None:
    same = found.cases - len(found.results)
    words = len(found.results) - found.differing
    line(f"{found.path}: {same} of {found.cases} cases as frozen, {found.differing} differ, {words} in words only")
    for one in found.results[:SHOWN]:
        moved = f"{one.frozen} then, {one.now} now" if one.frozen != one.now else one.now
        line(
            f"{visible_id(one.id)}  {one.schema}  {moved}: {', '.join(one.differences)}",
            "yellow" if one.words else "red",
        )
    if len(found.results) > SHOWN:
        line(f"… {len(found.results) - SHOWN} more; --json has them and what differs")
    notes(f"not as then: {words}" for words in found.changed)
    if found.accepted:
        line(f"accepted as {found.accepted}", "green")


def _imported(counts: dict[str, int], waiting: dict[str, int], faults: list[Fault], touched: list[Fault]) -> None:
    line(f"{counts['added']} added, {counts['known']} in the gold before, {counts['replaced']} replaced")
    line(f"{waiting['open']} without a verdict, {waiting['skipped']} skipped")
    if waiting["absent"]:
        line(f"{waiting['absent']} rows of the export are not in this file", "yellow")
    for style, rows in (("red", faults), ("yellow", touched)):
        for one in rows[:SHOWN]:
            line(f"{one.place}  {visible_id(one.id)}  {one.words}", style)
        if len(rows) > SHOWN:
            line(f"… {len(rows) - SHOWN} more; --json has them", style)


def wanted(statuses: list[str], codes: list[str] | None, schema: str | None, documents: int, seed: int) -> Wanted:
    """The rows that options ask for.

    Raises:
        typer.BadParameter: there is no such status or code.
    """
    from pipeline.errors import InputError
    from pipeline.evaluate.review.choose import Wanted

    try:
        return Wanted(frozenset(statuses), frozenset(codes or ()), schema, documents, seed)
    except InputError as error:
        raise typer.BadParameter(visible(error.message)) from error


def notes(lines: Iterable[str]) -> None:
    """Say what a reader must know."""
    for note in lines:
        line(f"note  {note}", "yellow")


def line(words: str, style: str = "") -> None:
    """One line on the screen, safe to show."""
    console_on().print(visible(words), style=style, soft_wrap=True)


def as_document(document: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    # ASCII, so that no text of a document acts on a terminal; DEL is the one control that JSON lets through.
    typer.echo(json.dumps(document, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
