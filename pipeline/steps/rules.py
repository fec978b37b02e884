"""Rules: what the schema and the job declare about values beyond JSON Schema.

A rule that is false is `rule_broken`; one that has no value for this record (it reads an absent field, or costs too
much) is `rule_not_judged`, which degrades at most. docs/rules.md says what can be declared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from pipeline.job import ExtractConfig
from pipeline.records import Document, Draft, JsonValue, Problem, Severity
from pipeline.schema.alongside import Accepts, Part, accepts_of, parts
from pipeline.schema.cel import CelError, Meter, TooCostly
from pipeline.schema.declared import NOTHING, Declared, Language, Rule, declared_of
from pipeline.schema.lately import Lately
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import PatternTimeout
from pipeline.schema.walk import descend
from pipeline.steps.declared.branches import accepts_partly
from pipeline.steps.declared.checks import Found, missing, out_of_order, repeated
from pipeline.steps.declared.language import MAX_LETTERS, NotTold, other_language
from pipeline.steps.validate import MAX_PROBLEMS

Lookups = Mapping[tuple[str, str], Set[str]]
"""The values of the columns that the job's lookups name, by (path, column)."""

NO_LOOKUPS: Lookups = {}

MAX_RULE_STEPS = 200_000
"""Of one rule on one value."""
MAX_RECORD_STEPS = 1_000_000
"""Of all rules on one record."""
SEARCH_SECONDS = 1.0
"""For the patterns of all rules on one record."""
LETTER_STEPS = 10
"""What a letter costs whose language is told."""
MAX_SURVEYS = 64

_ORDER: tuple[Severity, ...] = ("block", "degrade", "observe")
_ABSENT = frozenset({"field_dropped", "required_missing"})
_INVALID = frozenset({"schema_violation", "constraint_leaked"})


def check(
    draft: Draft, document: Document, plan: DecodingPlan, config: ExtractConfig, lookups: Lookups, attempt: int
) -> Draft:
    """The draft with every broken rule added as a problem: the gravest first, at most MAX_PROBLEMS of them.

    Raises:
        KeyError: `lookups` lacks a column that the job looks up.
    """
    if not draft.parsed or any(problem.code == "not_applicable" for problem in draft.problems):
        return draft
    declared = _survey_of(plan)
    found: list[Problem] = []
    if declared.nodes:
        found += _Record(draft, document, declared, config, attempt).problems()
    for lookup in config.lookups:
        if lookup.schema_name in (None, plan.name):
            known = lookups[lookup.path, lookup.column]
            absent = _bounded(missing(draft.value, lookup.pointer, known))
            found += [Problem("lookup_missing", one.pointer, one.message, attempt, lookup.severity) for one in absent]
    new = [problem for problem in dict.fromkeys(found) if problem not in draft.problems]
    new = sorted(new, key=lambda problem: _ORDER.index(problem.severity))[:MAX_PROBLEMS]
    return dataclasses.replace(draft, problems=(*draft.problems, *new)) if new else draft


@dataclass(frozen=True, slots=True)
class _Survey:
    """What a schema declares, by the identity of its subschemas; `partly` is `accepts` for records that lack values."""

    body: Mapping[str, Any]
    nodes: Mapping[int, Declared]
    accepts: Accepts
    partly: Accepts


_SURVEYS: Lately[tuple[str, str], _Survey] = Lately(MAX_SURVEYS)
"""By schema name and digest, as far as the body is the same object."""


def _survey_of(plan: DecodingPlan) -> _Survey:
    key = plan.name, plan.schema_digest
    survey = _SURVEYS.find(key)
    if survey is None or survey.body is not plan.acceptance:
        survey = _SURVEYS.keep(key, _survey(plan.acceptance))
    return survey


def _survey(body: Mapping[str, Any]) -> _Survey:
    nodes = {id(node): declared_of(node) for _, node in descend(body) if isinstance(node, Mapping)}
    nodes = {key: declared for key, declared in nodes.items() if declared is not NOTHING}
    judges = (accepts_of(body), accepts_partly(body)) if nodes else (_never, _never)
    return _Survey(body, nodes, *judges)


def _never(_schema: Any, _value: JsonValue) -> bool:
    return False


class _Record:
    """One record against all that its schema declares."""

    def __init__(self, draft: Draft, document: Document, survey: _Survey, config: ExtractConfig, attempt: int) -> None:
        self._draft = draft
        self._survey = survey
        self._attempt = attempt
        self._variables = ({**document.columns, "text": document.text}, config.params)
        self._left = Meter(MAX_RECORD_STEPS, SEARCH_SECONDS)
        self._gaps = _Gaps.of(draft) if draft.salvaged else _Gaps()

    def problems(self) -> list[Problem]:
        """At most MAX_PROBLEMS of each severity."""
        found: dict[Severity, list[Problem]] = {severity: [] for severity in _ORDER}
        gaps = self._draft.salvaged or any(problem.code == "abstained" for problem in self._draft.problems)
        accepts = self._survey.partly if gaps else self._survey.accepts
        try:
            for part in parts(self._survey.body, self._draft.value, accepts):
                for problem in self._of_part(part):
                    if len(found[problem.severity]) < MAX_PROBLEMS:
                        found[problem.severity].append(problem)
        except PatternTimeout as error:
            found["degrade"].insert(0, Problem("rule_not_judged", "", str(error), self._attempt, "degrade"))
        return [problem for severity in _ORDER for problem in found[severity]]

    def _of_part(self, part: Part) -> Iterator[Problem]:
        declared = [self._survey.nodes[id(node)] for node in part.nodes if id(node) in self._survey.nodes]
        for one in declared:
            for rule in one.rules:
                yield from self._rule(part, rule)
            if one.unique is not None and isinstance(part.value, list):
                yield from self._told("repeated_item", part, repeated(part.value, one.unique), one.unique.severity)
            if one.order is not None and isinstance(part.value, dict):
                yield from self._told("out_of_order", part, out_of_order(part.value, one.order), one.order.severity)
        languages = [one.language for one in declared if one.language is not None]
        if languages and isinstance(part.value, str):
            yield from self._language(part.pointer, part.value, languages[-1])  # the innermost counts

    def _language(self, pointer: str, text: str, language: Language) -> Iterator[Problem]:
        spoken = " or ".join(language.codes)
        try:
            self._left.spend(LETTER_STEPS * min(len(text), MAX_LETTERS))
            other = other_language(text, language.codes)
        except (NotTold, TooCostly) as error:
            yield from self._not_judged(pointer, f"the text should be in {spoken} ({error})", language.severity)
            return
        if other:
            words = f"the text should be in {spoken}, and reads as {other}"
            yield Problem("language_mismatch", pointer, words, self._attempt, language.severity)

    def _told(self, code: str, part: Part, found: Iterable[Found], severity: Severity) -> Iterator[Problem]:
        for one in _bounded(found):
            place = part.pointer + one.pointer
            if one.sure:
                yield Problem(code, place, one.message, self._attempt, severity)
            else:
                yield from self._not_judged(place, f"order: {one.message}", severity)

    def _rule(self, part: Part, rule: Rule) -> Iterator[Problem]:
        steps = max(min(MAX_RULE_STEPS, self._left.steps), 0)
        meter = Meter(steps, self._left.seconds)
        place = part.pointer + rule.pointer
        try:
            holds = rule.program.holds((part.value, *self._variables), meter)
        except CelError as error:
            yield from self._not_judged(place, f"{rule.message} ({error})", rule.severity)
            holds = True
        self._left = Meter(self._left.steps - steps + max(meter.steps, 0), meter.seconds)
        if holds:
            return
        if any(self._gaps.touch(part.pointer + read) for read in rule.reads):
            why = f"{rule.message} (not everything that it reads was saved)"
            yield from self._not_judged(place, why, rule.severity)
        else:
            yield Problem("rule_broken", place, rule.message, self._attempt, rule.severity)

    def _not_judged(self, pointer: str, message: str, severity: Severity) -> Iterator[Problem]:
        """Silent where the record breaks its schema: it is refused for that, and the rule may have failed for it."""
        if self._draft.salvaged or not any(problem.code in _INVALID for problem in self._draft.problems):
            milder: Severity = "observe" if severity == "observe" else "degrade"
            yield Problem("rule_not_judged", pointer, message, self._attempt, milder)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """What a salvaged record lacks: parts that are absent, and lists whose items are whole but may be too few."""

    absent: tuple[str, ...] = ()
    short: tuple[str, ...] = ()

    @classmethod
    def of(cls, draft: Draft) -> _Gaps:
        short = [problem.pointer for problem in draft.problems if problem.code == "list_incomplete"]
        absent = [problem.pointer for problem in draft.problems if problem.code in _ABSENT]
        absent += [repair.pointer for repair in draft.repairs if repair.kind == "salvaged"]
        return cls(tuple(pointer for pointer in absent if pointer not in short), tuple(short))

    def touch(self, read: str) -> bool:
        """Whether the value at a pointer is not as the model meant it: it is absent, or holds a gap. An item of a short
        list is whole."""
        return any(_is_at_or_below(gap, read) or _is_at_or_below(read, gap) for gap in self.absent) or any(
            _is_at_or_below(gap, read) for gap in self.short
        )


def _is_at_or_below(pointer: str, other: str) -> bool:
    return f"{pointer}/".startswith(f"{other}/")


def _bounded(found: Iterable[Found]) -> Iterator[Found]:
    for number, one in enumerate(found):
        if number == MAX_PROBLEMS:
            return
        yield one
