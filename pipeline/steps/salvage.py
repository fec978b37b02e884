"""Salvage: layer 3. Keep what is certain at every depth, name each thing that is not, invent nothing.

Of an answer that was cut or broken, that is what its text shows to be complete; of one that breaks the schema, all but
what the schema refuses. A member goes alone. An item of a list goes whole if the schema requires what it lost, and the
list is marked incomplete; the places of a list that is a tuple mean something, so such a list goes as a whole.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.records import Draft, Field, JsonValue, Problem, Repair
from pipeline.schema.alongside import Part, all_branches, parts
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import PatternTimeout
from pipeline.schema.walk import escape
from pipeline.steps.answer.degenerate import periodic_tail
from pipeline.steps.answer.strict import sprawls
from pipeline.steps.codes import CODES, cap_of
from pipeline.steps.normalise import normalise
from pipeline.steps.retry import Step
from pipeline.steps.salvaging.certain import Certain, certain
from pipeline.steps.salvaging.lenient import declared_names, find, is_open, known_parts, least_items, required_names
from pipeline.steps.salvaging.prune import Pruned, prune

MAX_ROUNDS = 8
"""Of finding what has to go, since what is left may break the schema anew. After so many nothing is kept."""
MAX_NAMED = 200
"""Things left out that are named one by one."""
_UNCERTAIN = "not in the part of the answer that is certain"


@dataclass(frozen=True, slots=True)
class _Kept:
    pruned: Pruned
    parts: list[Part]
    dropped: dict[str, str] = field(default_factory=dict)
    abstained: tuple[Problem, ...] = ()


def salvage(step: Step, plan: DecodingPlan) -> Draft | None:
    """What can be kept of one attempt, normalised and marked `salvaged`, or None if that is nothing."""
    draft, number = step.draft, step.attempt.number
    # Rules and support are judged anew, on what is kept.
    problems = [problem for problem in draft.problems if CODES[problem.code].layer not in ("rules", "ground")]
    if not any(CODES[problem.code].salvageable for problem in problems):
        return None
    if any(cap_of(problem) == "rejected" and not CODES[problem.code].salvageable for problem in problems):
        return None
    found = Certain(draft.value, (), ()) if draft.parsed else _certain(step)
    if found is None or not isinstance(found.value, dict | list) or sprawls(found.value):
        return None
    base = draft if draft.parsed else normalise(Draft(value=found.value, parsed=True), plan, number)
    kept = _keep(base.value, found, plan, number)
    if kept is None:
        return None
    gaps, repairs = _told(kept, found, number)
    told = problems if draft.parsed else (*problems, *base.problems)
    return Draft(
        value=kept.pruned.value,
        parsed=True,
        salvaged=True,
        problems=tuple(dict.fromkeys((*told, *kept.abstained, *gaps))),
        repairs=(*draft.repairs, *repairs),
        fields=_moved(base.fields, kept.pruned),
    )


def _certain(step: Step) -> Certain | None:
    """What is certain of an answer that could not be parsed; of one that went round in circles, the first round."""
    text, codes = step.attempt.raw_text, {problem.code for problem in step.draft.problems}
    if "repetition" not in codes:
        return certain(text)
    tail = periodic_tail(text, sure=step.attempt.finish_reason == "repetition")
    return certain(text, end=tail.second if tail else None, distinct=tail is None)


def _keep(value: JsonValue, found: Certain, plan: DecodingPlan, attempt: int) -> _Kept | None:
    """The value without what the schema refuses; None if that leaves nothing, or names nothing that could go."""
    dropped: dict[str, str] = {}
    has_tuples = "prefixItems" in json.dumps(plan.acceptance)
    try:
        for _ in range(MAX_ROUNDS):
            pruned = prune(value, dropped)
            if not pruned.value:
                return None
            findings = find(pruned.value, plan, attempt)
            known = [] if findings.refused else list(known_parts(pruned.value, plan))
            refused = findings.refused or _too_little(known, {*found.cut, *pruned.shortened})
            if not refused:
                gone = dict.fromkeys(pruned.emptied, "nothing of it is left")
                return _Kept(pruned, known, {**dropped, **gone}, findings.abstained)
            if "" in refused:
                return None
            places = _tuples(pruned.value, plan) if has_tuples else frozenset()
            for pointer, why in refused.items():
                place = _of_tuple(places, pointer)
                if place == "":
                    return None
                dropped[pruned.origin[place]] = why
    except PatternTimeout:
        return None
    return None


def _too_little(parts: Iterable[Part], incomplete: set[str]) -> dict[str, str]:
    """Items of lists that lack what the schema requires of them, and whole lists with fewer items than it does."""
    refused: dict[str, str] = {}
    item_of = {"": ""}
    kinds: dict[str, bool] = {}
    for part in parts:
        parent = part.pointer.rpartition("/")[0]
        if part.pointer:
            item_of[part.pointer] = part.pointer if kinds[parent] else item_of[parent]
        kinds[part.pointer] = isinstance(part.value, list)
        if isinstance(part.value, dict):
            missing = [name for name in required_names(part) if name not in part.value]
            if missing and item_of[part.pointer]:
                refused[item_of[part.pointer]] = f"required: {', '.join(missing)} missing"
        elif isinstance(part.value, list) and part.pointer not in incomplete and len(part.value) < least_items(part):
            refused[part.pointer] = "minItems: not satisfied"
    return refused


def _tuples(value: JsonValue, plan: DecodingPlan) -> frozenset[str]:
    """The lists whose places mean something, by any branch of the schema, the refused ones included."""
    every = parts(plan.acceptance, value, all_branches)
    return frozenset(part.pointer for part in every if any("prefixItems" in node for node in part.nodes))


def _of_tuple(tuples: Collection[str], pointer: str) -> str:
    """The pointer of the outermost tuple on the way to a place, or the place itself if it is in none."""
    ends = (place for place, mark in enumerate(pointer) if mark == "/")
    return next((pointer[:end] for end in ends if pointer[:end] in tuples), pointer)


def _told(kept: _Kept, found: Certain, attempt: int) -> tuple[list[Problem], list[Repair]]:
    """All that is missing, as problems, and once more as what was done, each with its place in the record."""
    now = {old: new for new, old in kept.pruned.origin.items()}
    cut = {now[pointer] for pointer in found.cut if pointer in now}
    lists = {part.pointer for part in kept.parts if isinstance(part.value, list)}
    omitted = dict(_placed({**dict.fromkeys(found.left_out, _UNCERTAIN), **kept.dropped}, now, lists))
    refused = dict(_placed(kept.dropped, now, lists))
    dropped = {pointer: why for pointer, why in omitted.items() if pointer not in lists or pointer in refused}
    problems = [Problem("field_dropped", pointer, reason, attempt) for pointer, reason in dropped.items()]
    for part in kept.parts:
        if part.pointer in lists and (part.pointer in cut or part.pointer in kept.pruned.shortened):
            message = f"{len(part.value)} items are certain, others may be missing"
            problems.append(Problem("list_incomplete", part.pointer, message, attempt))
        elif isinstance(part.value, dict):
            problems += _missing(part, attempt, is_cut=part.pointer in cut)
            absent = [name for name in declared_names(part) if name not in part.value] if part.pointer in cut else []
            for name in absent:
                omitted.setdefault(f"{part.pointer}/{escape(name)}", _UNCERTAIN)
    repairs = [Repair("salvaged", pointer, reason, attempt) for pointer, reason in omitted.items()][:MAX_NAMED]
    repairs += [Repair("rest_left_out", pointer, "from where it was cut or broken", attempt) for pointer in sorted(cut)]
    return _bounded(problems, attempt), repairs


def _placed(gone: Mapping[str, str], now: Mapping[str, str], lists: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is gone with its reason, at its place in the record: a member at its own, an item at its list, since another
    item may have its place now; what is inside of something gone, at that."""
    items: dict[str, list[str]] = {}
    for pointer, why in gone.items():
        parent, _, token = pointer.rpartition("/")
        while parent not in now:
            parent, _, token = parent.rpartition("/")
        if now[parent] in lists:
            items.setdefault(now[parent], []).append(f"item {token} of the answer: {why}")
        else:
            yield f"{now[parent]}/{token}", why
    for place, reasons in items.items():
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        yield place, f"{reasons[0]}{more}"


def _missing(part: Part, attempt: int, *, is_cut: bool) -> list[Problem]:
    absent = [name for name in required_names(part) if name not in part.value]
    problems = [
        Problem("required_missing", f"{part.pointer}/{escape(name)}", "required, but not certain", attempt)
        for name in absent
    ]
    if is_cut and is_open(part):
        problems.append(Problem("field_dropped", part.pointer, "cut: further members may be missing", attempt))
    return problems


def _bounded(problems: list[Problem], attempt: int) -> list[Problem]:
    if len(problems) <= MAX_NAMED:
        return problems
    more = Problem("field_dropped", "", f"and {len(problems) - MAX_NAMED} more are left out", attempt)
    return [*problems[:MAX_NAMED], more]


def _moved(fields: Iterable[Field], pruned: Pruned) -> tuple[Field, ...]:
    """What is known about the leaves that are left, where they are now."""
    now = {old: new for new, old in pruned.origin.items()}
    return tuple(dataclasses.replace(known, pointer=now[known.pointer]) for known in fields if known.pointer in now)
