"""Replayed: what `gristmill replay` shows a person. Texts are made safe and cut; `--json` has them whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pipeline.observe.visible import cell, visible, visible_id

SHOWN_CHARACTERS = 1500
SHOWN_LINES = 20
AROUND = 80
"""Characters before and after the place where an answer stopped."""

LOUD = "bold red"


def rendered(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The parts of a replay, in reading order."""
    yield cell(f"{visible_id(document['document_id'])}  {document['schema']}  engine {document['engine']}", "bold")
    yield cell(f"{document['source']} of {document['run']}")
    if document["changed"]:
        yield cell("NOT AS IN THE RUN: what follows was made under other conditions", LOUD)
        yield from (cell(f"  changed  {line}", LOUD) for line in _few(document["changed"]))
    yield from (cell(f"note  {note}", "yellow") for note in _few(document["notes"]))
    yield _box("document", document["document"])
    stopped, attempt, system = iter(document["stopped"]), 0, ""
    for step in document["steps"]:
        if step["step"] == "render":
            attempt += 1
            yield cell(f"attempt {attempt}", "bold")
        yield from _STEPS.get(step["step"], _draft)(step)
        if step["step"] == "render" and step["system"] != system:
            system = step["system"]
            yield _box("system message, the same for all documents of the schema", system)
        if step["step"] == "generate":
            yield from _stopped(step, next(stopped, None))
    yield from _end(document)


def _clean(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _line("clean", f"{step['changes']} changes")
    if step["changes"]:
        yield _box("the text as the model sees it", step["text"])


def _render(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    sampling = {name: value for name, value in step["sampling"].items() if value not in (None, "", False)}
    yield _line("render", ", ".join(f"{name} {value}" for name, value in sampling.items()))
    yield _box("user message", step["user"])


def _generate(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    constraint = "constraint in force" if step["constrained"] else "not constrained"
    tokens = f"{step['prompt_tokens']} prompt ({step['cached_tokens']} cached) + {step['output_tokens']} output tokens"
    trouble = f", {step['error']}: {step['detail']}" if step["error"] else ""
    yield _line("generate", f"{step['engine']}: {step['finish_reason']}, {constraint}, {tokens}{trouble}")
    for name in ("refusal", "reasoning"):
        if step[name]:
            yield _box(name, step[name])
    yield _box("answer", step["text"])


def _stopped(step: Mapping[str, Any], stopped: Mapping[str, Any] | None) -> Iterator[RenderableType]:
    if stopped is None:
        yield _line("matcher", "nothing to follow")
        return
    text, place, where = step["text"], stopped["accepted"], stopped["pointer"] or "/"
    end = "a whole answer" if stopped["finished"] else f"no whole answer, in {where}"
    if place < len(text):
        end += f"; the text LEAVES the grammar at character {place} of {len(text)}"
    elif not stopped["finished"]:
        end += f"; the text ends at character {place}"
    end += "" if step["constrained"] else "; the grammar was not in force"
    broken = f"; {stopped['error']}" if stopped["error"] else ""
    yield _line("matcher", f"{end}; {stopped['tokens']} tokens taken{broken}")
    if not stopped["followed"]:
        yield _line("", "the answer is longer than is followed")
    before, after = text[max(0, place - AROUND) : place], text[place : place + AROUND]
    yield _line("", f"…{_one_line(before)} ▮ {_one_line(after)}")
    ends = "the end of the answer, and " if stopped["may_end"] else ""
    count = stopped["allowed"] - bool(stopped["may_end"])
    shown = "  ".join(_one_line(token) for token in stopped["next"])
    yield _line("", f"allowed next: {ends}{max(0, count)} tokens" + (f", such as  {shown}" if shown else ""))


def _draft(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    if "raised" in step:
        yield _line(step["step"], "raised")
        yield _box("what was raised", step["raised"][-SHOWN_CHARACTERS:])
        return
    new = "value" in step and step["parsed"]
    state = "a value" if new else "the value as before" if step.get("parsed") else "no value"
    yield _line(step["step"], state if step.get("changed") or new else "nothing changed")
    if new:
        yield _box("value", json.dumps(step["value"], ensure_ascii=False, indent=1, default=str))
    yield from (_line("", f"problem  {_problem(item)}") for item in _few(step.get("problems", ())))
    yield from (_line("", f"repair   {_repair(item)}") for item in _few(step.get("repairs", ())))
    yield from (_line("", f"field    {_field(item)}") for item in _few(step.get("fields", ())))
    if "confidence" in step:
        yield _line("", f"confidence of the record {step['confidence']:.3f}, a rank")


def _route(step: Mapping[str, Any]) -> Iterator[RenderableType]:
    chosen = step["chosen"]
    what = f"attempt {chosen['attempt']}{', salvaged' if chosen['salvaged'] else ''}" if chosen else "no attempt"
    yield _line("route", f"the record is from {what}")


_STEPS = {"clean": _clean, "render": _render, "generate": _generate, "route": _route}


def _end(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    now, then = document["outcome"], document["committed"]
    yield cell(f"outcome    {now['status']}, layer {now['layer']}", "bold")
    yield cell(f"committed  {then['status']}, layer {then['layer']}", "bold")
    record = now.get("record")
    yield _box("record", "(none)" if record is None else json.dumps(record, ensure_ascii=False, indent=1, default=str))
    if document["equal"]:
        yield cell("the outcome equals the committed one", "bold green")
        return
    yield cell("the outcome DIFFERS from the committed one", LOUD)
    for name, pair in document["differences"].items():
        both = [_box(when, json.dumps(pair[when], ensure_ascii=False, indent=1, default=str)) for when in pair]
        yield Group(cell(name, "bold"), *both)


def _problem(item: Any) -> str:
    return item if isinstance(item, str) else f"{item['code']} at {item['pointer'] or '/'}: {item['message']}"


def _repair(item: Any) -> str:
    return item if isinstance(item, str) else f"{item['kind']} at {item['pointer'] or '/'}: {item['detail']}"


def _field(item: Any) -> str:
    if isinstance(item, str):
        return item
    known = {n: value for n, value in item.items() if n != "pointer" and value is not None and value not in ("", False)}
    return f"{item['pointer'] or '/'}: " + ", ".join(f"{name} {value}" for name, value in known.items())


def _few(items: Sequence[Any]) -> list[Any]:
    more = len(items) - SHOWN_LINES
    return [*items[:SHOWN_LINES], *([f"… {more} more; --json has them"] if more > 0 else [])]


def _line(name: str, what: str) -> Text:
    cut = what if len(what) <= SHOWN_CHARACTERS else f"{what[:SHOWN_CHARACTERS]}…"
    return Text.assemble((f"{name:<11}", "bold cyan"), cell(cut))


def _one_line(text: str) -> str:
    return visible(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def _box(title: str, text: str) -> Panel:
    more = len(text) - SHOWN_CHARACTERS
    cut = f"\n… {more} more characters; --json has them" if more > 0 else ""
    return Panel(cell(text[:SHOWN_CHARACTERS] + cut), title=cell(title), title_align="left")
