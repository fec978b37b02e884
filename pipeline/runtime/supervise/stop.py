"""Stop rule: when the documents of a schema are given up for this run, because of what became of them so far.

Rates are of documents that an engine was asked about: unreadable rows and poison say nothing of a prompt or a schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.jobplacement import StopConfig

_PROBLEMS = 3
"""How many of the most frequent problems a finding names."""


@dataclass(slots=True)
class Counts:
    """What the rule reads, summed over the tallies of one schema. `rejected` are documents that an engine was asked
    about; `problems` count documents by code."""

    asked: int = 0
    formatted: int = 0
    semantic: int = 0
    truncated: int = 0
    rejected: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def add(self, tally: Mapping[str, Any]) -> None:
        """Count the JSON of a `Tally`."""
        # Whatever nobody was asked about is rejected.
        unasked = tally.get("documents", 0) - tally.get("asked", 0)
        self.asked += tally.get("asked", 0)
        self.formatted += tally.get("first_pass_format", 0)
        self.semantic += tally.get("first_pass_semantic", 0)
        self.truncated += tally.get("truncated", 0)
        self.rejected += max(0, tally.get("statuses", {}).get("rejected", 0) - unasked)
        self.problems.update(tally.get("codes", {}))


def finding(counts: Counts, config: StopConfig, after: int | None = None) -> str:
    """Which rates crossed what, in words; empty if none did, or fewer than `after` (default: the config's) were asked
    about."""
    asked = counts.asked
    if asked < max(1, config.after if after is None else after):
        return ""
    most = (
        ("truncation", config.truncation, counts.truncated, "were cut"),
        ("rejection", config.rejection, counts.rejected, "were rejected"),
    )
    least = (
        ("first_pass", config.first_pass, counts.formatted, "had JSON as their first answer"),
        ("semantic", config.semantic, counts.semantic, "had a first answer that passes schema, rules and grounding"),
    )
    crossed = [one for one in most if one[1] is not None and one[2] / asked > one[1]]
    crossed += [one for one in least if one[1] is not None and one[2] / asked < one[1]]
    told = ", ".join(f"{count} {what} (`stop_if.{key}` is {share:g})" for key, share, count, what in crossed)
    return f"of {asked} documents that an engine was asked about, {told}" if told else ""


def describe(schema: str, found: str, counts: Counts) -> str:
    """The reason why a schema was stopped, for people."""
    frequent = ", ".join(f"{code} ({count})" for code, count in counts.problems.most_common(_PROBLEMS))
    return f"{schema}: {found}." + (f" Their most frequent problems: {frequent}." if frequent else "")


def stop_message(stopped: Mapping[str, str]) -> str:
    """What a job that ends with stopped schemas says: each schema's reason, then what to do."""
    return "\n".join(
        [
            *stopped.values(),
            "These documents were given up for this run; all others are committed. docs/troubleshooting.md tells what "
            "causes each problem, and `gristmill replay` and `gristmill inspect` show single documents of a committed "
            "run. Mend the schema or its prompt and start anew with --fresh; or, if the documents are like that, raise "
            "`stop_if` (null switches a rate off) and run the same command, which goes on where this run stopped.",
        ]
    )
