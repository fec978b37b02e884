"""The closed set of events. docs/events.md is written from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["info", "warning", "error"]

ALWAYS = {
    "time": "when it happened: UTC, ISO 8601, microseconds",
    "event": "one of the names below",
    "level": "`info`, `warning`, `error`",
    "job": "the job's name",
    "run": "the run's id; empty for an endpoint, and of a command that failed before there was one",
    "process": "`driver`, `extract-…` (a process that extracts), `engine-…` (one that holds an engine), `endpoint-…`",
    "seq": "counts the lines of the process since it began: a gap is a line that was lost, or that the hook took out",
}
"""Members of every line."""

MEMBERS = {
    "attempt": "number of the attempt that it is about, from 1; 0: none",
    "attempts": "requests made for the document",
    "backend": "grammar back end of the engine",
    "code": "the problem's code ([troubleshooting.md](troubleshooting.md)), the worst if there are several",
    "codes": "all of the document's codes, sorted, 20 at most",
    "count": "how many",
    "degraded": "documents of that status",
    "document": "its id, as the input has it",
    "documents": "documents of the input, or of the unit",
    "engine": "kind of the engine (`vllm`, `sampler`, `recorded`, `http`)",
    "error": "class of what was raised (`Full`: the disk did not keep up)",
    "exit_code": "of the command",
    "left": "documents that are not committed yet",
    "reason": "in words of this program; no text of a document or a model",
    "rejected": "documents of that status",
    "resumed": "whether a part of the run was committed before",
    "schema": "the document's schema",
    "seconds": "how long it took",
    "status": "what became of the document",
    "unit": "the unit's id",
    "valid": "documents of that status",
    "verdict": "of a candidate: `promote`, `hold`, `roll_back` ([canary.md](canary.md))",
}
"""Further members, by event."""

TEXT_MEMBERS = {
    "document_text": "of a rejected document, as it was read",
    "message": "what was found, or raised, in words: may quote the document, the model or a server",
    "pointer": "where in the record; its keys may be the model's",
    "raw_text": "the attempt's answer as the model gave it",
}
"""Members that are there with `text: true` only."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One event. `members` and `text` name what its line holds besides `ALWAYS`; the latter only with `text: true`."""

    level: Level
    meaning: str
    members: tuple[str, ...] = ()
    text: tuple[str, ...] = ()


_OF_A_DOCUMENT = ("document", "schema", "status", "attempt", "attempts", "code", "codes")
_ITS_TEXT = ("message", "pointer", "raw_text", "document_text")

KINDS: dict[str, Kind] = {
    "run_started": Kind("info", "a run begins, or goes on", ("documents", "left", "resumed", "engine")),
    "run_done_before": Kind("info", "nothing is to do: the run was committed before"),
    "schema_refused": Kind(
        "error", "no grammar can hold a schema: its documents are rejected unasked", ("schema",), ("message",)
    ),
    "schema_stopped": Kind("error", "`stop_if` gave up a schema's documents for this run", ("schema", "reason")),
    "run_committed": Kind("info", "the manifest is written", ("documents", "valid", "degraded", "rejected", "seconds")),
    "canary_judged": Kind(
        "info", "a candidate was held against the run and judged", ("verdict", "documents"), ("message",)
    ),
    "canary_failed": Kind(
        "error", "a candidate could not be judged; the run itself is committed", ("error", "exit_code"), ("message",)
    ),
    "run_stopped": Kind("error", "the run ends with schemas that were stopped", ("exit_code", "reason", "seconds")),
    "run_stalled": Kind("error", "no document finished for `safety.stall_seconds`", ("exit_code", "reason", "seconds")),
    "run_interrupted": Kind("warning", "Ctrl-C or SIGTERM; the same command goes on", ("exit_code", "seconds")),
    "run_failed": Kind("error", "the command ends with an error", ("error", "exit_code", "seconds"), ("message",)),
    "process_died": Kind("error", "processes of the run died; Ray starts others", ("count",), ("message",)),
    "poison_found": Kind("error", "documents were found that kill their process", ("count",)),
    "engine_started": Kind("info", "an engine serves", ("engine", "backend", "seconds")),
    "engine_failed": Kind("error", "an engine did not start", ("engine", "backend", "error"), ("message",)),
    "engine_lost": Kind("error", "an engine died or is stuck: its process ends", ("engine", "error"), ("message",)),
    "unit_committed": Kind("info", "a unit is written and committed", ("unit", "schema", "documents", "seconds")),
    "document_retried": Kind(
        "info", "more than one request was made for a document", _OF_A_DOCUMENT, ("message", "pointer")
    ),
    "document_degraded": Kind("info", "its record is usable, not whole", _OF_A_DOCUMENT, _ITS_TEXT[:3]),
    "document_rejected": Kind("warning", "it has no record", _OF_A_DOCUMENT, _ITS_TEXT),
    "document_alarm": Kind(
        "error", "a problem that no document is to blame for: one line for each code", _OF_A_DOCUMENT, _ITS_TEXT[:3]
    ),
    "document_poison": Kind("error", "it kills the process that works on it", _OF_A_DOCUMENT, _ITS_TEXT),
    "events_lost": Kind("warning", "lines that could not be written since the last one", ("count", "error")),
}
