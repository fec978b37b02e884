"""What an author would want to know about a schema before it meets a model: remarks, never refusals.

Heuristics about names use whole words and keep silent in doubt: a wrong remark costs more trust than a missing one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from pipeline.schema.lint.bounds import check_bounds
from pipeline.schema.lint.keywords import check_keywords
from pipeline.schema.lint.leaves import check_leaves
from pipeline.schema.lint.naming import check_names
from pipeline.schema.lint.paths import check_paths
from pipeline.schema.lint.policy import MAX_FINDINGS
from pipeline.schema.lint.prose import check_prose
from pipeline.schema.lint.rules import FAMILIES, RULES, Finding, Rule
from pipeline.schema.lint.shape import check_shape
from pipeline.schema.lint.unions import check_unions
from pipeline.schema.lint.values import check_values
from pipeline.schema.lint.view import Scope
from pipeline.schema.registry import DocumentSchema

__all__ = ["FAMILIES", "RULES", "Finding", "Report", "Rule", "examine", "lint"]


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in order of pointer, then code; `counts` says how many there are of each code, shown or not."""

    findings: tuple[Finding, ...]
    counts: Mapping[str, int]


def lint(schema: DocumentSchema) -> tuple[Finding, ...]:
    """The findings of a loaded schema, sorted by pointer and code, at most 100: see `examine`."""
    return examine(schema).findings


def examine(schema: DocumentSchema) -> Report:
    """The findings of a loaded schema and how many there are per code.

    The same schema always gives the same report. Where there are more than 100, the first of every code is kept and
    the rest is filled up in order, so that no code hides another.
    """
    scope = Scope(schema.body, schema.closed)
    everything = chain(
        check_shape(scope),
        check_paths(scope),
        check_unions(scope),
        check_leaves(scope, [example.record for example in schema.examples]),
        check_bounds(scope),
        check_values(scope),
        check_names(scope),
        check_keywords(scope),
        check_prose(scope, schema.instructions),
    )
    findings = sorted(dict.fromkeys(everything), key=_order)
    return Report(tuple(_first(findings)), dict(sorted(Counter(f.code for f in findings).items())))


def _order(finding: Finding) -> tuple[str, str, str]:
    return finding.pointer, finding.code, finding.why


def _first(findings: list[Finding]) -> list[Finding]:
    ahead = {finding.code: finding for finding in reversed(findings)}
    kept = set(ahead.values())
    for finding in findings:
        if len(kept) >= MAX_FINDINGS:
            break
        kept.add(finding)
    return sorted(kept, key=_order)
