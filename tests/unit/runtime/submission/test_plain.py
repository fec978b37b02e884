"""The line for `ray job submit`, run by bash with a `ray` that writes down what it was called with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.runtime.submission.plain import plain_command
from pipeline.runtime.submission.server import Request

RECORDER = f"""#!{sys.executable}
import json, os, sys
words, files = sys.argv[1:], {{}}
if "--runtime-env" in words:
    files = json.loads(open(words[words.index("--runtime-env") + 1]).read())
print(json.dumps([words, files, os.environ["RAY_API_SERVER_ADDRESS"]]))
"""


def called(line: str, tmp_path: Path, **environment: str) -> Any:
    ray = tmp_path / "ray"
    ray.write_text(RECORDER, encoding="utf-8")
    ray.chmod(0o755)
    found = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", line], env={"PATH": found, **environment}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


REQUEST = Request(
    id="nightly-1-2",
    entrypoint="gristmill run 'jobs/a b.yaml'",
    working_dir="/srv/it's here",
    excludes=("*.bin", 'a "quoted" $HOME'),
    env={"RAY_JOB_STOP_WAIT_TIME_S": "60"},
    metadata={"gristmill_job": "nightly", "gristmill_output": "s3://bucket/o'ut"},
)


@pytest.mark.parametrize("secret", [(), ("KEY",)])
def test_the_line_says_the_same(tmp_path: Path, secret: tuple[str, ...]) -> None:
    value = "hunter2 'and' \"more\" $HOME"
    env = {**REQUEST.env, **dict.fromkeys(secret, value)}
    request = Request(REQUEST.id, REQUEST.entrypoint, REQUEST.working_dir, REQUEST.excludes, env, REQUEST.metadata)
    line = plain_command(request, "http://head:8265", secret)
    assert "hunter2" not in line
    words, from_file, address = called(
        line, tmp_path, **dict.fromkeys(secret, value), RAY_API_SERVER_ADDRESS="http://x"
    )
    assert address == "http://head:8265"
    assert words[:2] == ["job", "submit"]
    assert option(words, "--submission-id") == request.id
    assert option(words, "--working-dir") == request.working_dir
    assert json.loads(option(words, "--metadata-json")) == request.metadata
    assert words[words.index("--") + 1 :] == ["gristmill", "run", "jobs/a b.yaml"]
    environment = from_file if secret else json.loads(option(words, "--runtime-env-json"))
    assert environment == {"excludes": list(request.excludes), "env_vars": env}
