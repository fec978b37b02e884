"""`gristmill render`: its options, and what is done with them. `cli.py` registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import OutputError

ValuesPath = Annotated[
    Path, typer.Argument(help="A file of values, such as those in deploy/examples.", metavar="VALUES.yaml")
]
Output = Annotated[Path | None, typer.Option(help="Write this file instead of stdout.")]


def run(values_path: ValuesPath, output: Output = None) -> None:
    """Render the Kubernetes manifests of a job or service for KubeRay.

    Nothing is asked of a cluster: `gristmill render VALUES.yaml | kubectl apply -f -` does that. Pods, GPUs and engines
    follow from the job or the Serve config that the values name. See deploy/README.md.

    Exit codes: 0 rendered, 2 values, job or engine config, 4 schema, 6 output.
    """
    from pipeline.deploy.manifests import render

    text = render(values_path)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}. Give --output another path.") from error
