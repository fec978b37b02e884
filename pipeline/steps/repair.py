"""Repair: make JSON of a finished but malformed answer, and leave a trace of every change.

Only answers that ended with `stop` off the constrained path get here. What a repair leaves of the status:

- Fences, blanks and byte-order marks taken away, or closers added after a finished value at the end: as it was. Text,
  true, false, null and a closed container are finished; a number is not quite, since digits may have been to come, nor
  is anything after a comma, a colon, a key, an opener or inside a string.
- JSON in prose, which may be an example or a draft; JSON inside a JSON string; commas, quotes or other closers
  added or taken away; True, False and None; comments; control characters: degraded, with each kind named, and each
  leaf marked whose literal does not stand in the answer.
- Anything that would change, drop or invent a key or a scalar: not done.
"""

from __future__ import annotations

import dataclasses
import json

from pipeline.records import Completion, Draft, Field, Problem, Repair
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.answer.aligned import aligned, leaves
from pipeline.steps.answer.in_string import take_out
from pipeline.steps.answer.relaxed import Relaxed, relax
from pipeline.steps.answer.strict import Read, Unparsable, check_bounds, read
from pipeline.steps.answer.unwrap import holds_several, unwrap
from pipeline.steps.parse import odd

MAX_REPAIRABLE_CHARACTERS = 1 << 12
"""For json-repair only, whose time grows with the square of the text and worse: at this size the worst found should
take about half a second (scaled from 7 s at 16 kB; tests hold it below 4 s)."""
MAX_NAMED_REPAIRS = 20


def repair(draft: Draft, completion: Completion, attempt: int, plan: DecodingPlan | None = None) -> Draft:
    """The draft with a value, where one can be had; otherwise the draft as it came.

    With a plan, JSON inside strings that the schema refuses as strings is taken out of them.
    """
    if completion.constrained or completion.finish_reason != "stop":
        return draft
    if not draft.parsed and [problem.code for problem in draft.problems] in (["not_json"], ["no_json"]):
        draft = _mended(draft, completion.text, attempt)
    return take_out(draft, plan, attempt) if draft.parsed and plan is not None else draft


def _mended(draft: Draft, answer: str, attempt: int) -> Draft:
    candidate = unwrap(answer)
    if candidate is None:
        if holds_several(answer):
            message = "the answer holds several JSON values; nobody can tell which is meant"
            return dataclasses.replace(draft, problems=(Problem("multiple_json", message=message, attempt=attempt),))
        return draft
    message = f"{candidate.prose} characters of other text stood around the JSON"
    detail = f"{candidate.around} characters around the JSON"
    unwrapped = Draft(
        problems=(Problem("wrapped_in_prose", message=message, attempt=attempt),) if candidate.prose else (),
        repairs=(Repair("wrapper_removed", detail=detail, attempt=attempt),) if candidate.around > 0 else (),
    )
    try:
        return _add(unwrapped, candidate.text, read(candidate.text), attempt)
    except Unparsable as error:
        if error.code != "not_json":
            return _with_code(draft, error, attempt)
    return _relaxed(draft, candidate.text, unwrapped, attempt)


def _relaxed(draft: Draft, text: str, unwrapped: Draft, attempt: int) -> Draft:
    """What a change of form alone makes of it; else what json-repair does, if it keeps to that."""
    unescaped = _unescaped(text)
    if unescaped is not None:
        problem = Problem("json_in_string", message="its quotes were escaped", attempt=attempt)
        change = Repair("unescaped", detail="as if inside a JSON string", attempt=attempt)
        return _add(unwrapped, *unescaped, attempt, problems=(problem,), repairs=(change,))
    relaxed = relax(text)
    if relaxed is None:
        return _with_json_repair(draft, text, unwrapped, attempt)
    try:
        found = read(relaxed.text)
    except Unparsable as error:
        return draft if error.code == "not_json" else _with_code(draft, error, attempt)
    only_closed = relaxed.changes.keys() == {"closed"} and not relaxed.ends_with_number
    problem = Problem("json_repaired", message=_told(relaxed), attempt=attempt)
    mended = _add(
        unwrapped,
        relaxed.text,
        found,
        attempt,
        problems=() if only_closed else (problem,),
        repairs=_named(relaxed, attempt),
    )
    changed = [pointer for (pointer, _), same in zip(leaves(found.value), relaxed.as_is, strict=True) if not same]
    return dataclasses.replace(mended, fields=_marks(changed))


def _named(relaxed: Relaxed, attempt: int) -> tuple[Repair, ...]:
    return tuple(Repair(kind, detail=f"{count} times", attempt=attempt) for kind, count in relaxed.changes.items())


def _told(relaxed: Relaxed) -> str:
    return "to make the answer JSON: " + ", ".join(kind.replace("_", " ") for kind in relaxed.changes)


def _unescaped(text: str) -> tuple[str, Read] | None:
    r"""The text without one level of escapes, where all its quotes are escaped: `{\"a\": 1}`."""
    if text.count('\\"') == 0 or text.count('\\"') != text.count('"'):
        return None
    try:
        inner = json.loads(f'"{text}"', strict=False)
        return inner, read(inner)
    except ValueError:
        return None


def _with_json_repair(draft: Draft, text: str, unwrapped: Draft, attempt: int) -> Draft:
    import json_repair

    if len(text) > MAX_REPAIRABLE_CHARACTERS or text[-1:] not in ("}", "]"):
        return draft  # an open end is not closed by guessing: what is certain of it, layer 3 keeps
    try:
        check_bounds(text)
        value, log = json_repair.loads(text, skip_json_loads=True, logging=True)
        # Strict again: json-repair makes infinities, and halves surrogate pairs. Digits are looked at in the raw text.
        found = Read(read(json.dumps(value)).value, has_long_numbers=True)
    except (Unparsable, ValueError, RecursionError, IndexError, TypeError, AttributeError, KeyError) as error:
        # json-repair promises to raise nothing; its issue tracker knows better. The document keeps its problem.
        return _not_repaired(draft, "repair_failed", repr(error)[:200], attempt)
    if not isinstance(found.value, dict | list) or not found.value:
        return draft
    changed = aligned(text, found.value)
    if changed is None:
        return _not_repaired(draft, "repair_refused", "it would change or drop content", attempt)
    told = [str(entry.get("text", entry))[:200] for entry in log] or ["punctuation changed, without further notes"]
    count, notes = len(told), list(dict.fromkeys(told))  # it repeats its words where it repeats itself
    if len(notes) > MAX_NAMED_REPAIRS:
        notes[MAX_NAMED_REPAIRS:] = [f"{len(notes) - MAX_NAMED_REPAIRS} further kinds of changes"]
    named = tuple(Repair("json_repair", detail=note, attempt=attempt) for note in notes)
    problem = Problem("json_repaired", message=f"{count} changes made the answer JSON", attempt=attempt)
    mended = _add(unwrapped, text, found, attempt, problems=(problem,), repairs=named)
    return dataclasses.replace(mended, fields=_marks(changed))


def _add(
    unwrapped: Draft,
    text: str,
    found: Read,
    attempt: int,
    *,
    problems: tuple[Problem, ...] = (),
    repairs: tuple[Repair, ...] = (),
) -> Draft:
    return Draft(
        value=found.value,
        parsed=True,
        problems=(*unwrapped.problems, *problems, *odd(text, found, attempt)),
        repairs=(*unwrapped.repairs, *repairs),
    )


def _marks(pointers: list[str]) -> tuple[Field, ...]:
    return tuple(Field(pointer, touched=True) for pointer in pointers)


def _with_code(draft: Draft, error: Unparsable, attempt: int) -> Draft:
    problem = Problem(error.code, error.pointer, str(error), attempt)
    return dataclasses.replace(draft, problems=(problem,))


def _not_repaired(draft: Draft, kind: str, detail: str, attempt: int) -> Draft:
    return dataclasses.replace(draft, repairs=(*draft.repairs, Repair(kind, detail=detail, attempt=attempt)))
