"""What is done with one schema inside the sandbox, beside the compiler's own trial.

`coverage_read`   load it, judge the handed instances, spell them canonically
`coverage_walk`   which of them a transport schema lets through
`coverage_raw`    which of them the untouched schema lets through, what vLLM says to it, and what the probe finds
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from bench.coverage.judge import Judge
from bench.coverage.quantiles import slot
from pipeline.compile.trial import INSTANCE_SECONDS, PROBE_SECONDS
from pipeline.engines.grammar import Grammar, Matcher
from pipeline.errors import SchemaError
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.sites import sites
from pipeline.schema.probe.verdict import is_allowed, probe
from pipeline.schema.registry import document_schema
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import Left, Site
from pipeline.schema.validator import validator_of

MAX_MASKS = 3000
"""Masks that are timed per schema and back end."""

MAX_WORDS = 400
Payload = Mapping[str, Any]


def read_job(_tools: Any, payload: Payload) -> dict[str, Any]:
    """Payload: `schema`, `name`, `tests` (objects with `data`, `valid`, `about`).

    Answers `refused` and `words`, or `body`, `closed`, `sites` (of the source, without those that closing added),
    `load_seconds` and `instances`.
    """
    started = time.monotonic()
    try:
        loaded = document_schema(payload["schema"], payload["name"])
    except SchemaError as error:
        return {"refused": error.code, "words": error.message[:MAX_WORDS], "load_seconds": time.monotonic() - started}
    seconds = time.monotonic() - started
    judge = Judge(loaded.body, loaded.closed)
    return {
        "body": loaded.body,
        "closed": list(loaded.closed),
        "sites": len(_own(sites(loaded.body), loaded.closed)),
        "load_seconds": seconds,
        "instances": [judge.judged(test) for test in payload["tests"]],
    }


def walk_job(tools: Any, payload: Payload) -> dict[str, Any]:
    """Payload: `body`, `backend`, `text` (transport), `left`, `instances` (with `data`, `text`, `accepted`).

    Answers `taken` (in their order), `unannounced` (sites by position, of those that should have been refused),
    `masks` (counts by time) and `disagree`: how many the matcher accepts and a mask forbids. They are not taken, since
    an engine samples under the masks.
    """
    grammar = tools.grammar(payload["backend"], True)
    try:
        grammar.matcher(payload["text"])
    except SchemaError as error:
        return {"refused": error.message[:MAX_WORDS]}
    walker = _Walker(tools, grammar, payload["text"])
    taken = [walker.takes(item["text"]) for item in payload["instances"]]
    left = [Left(*item) for item in payload["left"]]
    body, validator = payload["body"], validator_of(payload["body"])
    found = {
        str(index): unannounced(body, validator.iter_errors(item["data"]), left)
        for index, (item, through) in enumerate(zip(payload["instances"], taken, strict=True))
        if through and not item["accepted"]
    }
    return {
        "taken": taken,
        "unannounced": {index: surprises for index, surprises in found.items() if surprises},
        "masks": dict(walker.masks),
        "disagree": walker.disagree,
    }


def raw_job(tools: Any, payload: Payload) -> dict[str, Any]:
    """Payload: `schema` (as handed in), `body`, `closed`, `backend`, `instances`.

    Answers `admission` and its `words`, `refused` (the library's words) or `taken`, and `verdicts` (kinds by count).
    """
    text = json.dumps(payload["schema"], ensure_ascii=False, separators=(",", ":"))
    grammar = tools.grammar(payload["backend"], True)
    started = time.monotonic()
    answer: dict[str, Any] = {"refused": ""}
    try:
        grammar.matcher(text)
        answer["compile_seconds"] = time.monotonic() - started
        walker = _Walker(tools, grammar, text)
        answer["taken"] = [walker.takes(item["text"]) for item in payload["instances"]]
        body = payload["body"]
        found = instances(body, read(body), INSTANCE_SECONDS)
        # Everything is "announced": what a raw schema lets through is in its verdicts.
        report = probe(lambda: grammar.matcher(text), walker.encode, found, [Left("", "*", "")], PROBE_SECONDS)
        answer["verdicts"] = tally(
            ((site, verdict.kind) for site, verdict in report.verdicts.items()), payload["closed"]
        )
    except SchemaError as error:
        answer |= {"refused": error.message[:MAX_WORDS], "compile_seconds": time.monotonic() - started}
    admission = tools.admission(text, payload["backend"])
    return answer | {"admission": admission.verdict, "words": admission.words[:MAX_WORDS]}


def tally(verdicts: Iterable[tuple[Site, str]], closed: Sequence[str]) -> dict[str, int]:
    """Counts of verdict kinds over the sites of the source: closing is a policy that no raw schema was told of."""
    added = _added(closed)
    return dict(Counter(kind for site, kind in verdicts if site not in added))


def _own(found: Iterable[Site], closed: Sequence[str]) -> list[Site]:
    added = _added(closed)
    return [site for site in found if site not in added]


def _added(closed: Sequence[str]) -> set[Site]:
    return {(pointer, "additionalProperties") for pointer in closed}


class _Walker:
    def __init__(self, tools: Any, grammar: Grammar, text: str) -> None:
        self._tokenizer = tools.tokenizer
        self._matcher: Callable[[], Matcher] = lambda: grammar.matcher(text)
        self.masks: Counter[int] = Counter()
        self.disagree = 0
        self._timed = 0

    def encode(self, text: str) -> list[int]:
        """Tokens of a text as a model writes it: what looks like a control token is spelled, not meant."""
        return list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def takes(self, text: str) -> bool:
        """Whether the matcher accepts the tokens one by one, and the end, and the masks allow them."""
        matcher = self._matcher()
        if matcher.error() or not all(map(matcher.accept, self.encode(text))) or not matcher.finished():
            return False
        agree = self._agree(text)
        self.disagree += not agree
        return agree

    def _agree(self, text: str) -> bool:
        """Whether the masks allow it, as far as they are looked at; they are timed."""
        matcher = self._matcher()
        for token in islice(self.encode(text), MAX_MASKS - self._timed):
            started = time.perf_counter()
            mask = matcher.mask()
            self.masks[slot(time.perf_counter() - started)] += 1
            self._timed += 1
            if not is_allowed(mask, token) or not matcher.accept(token):
                return False
        return True


JOBS = {"coverage_read": read_job, "coverage_walk": walk_job, "coverage_raw": raw_job}
