"""The trial: one schema under one back end, inside the sandbox. Everything that is said of a plan is found here.

The transport schema is made, shown to vLLM's own validation, compiled by the real library with the model's tokenizer,
and tried with instances that satisfy and violate each site. The untouched schema can go the same way beside it, to
show what a back end would have done alone.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.compile.report_budget import measured
from pipeline.engines.draw import Draw
from pipeline.engines.grammar import Backend, Grammar, Matcher, backend_of
from pipeline.errors import SchemaError
from pipeline.schema.probe.found import Instances
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.verdict import Report, probe
from pipeline.schema.probe.walks import walks
from pipeline.schema.shape.policy import Policy
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import Left
from pipeline.schema.transport import Transport, written
from pipeline.schema.walk import is_assertion, rebuild

INSTANCE_SECONDS = 1.0
PROBE_SECONDS = 3.0
"""Processor seconds, both, so that a busy machine finds as much as an idle one."""
WALKS = 8
TIMED = 6
"""Valid texts whose masks are timed, each with a matcher of its own, as a request has one."""
WALK_TOKENS = 400


def trial(tools: Any, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The job `trial`. Payload: `body`, `backend`, `compact`, `policy` (fields of Policy), `raw` (try the body, too),
    `patience` (optional: so many times the usual seconds for finding and trying instances).

    Answers the fields of `check.Trial`.
    """
    body, backend, patience = payload["body"], payload["backend"], payload.get("patience", 1)
    shapes = read(body)
    transport = written(shapes, backend, Policy(**payload["policy"]))
    answer: dict[str, Any] = {
        "transport": transport.text,
        "left": [[left.pointer, left.keyword, left.why] for left in transport.left],
        "narrowed": list(transport.narrowed),
    }
    if not transport.satisfiable:
        return answer | {"kind": "unsatisfiable", "words": "no document can satisfy this schema"}
    admission = tools.admission(transport.text, backend)
    answer["admission"] = admission.verdict
    if admission.verdict == "refused":
        return answer | {"kind": "refused", "words": f"vLLM: {admission.words}"}
    grammar = tools.grammar(backend, payload["compact"])
    started = time.monotonic()
    try:
        grammar.matcher(transport.text)
    except SchemaError as error:
        return answer | {"kind": "refused", "words": error.message}
    answer["compile_seconds"] = time.monotonic() - started
    answer["grammar_bytes"] = grammar.size(transport.text)
    found = instances(body, shapes, patience * INSTANCE_SECONDS)
    answer |= _tried(tools, grammar, transport, found, patience * PROBE_SECONDS)
    answer["walks"] = walked = _walked(tools, grammar, transport)
    if walked.get("dead_end") or walked.get("error"):
        return answer | {"kind": "refused", "words": f"random answers under its grammar do not end: {walked}"}
    if payload["raw"]:
        answer["raw"] = _raw(tools, grammar, body, found)
    return answer | {"kind": "ok", "words": ""}


def _tried(tools: Any, grammar: Grammar, transport: Transport, found: Instances, seconds: float) -> dict[str, Any]:
    report = probe(_quick(grammar, transport.text), _encoder(tools), found, transport.left, seconds, tools.speller)
    timed = probe(
        lambda: grammar.matcher(transport.text),
        _encoder(tools),
        dataclasses.replace(found, valid=found.valid[:TIMED], violations={}),
    )
    shown = {"verdicts": _verdicts(report), "lost": list(report.lost), "leaks": [leak.text for leak in report.leaks]}
    announced = {(left.pointer, left.keyword) for left in transport.left}
    surprises = [
        [*site, "a trial showed that it is not held"]
        for leak in report.leaks
        for site in leak.sites
        if site not in announced
    ]
    masks = {name: timed.mask_quantile(share) for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))}
    return shown | {
        "surprises": surprises,
        "sites": len(found.sites),
        "unproven": len(found.unfound),
        "complete": found.complete and report.complete,
        "valid": len(found.valid),
        "mask_seconds": masks,
    }


def _walked(tools: Any, grammar: Grammar, transport: Transport) -> dict[str, int]:
    """How random answers end: `finished`, `cut` (still going on), `dead_end`, `error` (also: not JSON)."""
    tokens = tools.tokens
    ends, made = walks(
        _quick(grammar, transport.text), lambda seed: Draw(tokens, seed).choose, tokens.end_ids, WALKS, WALK_TOKENS
    )
    unreadable = sum(one.end == "finished" and not _is_json(tools.tokenizer.decode(one.tokens)) for one in made)
    return {str(end): count for end, count in ends.items()} | ({"error": unreadable} if unreadable else {})


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _raw(tools: Any, grammar: Grammar, body: Mapping[str, Any], found: Instances) -> dict[str, Any]:
    """What the back end makes of the schema as it was written, annotations aside."""
    text = json.dumps(rebuild(body, _bare), ensure_ascii=False, separators=(",", ":"))
    admission = tools.admission(text, grammar.backend)
    everything = [Left("", "*", "")]
    report = probe(_quick(grammar, text), _encoder(tools), found, everything, PROBE_SECONDS, tools.speller)
    refused = f"vLLM: {admission.words}" if admission.verdict == "refused" else report.refused
    return {"refused": refused, "verdicts": _verdicts(report), "lost": len(report.lost)}


def _bare(_pointer: str, schema: Any) -> Any:
    return {key: value for key, value in schema.items() if is_assertion(key)} if isinstance(schema, dict) else schema


def _quick(grammar: Grammar, text: str) -> Callable[[], Matcher]:
    return lambda: grammar.quick(text)


def _encoder(tools: Any) -> Callable[[str], list[int]]:
    """Tokens of a text as a model writes it: what looks like a control token is spelled, not meant."""

    def encode(text: str) -> list[int]:
        return list(tools.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    return encode


def _verdicts(report: Report) -> list[list[str]]:
    return [[*site, verdict.kind, verdict.evidence] for site, verdict in report.verdicts.items()]


def backends_of(name: str) -> tuple[Backend, ...]:
    """The back ends that an engine config's `backend` leaves to choose from."""
    return ("xgrammar", "guidance") if name == "auto" else (backend_of(name),)


JOBS = {"trial": trial, "budget": measured}
