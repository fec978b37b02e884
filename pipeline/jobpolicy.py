"""What presets fill in where a job says nothing, and which keys of a job have to agree with each other.

A preset stands for what a wrong record costs. Where it has side effects, nothing is written that is not valid.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pipeline.jobplacement import Strict


class NarrowConfig(Strict):
    """Bounds for arrays and strings that have neither a bound nor a pattern: longer values, if legal, are out of reach.
    xgrammar cannot count more than a few characters, so `max_length` speaks for guidance."""

    max_items: int | None = Field(None, ge=1, le=5000)
    max_length: int | None = Field(None, ge=1)


class LookupConfig(Strict):
    """Every value at `pointer` (`*` stands for any item) has to be in a column of a Parquet or CSV file. `schema` makes
    it a lookup of one schema."""

    pointer: str = Field(pattern=r"^(/[^/]+)*$")
    path: str
    column: str
    schema_name: str | None = Field(None, alias="schema")
    severity: Literal["block", "degrade", "observe"] = "block"


@dataclass(frozen=True, slots=True)
class Preset:
    """Defaults of `policy.degraded`, `policy.abstain`, `policy.ground` and `retry.max_attempts`, and why."""

    degraded: bool
    abstain: str
    ground: str
    max_attempts: int
    why: str
    side_effects: bool = False


PRESETS: Mapping[str, Preset] = {
    "extraction": Preset(
        True, "none", "observe", 2, "a partial record still serves, written apart and with what it lacks named"
    ),
    "classification": Preset(
        True, "none", "off", 2, "a wrong label costs little, and labels need not stand in the document"
    ),
    "tool_call": Preset(
        False,
        "document",
        "retry",
        3,
        "a call acts: the model may say that none applies, and an argument that nothing supports is asked for again",
        side_effects=True,
    ),
    "sql": Preset(
        False, "none", "off", 3, "a wrong query may destroy or disclose; it is no quotation", side_effects=True
    ),
    "configuration": Preset(
        False, "none", "off", 3, "a wrong setting breaks what it configures; it is no quotation", side_effects=True
    ),
    "synthetic": Preset(
        False,
        "none",
        "off",
        1,
        "what is trained on it learns its mistakes; another sample costs no more than a second attempt",
        side_effects=True,
    ),
}

POLICY_KEYS = ("degraded", "abstain", "ground")


def with_policy(data: Any) -> Any:
    """The keys of `policy` with those that are not given as the preset has them.

    Raises:
        ValueError: `degraded` is asked for where the preset rules it out.
    """
    preset = PRESETS.get(str(data.get("preset", "extraction"))) if isinstance(data, Mapping) else None
    if preset is None:  # no mapping, or no such preset: the model says so
        return data
    if preset.side_effects and data.get("degraded") not in (None, False):
        raise ValueError(
            f"`degraded: {str(data['degraded']).lower()}` contradicts `preset: {data['preset']}`, under which a wrong "
            "value has side effects. Leave it out, or choose another preset"
        )
    return {**{key: getattr(preset, key) for key in POLICY_KEYS}, **data}


def with_attempts(data: Any) -> Any:
    """The keys of a job with `retry.max_attempts` as the preset has it, where it is not given."""
    if not isinstance(data, Mapping):
        return data
    policy, retry = data.get("policy", {}), data.get("retry", {})
    name = policy.get("preset") if isinstance(policy, Mapping) else getattr(policy, "preset", None)
    preset = PRESETS.get(str(name))
    if preset is None:
        return data
    given = retry if isinstance(retry, Mapping) else getattr(retry, "model_fields_set", ("max_attempts",))
    if "max_attempts" in given:
        return data
    if isinstance(retry, Mapping):
        return {**data, "retry": {**retry, "max_attempts": preset.max_attempts}}
    return {**data, "retry": retry.model_copy(update={"max_attempts": preset.max_attempts})}


def disagreements(main: Any, engines: Mapping[str, Any], retry: Any, max_tokens: int) -> Iterator[str]:
    """What keeps the ladder of `retry` from being climbed, and the engines that it names from standing in for the main
    one; one line each."""
    if len(retry.ladder) >= retry.max_attempts:
        yield (
            f"retry.ladder: it has {len(retry.ladder)} rungs, and max_attempts ({retry.max_attempts}) allows "
            f"{retry.max_attempts - 1} more after the first; raise it, or drop rungs"
        )
    for place, rung in enumerate(retry.ladder):
        if rung.engine is not None and rung.engine not in engines:
            nearest = difflib.get_close_matches(rung.engine, engines, n=1, cutoff=0.4)
            known = f"known there: {', '.join(sorted(engines))}" if engines else "which names none"
            hint = f"did you mean `{nearest[0]}`?" if nearest else known
            yield f"retry.ladder.{place}.engine: `{rung.engine}` is not in `engines`; {hint}"
    if (found := _too_long("sampling.max_tokens", main, max_tokens)) is not None:
        yield found
    for name in sorted({rung.engine for rung in retry.ladder} & set(engines)):
        yield from _differences(name, main, engines[name], max_tokens)


def _differences(name: str, main: Any, other: Any, max_tokens: int) -> Iterator[str]:
    where = f"engines.{name}"
    if other.backend not in ("auto", main.backend):
        yield (
            f"{where}.backend: it decodes under the grammars of the main engine's back end ({main.backend}); "
            "write `auto`, or the same for both"
        )
    if other.compact_json != main.compact_json:
        yield f"{where}.compact_json: it differs from the main engine's; write the same for both"
    if (found := _too_long(f"{where}: sampling.max_tokens", other, max_tokens)) is not None:
        yield found
    ours, theirs = getattr(main, "environment", {}), getattr(other, "environment", {})
    for key in sorted(key for key in {*ours} & {*theirs} if ours[key] != theirs[key]):
        yield f"{where}.environment.{key}: both engines live in one process, and the main one sets another value"


def _too_long(what: str, engine: Any, max_tokens: int) -> str | None:
    context = getattr(engine, "max_model_len", None)
    if context is None or max_tokens < context:
        return None
    return f"{what} ({max_tokens}) leaves no room for a prompt in the engine's max_model_len ({context})"
