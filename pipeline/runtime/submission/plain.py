"""The same submission by Ray's own command, for people who want to see it, or have only that."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection

from pipeline.runtime.submission.server import Request

ADDRESS = "http://127.0.0.1:8265"
"""Where Ray's job server is on the head's own machine."""


def plain_command(request: Request, address: str | None, secret: Collection[str]) -> str:
    """A line for bash that submits the same to the same server. Values of the variables in `secret` are not in it: they
    are read from the environment, through a pipe, when it is run.

    The address stands before `ray`, since there a variable wins over the option.
    """
    plain = {name: value for name, value in request.env.items() if name not in secret}
    environment = {**({"excludes": list(request.excludes)} if request.excludes else {}), "env_vars": plain}
    if secret:
        program = (
            f"import json, os; e = {_literal(environment)}; "
            f'e["env_vars"].update((n, os.environ[n]) for n in {_literal(sorted(secret))}); print(json.dumps(e))'
        )
        given = ["--runtime-env", f"<(python3 -c {shlex.quote(program)})"]
    else:
        given = ["--runtime-env-json", shlex.quote(json.dumps(environment))]
    words = [
        *(f"RAY_API_SERVER_ADDRESS={shlex.quote(address or ADDRESS)}", "ray", "job", "submit"),
        *("--submission-id", shlex.quote(request.id), "--working-dir", shlex.quote(request.working_dir), *given),
        *("--metadata-json", shlex.quote(json.dumps(dict(request.metadata))), "--", request.entrypoint),
    ]
    return " ".join(words)


def _literal(value: object) -> str:
    """JSON of texts, which is Python of the same meaning, and needs no further quotes in a shell."""
    return json.dumps(value, ensure_ascii=False)
