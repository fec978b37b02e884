"""Notes: what somebody should look at before the job starts, and what the plan's numbers rest on, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]

FEEDBACK = "a later attempt is taken to be as long as the first; what it is told, a few short lines, is not counted"


def looks(document: Document) -> Iterator[dict[str, str]]:
    """What should be looked at, as `code` and `words`; with `--strict` each one makes the exit code 9."""
    for one in document["schemas"]:
        name, count = one["name"], one["documents"]
        if one["refused"]:
            yield _look("schema_refused", f"{name}: its {count} documents will be rejected: {one['refused']}")
            continue
        beyond = one["sampled"]["beyond_context"]
        if beyond["value"]:
            yield _look("beyond_context", f"{name}: about {_range(beyond)} documents do not fit the context")
        for finding in one["findings"]:
            yield _look("budget", f"{name}: {finding['message']}")
    if count := document["documents"]["without_schema"]:
        yield _look("without_schema", f"{count} documents name no schema and will be rejected")
    run, deadline = document["run"], document["deadline"]
    if run and run["differs"]:
        yield _look("run_differs", f"the run was made otherwise: {', '.join(run['differs'])}")
    placed = document["engine"]["engines"]
    if deadline and deadline["engines"]["value"] > placed:
        wanted = deadline["engines"]["value"]
        yield _look("deadline", f"the deadline wants {wanted:g} engines, the job has at most {placed}")


def notes(document: Document) -> Iterator[str]:
    """What the numbers rest on: what was measured, given or assumed."""
    given, engine, run = document["given"], document["engine"], document["run"]
    yield _sampling(document)
    if engine["kind"] in ("http", "recorded"):
        yield f"tokens are counted by the tokenizer of {engine['tokenizer']}, which may not be the engine's own"
    yield from _attempts(document)
    yield from _output(document)
    if engine["max_attempts"] > 1:
        yield FEEDBACK
    if given["tokens_per_second"] is None and run is not None:
        yield (
            f"tokens per second are the output tokens of the run over {run['seconds']:.0f} s from its begin to its "
            f"commit and at most {run['engines']} engines, {_start(given, run)}; its pauses and idle engines are in it"
        )
    elif given["tokens_per_second"] is None:
        yield "no hours and no cost: give --tokens-per-second of one engine, or --run to measure them"
    yield from _time(document)


def _sampling(document: Document) -> str:
    sampled = [one for one in document["schemas"] if one["sampled"]]
    count = sum(one["sampled"]["documents"] for one in sampled)
    of = sum(one["documents"] for one in sampled)
    if count == of:
        return f"prompt tokens are exact: all {of} documents were counted"
    return (
        f"prompt tokens are sampled: {count} of {of} documents, at most {document['given']['sample']} a schema, seed "
        f"{document['given']['seed']}; intervals are of {document['confidence']:.0%}: normal approximation for totals, "
        "Wilson's, corrected for continuity, for counts"
    )


def _attempts(document: Document) -> Iterator[str]:
    most = document["engine"]["max_attempts"]
    bases = {one["tokens"]["attempts"]["basis"] for one in document["schemas"] if one["tokens"]}
    formula = f"(1 - q^{most}) / (1 - q), with q the chance that an answer needs another one"
    if "given" in bases:
        yield f"attempts are {formula}: q = {1 - document['given']['success']:.3g} is given"
    if "measured" in bases:
        yield f"attempts are {formula}: measured in the run"
    if "assumed" in bases:
        yield f"attempts are assumed: one, at worst {most}; give --success, or --run to measure it"


def _output(document: Document) -> Iterator[str]:
    bases = {one["tokens"]["output"]["basis"] for one in document["schemas"] if one["tokens"]}
    if "given" in bases:
        yield "output tokens of an answer are given"
    if "measured" in bases:
        yield "output tokens of an answer are measured in the run"
    if "assumed" in bases:
        yield (
            "output tokens of an answer are assumed: those of typical legal records, from the shortest to the 99th "
            "percentile (docs/budget.md); give --output-tokens, or --run to measure them"
        )


def _time(document: Document) -> Iterator[str]:
    given, engine, run = document["given"], document["engine"], document["run"]
    if given["tokens_per_second"] is not None and given["prompt_tokens_per_second"] is None:
        yield "reading prompts is taken to be within --tokens-per-second: measure it with prompts as long as these"
    if document["as_placed"] and given["start_minutes"] is None and run and run["start_seconds"] is not None:
        start = f"{run['start_seconds'] / 60:.3g} minutes"
        yield f"the hours have {start} of start, as measured in the run (--start-minutes)"
    if document["deadline"]:
        yield (
            f"engines for the deadline have a reserve of {given['reserve']:.0%} over the work, for the end of a job, "
            "when not all are busy, and for what fails"
        )
    if given["price_per_gpu_hour"] is not None and not engine["gpus"]:
        yield "no cost: the job's engines ask for no GPU (`num_gpus`)"
    if (limit := engine["requests_per_minute"]) and document["as_placed"]:
        hours = document["tokens"]["requests"]["value"] / limit / 60 / engine["engines"]
        yield f"`requests_per_minute` alone makes it {hours:.1f} hours at least"


def _start(given: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    if run["start_seconds"] is not None:
        return f"less {run['start_seconds']:.0f} s for its start, as measured"
    if given["start_minutes"] is not None:
        return f"less {given['start_minutes']:g} minutes for the start of engines"
    return "as if engines took no time to start, so hours are too many (--start-minutes)"


def _look(code: str, words: str) -> dict[str, str]:
    return {"code": code, "words": words}


def _range(estimate: Mapping[str, Any]) -> str:
    value, low, high = (f"{estimate[name]:.0f}" for name in ("value", "low", "high"))
    return value if low == high else f"{value} ({low} to {high})"
