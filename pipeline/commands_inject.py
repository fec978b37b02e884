"""`gristmill inject`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from pipeline.observe.visible import cell, console_on, visible, visible_id

LOG_WIDTH = 140
FLIPPED = 9

JobPath = Annotated[Path, typer.Argument(help="A job file, such as jobs/demo.yaml.", metavar="JOB.yaml")]
Documents = Annotated[int, typer.Option(min=2, max=1000, help="Documents of each schema to plant in.")]
Seed = Annotated[int, typer.Option(help="Picks documents, values, wordings and places.")]
Fields = Annotated[
    list[str] | None, typer.Option("--field", help="Only this field, a JSON pointer; may be given again.")
]
Free = Annotated[bool, typer.Option("--free", help="Also without the constraint: what it stops is told by that.")]
Engines = Annotated[
    list[Path] | None, typer.Option("--engine", help="An engine config to try besides the job's; may be given again.")
]
Most = Annotated[
    float | None, typer.Option("--most", min=0, max=1, help="Exit 9 where more of the legal plants were followed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; docs/injection.md lists its keys.")]
Output = Annotated[Path | None, typer.Option(help="Write that document to this file, too.")]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    job_path: JobPath,
    *,
    documents: Documents = 10,
    seed: Seed = 0,
    fields: Fields = None,
    free: Free = False,
    engines: Engines = None,
    most: Most = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Plant instructions in documents of a job, and count how often records follow them.

    For each field: an instruction to write another **legal** value (no constraint stops that), and one to write a value
    **outside** of the schema, against the same document without it and with a sentence that asks for nothing. Runs in
    this process and writes no run. See docs/injection.md.

    Exit codes: 0 told, 2 options or job file, 3 input, 4 schema, 5 engine, 6 the file cannot be written; with --most 9:
    more were followed, or a constrained answer held what its schema refuses.
    """
    from pipeline.evaluate.injection.inject import Wish, inject
    from pipeline.jobfile import load_engine, load_job

    others = tuple(load_engine(path) for path in engines or ())
    document = inject(load_job(job_path), Wish(documents, seed, tuple(fields or ()), free, others))
    if output is not None:
        _write(output, document)
    if as_json:
        # ASCII, so that no text of a document acts on a terminal; DEL is the one control that JSON lets through.
        typer.echo(json.dumps(document, indent=1, ensure_ascii=True).replace("\x7f", "\\u007f"))
    else:
        _show(document)
    raise typer.Exit(FLIPPED if most is not None and _too_many(document, most) else 0)


def _too_many(document: Mapping[str, Any], most: float) -> bool:
    for arm in document["arms"]:
        for told in arm["schemas"]:
            legal, outside = told["kinds"]["legal"]["obeyed"]["value"], told["kinds"]["outside"]["written"]["count"]
            if (legal or 0) > most or (arm["constrained"] and outside):
                return True
    return False


def _write(path: Path, document: Mapping[str, Any]) -> None:
    from pipeline.errors import OutputError

    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}.") from error


def _show(document: Mapping[str, Any]) -> None:
    console = console_on()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    for arm in document["arms"]:
        way = "constrained" if arm["constrained"] else "free"
        for told in arm["schemas"]:
            title = f"{told['schema']}, {arm['model']} ({arm['engine']}), {way}: {told['documents']} documents"
            console.print(_table(visible(title), told))
            statuses = ", ".join(f"{count} {name}" for name, count in told["plain"].items())
            console.print(f"without plants: {statuses}; a plant left a worse status: {_rate(told['worse'])}")
            for name, what in (("templates", "wording"), ("places", "place")):
                parts = [f"{one['name']} {_rate(one['obeyed'])}" for one in told[name]]
                console.print(f"legal plants obeyed, by {what}: {'; '.join(parts)}", soft_wrap=True)
            for one in told["examples"][:3]:
                console.print(cell(_example(one), "yellow"), soft_wrap=True)
    for note in document["notes"]:
        console.print(cell(f"note  {note}", "yellow"), soft_wrap=True)


def _example(one: Mapping[str, Any]) -> str:
    before, after, words = (json.dumps(one[name], ensure_ascii=False) for name in ("without", "with", "words"))
    return f"{visible_id(one['document'])}  {one['kind']} {one['pointer']}: {before} became {after} after {words}"


def _table(title: str, told: Mapping[str, Any]) -> Table:
    table = Table(
        "field", "kind", "plants", "obeyed", "by chance", "moved", "lost", "written", title=title, title_justify="left"
    )
    changed = {one["pointer"]: one["changed"] for one in told["controls"]}
    rows = [(one["pointer"], one["kind"], one) for one in told["fields"]]
    rows += [("all", kind, told["kinds"][kind]) for kind in told["kinds"] if told["kinds"][kind]["plants"]]
    for pointer, kind, one in rows:
        rates = [_rate(one[name]) for name in ("obeyed", "by_chance", "moved", "lost", "written")]
        table.add_row(cell(pointer), kind, str(one["plants"]), *rates)
    for pointer, rate in changed.items():
        table.add_row(cell(pointer), "control", "", "", "", _rate(rate), "", "")
    return table


def _rate(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "–"
    return f"{rate['count']:g}/{rate['of']:g} [{rate['low']:.2f} {rate['high']:.2f}]"
