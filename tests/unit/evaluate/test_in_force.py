"""A constraint that is in force is proven site by site, one that is not is a leak at the site that is not held."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support import plan_of

from pipeline.engines.follow import follower
from pipeline.engines.http_probe import WORDINGS, begging, probe_keywords
from pipeline.engines.sampler import SamplerEngine
from pipeline.errors import EngineError
from pipeline.evaluate.in_force import in_force
from pipeline.evaluate.in_force_answers import Reader
from pipeline.evaluate.in_force_rows import ForceRow, rendered
from pipeline.job import Fault, SamplerConfig
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.probe.aims import WHOLE
from pipeline.schema.probe.loosen import accepts
from pipeline.schema.probe.minimal import shortest
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.source import Source
from pipeline.schema.walk import rebuild

BACKEND = "guidance"
ITEM = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
        "kind": {"enum": ["new", "used", "broken", "lost", "sold"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
    },
    "required": ["code", "kind", "count", "tags"],
}
Ignores = Callable[[Any], Any]


def without(keyword: str) -> Ignores:
    """A grammar to which one keyword was never told."""

    def bare(_: str, node: Any) -> Any:
        return {name: value for name, value in node.items() if name != keyword} if isinstance(node, dict) else node

    return lambda body: rebuild(body, bare)


def forgets_kind(body: Any) -> Any:
    """A grammar to which one required member was never told."""
    return {**body, "required": [name for name in body["required"] if name != "kind"]} if "required" in body else body


class Copier:
    """A model that copies what it is asked for where its grammar lets it, and else writes a smallest record. Its
    grammar is what `ignores` makes of the body that it is given."""

    def __init__(self, ignores: Ignores = lambda body: body) -> None:
        self._ignores = ignores
        self._smallest: dict[str, str] = {}

    async def generate(self, prompt: Prompt, plan: DecodingPlan, _sampling: Sampling) -> Completion:
        starts = (wording.removesuffix("{}") for wording in WORDINGS)
        wanted = next(prompt.user.partition(start)[2] for start in starts if start in prompt.user)
        body = self._ignores(plan.asked or plan.acceptance)
        if accepts(body, json.loads(wanted)):
            return Completion(wanted, "stop", True)
        if plan.digest not in self._smallest:
            self._smallest[plan.digest] = canonical_text(Source(body), shortest(read(body)))
        return Completion(self._smallest[plan.digest], "stop", True)

    async def start(self, plans: Sequence[DecodingPlan]) -> None: ...

    async def close(self) -> None: ...


class Stale(Copier):
    """Decodes every request under the first schema that came under a name: a cache with the wrong key."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, DecodingPlan] = {}

    async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
        return await super().generate(prompt, self._kept.setdefault(plan.name, plan), sampling)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(follower("embedded", BACKEND, True), exact=True)


def tried(engine: Any, reader: Reader, body: Any = ITEM, **values: Any) -> list[ForceRow]:
    return asyncio.run(in_force(engine, plan_of(body, "item@1", backend=BACKEND), reader, **values))


def leaked(rows: Sequence[ForceRow]) -> set[tuple[str, str]]:
    return {(row.pointer, row.keyword) for row in rows if row.verdict == "leaked"}


def test_an_engine_that_holds_its_constraint_is_proven_to_at_every_site(reader: Reader) -> None:
    rows = tried(Copier(), reader)
    assert {row.verdict for row in rows} == {"proven"}, rendered(rows)
    assert all(row.broke == 0 and row.chance <= 0.001 and row.asked for row in rows)
    sites = {(row.pointer, row.keyword) for row in rows}
    assert {("", "*"), ("", "required"), ("", "additionalProperties"), ("/properties/code", "pattern")} <= sites
    assert {("/properties/count", "maximum"), ("/properties/tags/items", "maxLength")} <= sites
    names = [row.detail for row in rows if row.keyword == "required"]
    assert names == [f'without "{name}"' for name in ITEM["required"]]


ENUM, PATTERN = ("/properties/kind", "enum"), ("/properties/code", "pattern")
FAULTS = {
    "enum dropped from the grammar": (without("enum"), {ENUM}),
    "pattern dropped from the grammar": (without("pattern"), {PATTERN}),
    "maximum dropped from the grammar": (without("maximum"), {("/properties/count", "maximum")}),
    "a required member taken away": (forgets_kind, {("", "required")}),
    "undeclared keys let through": (without("additionalProperties"), {("", "additionalProperties")}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_keyword_that_the_grammar_lost_is_a_leak_there_and_nowhere_else(fault: str, reader: Reader) -> None:
    ignores, sites = FAULTS[fault]
    rows = tried(Copier(ignores), reader, trials=2)
    assert leaked(rows) == sites, rendered(rows)
    assert rendered(rows)[0].startswith("leaked") and "such as {" in rendered(rows)[0]


def test_a_member_that_was_taken_away_names_itself(reader: Reader) -> None:
    rows = tried(Copier(forgets_kind), reader, trials=2)
    named = {row.detail for row in rows if row.verdict == "leaked"}
    assert named == {'without "kind"'}


def test_without_any_constraint_every_keyword_leaks(reader: Reader) -> None:
    rows = tried(Copier(lambda _body: {}), reader, trials=2)
    assert {row.verdict for row in rows} == {"leaked"}, rendered(rows)


@pytest.mark.parametrize("text", ["Sure, here it is", '{"{"code', '{"count":3,"code":"AB-123"', ""])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_what_no_grammar_writes_is_a_leak_of_the_answer_and_of_no_keyword(
    text: str, reason: Any, reader: Reader
) -> None:
    class Chatty(Copier):
        async def generate(self, *_: Any) -> Completion:
            return Completion(text, reason, True)

    rows = tried(Chatty(), reader, trials=2)
    is_nothing_yet = text == "" and reason == "length"
    assert leaked(rows) == (set() if is_nothing_yet else {WHOLE}), rendered(rows)
    assert not any(row.verdict == "proven" for row in rows)
    others = [row for row in rows if (row.pointer, row.keyword) != WHOLE]
    assert all(row.verdict == "undecided" and row.strayed for row in others) or is_nothing_yet


def test_an_engine_that_keeps_an_old_schema_leaks_although_each_answer_fits_some_schema(reader: Reader) -> None:
    rows = tried(Stale(), reader, trials=2)
    whole = next(row for row in rows if row.keyword == "*")
    assert whole.verdict == "leaked", rendered(rows)


def test_a_model_that_never_breaks_anything_proves_nothing_by_that(reader: Reader) -> None:
    class Meek(Copier):
        async def generate(self, prompt: Prompt, plan: DecodingPlan, sampling: Sampling) -> Completion:
            one = {"code": "AB-123", "kind": "new", "count": 3, "tags": []}
            return await super().generate(
                replace(prompt, user=begging(json.dumps(one, separators=(",", ":")), 0)), plan, sampling
            )

    rows = tried(Meek(), reader)
    assert not leaked(rows)
    taken_away = [row for row in rows if row.how == "taken away"]
    assert taken_away and all(row.verdict == "suggested" for row in taken_away), rendered(rows)
    stricter = next(row for row in rows if row.keyword == "enum" and row.how == "made stricter")
    assert stricter.verdict == "proven"  # it wrote the member until that was taken away


@pytest.mark.parametrize(
    ("text", "reason", "places"),
    [
        ('{"count":3,"code":"AB-123","kind"', "length", set()),  # another order, cut: a server may write so
        ('{"{"code', "length", {WHOLE}),
        ("Sure, here it is", "stop", {WHOLE}),
        ('{"code":"AB-123","count":3,"kind":"green","tags":[]}', "stop", {WHOLE, ("/properties/kind", "enum")}),
    ],
)
def test_of_a_server_whose_grammar_nobody_knows_only_json_is_read(
    text: str, reason: Any, places: set[Any], reader: Reader
) -> None:
    class Server(Copier):
        async def generate(self, *_: Any) -> Completion:
            return Completion(text, reason, True)

    server = Reader(follower("embedded", BACKEND, True), exact=False)
    rows = tried(Server(), server, trials=2)
    assert leaked(rows) >= places and bool(leaked(rows)) == bool(places), rendered(rows)
    assert places or {row.verdict for row in rows} == {"undecided"}


@pytest.mark.parametrize(
    "answer", [Completion("", "error", True, error="engine_failed"), Completion("", "abort", True)]
)
def test_without_an_answer_nothing_is_decided(answer: Completion, reader: Reader) -> None:
    class Silent(Copier):
        async def generate(self, *_: Any) -> Completion:
            return answer

    rows = tried(Silent(), reader, trials=2)
    assert {row.verdict for row in rows} == {"undecided"} and all(row.unanswered for row in rows)


def test_an_engine_that_is_gone_ends_it(reader: Reader) -> None:
    class Gone(Copier):
        async def generate(self, *_: Any) -> Completion:
            raise EngineError("gone for good")

    with pytest.raises(EngineError, match="gone for good"):
        tried(Gone(), reader, trials=2)


def test_a_mask_that_is_late_is_caught_where_trials_alone_see_no_whole_answer(reader: Reader) -> None:
    config = SamplerConfig(engine="sampler", backend="guidance", faults=(Fault(kind="late_mask", share=1.0),))
    plan = plan_of(ITEM, "item@1", backend=BACKEND)

    async def both() -> tuple[list[ForceRow], list[Any]]:
        engine = SamplerEngine(config)
        await engine.start([plan])  # the start-up check sees nothing: the fault spares it
        return await in_force(engine, plan, reader, trials=2), await probe_keywords(engine, plan, 1, max_tokens=64)

    rows, trials = asyncio.run(both())
    assert leaked(rows) == {WHOLE} and {row.verdict for row in rows} == {"leaked", "undecided"}, rendered(rows)
    assert sum(row.violations for row in trials) == 0 and sum(row.unanswered for row in trials) > 0


def test_how_a_text_is_cut_into_tokens_does_not_matter_under_another_plan(reader: Reader) -> None:
    transport = plan_of(ITEM, "item@1", backend=BACKEND).transport
    record = '{"code":"AB-123","kind":"used","count":3,"tags":["naïve"]}'
    for length in range(len(record) + 1):
        assert reader.begins(transport, Completion(record[:length], "length", True)), record[:length]
    for wrong in ('{"kind"', '{"code":"AB-12x', '{"code":"AB-123","kind":"usable', record + " and", "[1]"):
        assert not reader.begins(transport, Completion(wrong, "length", True)), wrong
