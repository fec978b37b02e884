"""`gristmill in-force`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline.commands_probe import VIOLATED, EnginePath, Root
from pipeline.evaluate.in_force_rows import ROOM, TRIALS, Require, falls_short, rendered, totals
from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.job import EngineConfig
    from pipeline.schema.plan import DecodingPlan

REASONING = 1024
"""Tokens that a server's model may reason for before it answers."""

Schemas = Annotated[list[str], typer.Argument(help="`name@version` of registered schemas.", metavar="SCHEMA...")]
Trials = Annotated[
    int, typer.Option(min=1, max=1000, help="Requests for each side of a comparison; fewer than 7 prove nothing.")
]
Room = Annotated[
    int | None, typer.Option(min=16, help="Tokens of an answer beyond the characters of what is asked for.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, with every row.")]
Required = Annotated[
    Require, typer.Option(help="Exit 9 for less: `no-leak`; `tried`: nothing undecided; `proven`: all.")
]


def run(  # noqa: PLR0913  # the options of a command are its parameters
    engine_path: EnginePath,
    schemas: Schemas,
    *,
    trials: Trials = TRIALS,
    room: Room = None,
    root: Root = "schemas",
    require: Required = "no-leak",
    as_json: AsJson = False,
) -> None:
    """Show whether an engine holds schemas in its answers, keyword by keyword. For your CI. See docs/in-force.md.

    The same requests go out with a keyword and without it. Where they break it without and not with it, it is in force:
    `proven`. An answer that breaks a keyword which the engine must hold is `leaked`.

    Exit codes: 0 as required, 2 engine config, 4 schema, 5 engine, 9 a leak, or less than --require asks for.
    """
    from pipeline.jobfile import load_engine

    config = load_engine(engine_path)
    found = asyncio.run(_tried(config, _by_backend(config, root, schemas), trials, _room(config, room)))
    if as_json:
        typer.echo(json.dumps(found, indent=1, ensure_ascii=True, default=dataclasses.asdict))
    else:
        for line in _lines(found):
            console_on().print(visible(line), soft_wrap=True, markup=False, highlight=False)
    fails = any(falls_short(one["rows"], require) for one in found["schemas"].values())
    raise typer.Exit(VIOLATED if fails else 0)


def _room(config: EngineConfig, given: int | None) -> int:
    return given if given is not None else REASONING if config.engine == "http" else ROOM


def _by_backend(config: EngineConfig, root: str, schemas: Iterable[str]) -> dict[str, list[DecodingPlan]]:
    """The plans, together that one engine serves.

    Raises:
        SchemaError: one cannot be used.
        JobFileError: an engine that plays recordings has no constraint.
    """
    from pipeline.commands_probe import plan_for
    from pipeline.errors import JobFileError

    if config.engine == "recorded":
        raise JobFileError("in-force: a recording has no constraint. Name the engine that answers, such as vllm.")
    groups: dict[str, list[DecodingPlan]] = defaultdict(list)
    for schema in dict.fromkeys(schemas):
        plan = plan_for(config, root, schema)
        groups[plan.backend].append(plan)
    return groups


async def _tried(
    config: EngineConfig, groups: Mapping[str, Iterable[DecodingPlan]], trials: int, room: int
) -> dict[str, Any]:
    from pipeline.engines import build
    from pipeline.evaluate.in_force import in_force
    from pipeline.evaluate.in_force_answers import reader_of

    found: dict[str, Any] = {}
    for backend, plans in groups.items():
        engine = build(config.model_copy(update={"backend": backend}))
        reader = reader_of(config, backend)
        try:
            await engine.start(list(plans))
            for plan in plans:
                started = time.monotonic()
                rows = await in_force(engine, plan, reader, trials=trials, room=room)
                seconds = round(time.monotonic() - started, 1)
                found[plan.name] = {"backend": backend, "seconds": seconds, "rows": rows}
        finally:
            await engine.close()
    return {"engine": config.engine, "schemas": found}


def _lines(found: Mapping[str, Any]) -> Iterable[str]:
    for name, one in found["schemas"].items():
        counts = ", ".join(f"{count} {verdict}" for verdict, count in totals(one["rows"]).items() if count)
        yield f"{name} under {one['backend']}: {counts}; {one['seconds']} s"
        yield from (f"  {line}" for line in rendered(one["rows"]))
