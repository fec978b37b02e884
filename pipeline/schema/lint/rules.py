"""Findings and the rules behind their codes. The texts are in `catalogue.py`; `docs/lint.md` is made from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pipeline.schema.lint import catalogue

Severity = Literal["warning", "info"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding: `meaning` completes "this schema has …", `fix` is the usual remedy."""

    severity: Severity
    meaning: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark: where (`pointer` into the closed schema, "" is the root), why it hurts, what to change."""

    code: str
    severity: Severity
    pointer: str
    why: str
    fix: str


def found(code: str, pointer: str, why: str, fix: str = "") -> Finding:
    """A finding with the severity of its code and, unless a better one is given, its usual fix."""
    rule = RULES[code]
    return Finding(code, rule.severity, pointer, why, fix or rule.fix)


_ENTRY = re.compile(r"^(\w+) (warning|info)\n((?:  .*\n)+)", re.MULTILINE)


def _table(text: str) -> dict[str, Rule]:
    rules = {}
    for code, severity, lines in _ENTRY.findall(text):
        meaning, fix = " ".join(lines.split()).split(" → ")
        rules[code] = Rule("warning" if severity == "warning" else "info", meaning, fix)
    return rules


FAMILIES: dict[str, dict[str, Rule]] = {
    "Shape": _table(catalogue.SHAPE),
    "Values": _table(catalogue.LEAVES),
    "Names and texts": _table(catalogue.NAMES),
    "Keywords": _table(catalogue.KEYWORDS),
}
RULES: dict[str, Rule] = {code: rule for family in FAMILIES.values() for code, rule in family.items()}
