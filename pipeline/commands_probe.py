"""`gristmill probe`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.observe.visible import console_on, visible

if TYPE_CHECKING:
    from pipeline.engines.http_probe import ProbeRow
    from pipeline.job import EngineConfig
    from pipeline.schema.plan import DecodingPlan

VIOLATED = 9

Schema = Annotated[str, typer.Argument(help="`name@version` of a registered schema.", metavar="SCHEMA")]
EnginePath = Annotated[
    Path, typer.Argument(help="An engine config, such as one with `engine: http`.", metavar="ENGINE")
]
Trials = Annotated[int, typer.Option(min=1, max=1000, help="Requests for each keyword.")]
Root = Annotated[str, typer.Option("--schemas", help="Where registered schemas lie.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout: a list of rows.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 if a keyword that the plan counts on was violated.")]


def run(
    schema: Schema,
    engine_path: EnginePath,
    *,
    trials: Trials = 20,
    root: Root = "schemas",
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """Ask a running engine to break each keyword of a schema, and count how often it does.

    For servers whose grammar cannot be looked into. A row says how many answers could have broken the keyword and how
    many did, never that it is enforced. See docs/http.md.

    Exit codes: 0 probed, 2 engine config, 4 schema, 5 engine; with --strict 9: a keyword that should hold was violated.
    """
    from pipeline.engines.http_probe import rendered
    from pipeline.jobfile import load_engine

    config = load_engine(engine_path)
    rows = asyncio.run(_rows(config, plan_for(config, root, schema), trials))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(row) for row in rows], indent=1, ensure_ascii=True))
    else:
        for line in rendered(rows):
            console_on().print(visible(line), soft_wrap=True, markup=False, highlight=False)
    raise typer.Exit(VIOLATED if strict and any(row.violations and not row.left for row in rows) else 0)


def plan_for(config: EngineConfig, root: str, schema: str) -> DecodingPlan:
    """The plan of a schema for this engine.

    Raises:
        SchemaError: it cannot be used.
    """
    from pipeline.compile.plans import plans_of
    from pipeline.job import WorkConfig

    work = WorkConfig.model_validate({"name": "probe", "schemas": root, "engine": config.model_dump()})
    return plans_of(work, [schema]).by_name[schema]


async def _rows(config: EngineConfig, plan: DecodingPlan, trials: int) -> list[ProbeRow]:
    from pipeline.engines import build
    from pipeline.engines.http_probe import probe_keywords

    engine = build(config.model_copy(update={"backend": plan.backend}))
    try:
        await engine.start([plan])
        return list(await probe_keywords(engine, plan, trials))
    finally:
        await engine.close()
