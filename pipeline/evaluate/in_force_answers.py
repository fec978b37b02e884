"""Answers judged: whether what an engine wrote under a plan can have been written under that plan's constraint.

Two judges, as far as there are two. The validator of the body knows whole answers and names the keyword. The grammar
library, if the engine is one whose library and tokenizer are known, reads every answer token by token, cut ones and
such as are no JSON, too. Of other people's servers only the grammar of all JSON is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from pipeline.engines.follow import Follower, follower
from pipeline.engines.grammar import backend_of
from pipeline.job import EngineConfig
from pipeline.records import Completion
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.probe.sites import Judge, sites
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.shape.policy import Policy
from pipeline.schema.shape.shapes import Site
from pipeline.schema.transport import transport_of
from pipeline.schema.validator import PatternTimeout, validator_of

MAX_ERRORS = 20
_ANY_JSON = "{}"
Kind = Literal["none", "kept", "broken"]


@dataclass(frozen=True, slots=True)
class Judged:
    """`kept`: nothing in the answer is against the plan's constraint. `broken`: something is; `at` are the sites, none
    where it is no JSON, or JSON that the grammar writes in another way. `none`: no answer that can be judged. `value`
    is that of a whole answer, `missing` the required keys that it lacks somewhere."""

    kind: Kind
    at: frozenset[Site] = frozenset()
    whole: bool = False
    value: Any = None
    missing: frozenset[str] = frozenset()

    def breaks(self, site: Site, name: str | None = None) -> bool:
        """Whether it is broken at a site (for want of a key of that name)."""
        return site in self.at and (name is None or name in self.missing)

    @property
    def strays(self) -> bool:
        """Whether it is broken where no site can be named."""
        return self.kind == "broken" and not self.at


NOTHING = Judged("none")


class Reader:
    """Reads answers along the grammar of the engine that wrote them. `exact`: along that of the plan's transport
    schema, not only of all JSON."""

    def __init__(self, followed: Follower, *, exact: bool) -> None:
        self._follower = followed
        self.exact = exact

    def strays(self, transport: str, completion: Completion) -> bool:
        """Whether an answer is something that the grammar does not write, or ends where the grammar does not.

        Raises:
            SchemaError: the library refuses the schema.
        """
        schema = transport if self.exact else _ANY_JSON
        found = self._follower.follow(schema, completion.text, completion.token_ids)
        written = len(completion.text.rstrip("\ufffd"))  # half a character, where an answer was cut
        if found.followed and found.accepted < min(written, found.characters):
            return True
        return completion.finish_reason == "stop" and found.followed and not found.finished

    def begins(self, transport: str, completion: Completion) -> bool:
        """Whether the grammar of a plan writes what an answer under another plan has; yes, if nobody knows."""
        return not self.exact or self._follower.begins(transport, completion.text.rstrip("\ufffd"))


def reader_of(config: EngineConfig, backend: str) -> Reader:
    """The reader of an engine's answers; `backend` is that of the plans.

    Raises:
        EngineError: the model, or its tokenizer, is not there.
    """
    if config.engine in ("vllm", "sampler"):
        return Reader(follower(config.tokenizer_model, backend_of(backend), config.compact_json), exact=True)
    return Reader(follower(config.tokenizer_model, "guidance", False), exact=False)


class Side:
    """One plan of a comparison, and the judge of the answers under it."""

    def __init__(self, plan: DecodingPlan, reader: Reader) -> None:
        self.plan = plan
        self._body = plan.asked or plan.acceptance
        self._reader = reader
        self._judge = Judge(self._body, frozenset(sites(self._body)))
        self._validator = validator_of(self._body)

    def judged(self, completion: Completion, aim: Site | None = None, *, own: bool = True) -> Judged:
        """What an answer shows of this plan, under which it was asked, or (not `own`) under another. `aim` is the site
        that is looked at."""
        if completion.error or completion.refusal or completion.finish_reason in ("error", "abort"):
            return NOTHING
        transport = self.plan.transport
        try:
            value = json.loads(completion.text)
            whole = completion.finish_reason == "stop"
        except (ValueError, RecursionError):
            value, whole = None, False
        if own:
            strays = self._reader.strays(transport, completion)
        else:  # the other grammar may write the same record in other tokens
            strays = not whole and not self._reader.begins(transport, completion)
        if not whole:
            return self._unread(completion, strays=strays)
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_ERRORS))
            surprises = [error for error in errors if self._is_surprise(error)]
            at = frozenset(self._judge.site(error, aim=aim) for error in surprises)
        except (PatternTimeout, RecursionError):
            return NOTHING
        kind: Kind = "broken" if at or strays else "kept"
        return Judged(kind, at, whole=True, value=value, missing=frozenset(_missing(surprises)))

    def leaves(self, site: Site) -> bool:
        """Whether the plan leaves a site to the validator."""
        return any((item.pointer, item.keyword) == site for item in self.plan.left)

    def _is_surprise(self, error: Any) -> bool:
        return bool(unannounced(self._body, [error], self.plan.left))

    def _unread(self, completion: Completion, *, strays: bool) -> Judged:
        if strays or completion.finish_reason == "stop":
            return Judged("broken")
        return Judged("kept") if self._reader.exact else NOTHING


def _missing(errors: Iterable[Any]) -> Iterator[str]:
    for error in errors:
        if error.validator == "required" and isinstance(error.instance, dict):
            yield from (name for name in error.validator_value if name not in error.instance)


def variant(plan: DecodingPlan, body: Mapping[str, Any]) -> DecodingPlan | None:
    """The plan of another body for the same engine, under the same prompts; None if no document can satisfy it."""
    made = transport_of(body, plan.backend, Policy(plan.abstain))
    if not made.satisfiable:
        return None
    grammar = digest([made.text, plan.backend, "in force"])
    return replace(
        plan,
        acceptance=body,
        asked={},
        transport=made.text,
        left=made.left,
        grammar_digest=grammar,
        digest=digest([grammar, plan.digest]),
    )
