"""Whether an engine holds a schema's constraint, keyword site by keyword site, shown by what it answers.

An engine that was asked to break a keyword and did not may just not have wanted to. So requests come in pairs: the same
one under the schema, and under the schema without that keyword. Where it breaks the keyword without it and does not
with it, the keyword made the difference; an engine that ignored it would have got the same request twice. Where no pair
shows that, a second kind of pair makes the keyword stricter, so that values are taken away which the engine may write
now. And records, and the members of enums, are allowed one at a time under one prompt: the answers have to follow.

Whatever comes back is judged under the plan that it was asked under (`in_force_answers`): a leak is a fact.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from pipeline.engines import Engine
from pipeline.engines.http_probe import WORDINGS, begging
from pipeline.evaluate.in_force_answers import Judged, Reader, Side, variant
from pipeline.evaluate.in_force_rows import (
    ROOM,
    TRIALS,
    Counts,
    ForceRow,
    How,
    chance_of_following,
    rounds_for,
    shown,
)
from pipeline.records import Completion, Prompt, Sampling
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.probe.aims import WHOLE, Aim, Alone, aims_of, alone_of
from pipeline.schema.probe.instances import instances
from pipeline.schema.probe.spots import spots
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import Site
from pipeline.schema.shape.source import Source

SEARCH_SECONDS = 10.0
"""Processor time for finding values that break or keep the keywords."""
AT_ONCE = 6
"""Sites that are tried at once: enough to fill an engine, and the first are known long before the last."""
_SYSTEM = "You repeat JSON exactly as the user gives it."
_TEMPERATURES = (0.0, 0.7)


async def in_force(
    engine: Engine,
    plan: DecodingPlan,
    reader: Reader,
    *,
    trials: int = TRIALS,
    room: int = ROOM,
    told: Callable[[ForceRow], None] = lambda _row: None,
) -> list[ForceRow]:
    """Try every keyword site of a plan on an engine that has started. Each comparison takes `trials` requests a side.
    The plan must give no way to abstain: an abstention breaks the schema.

    Rows come in the order of the schema, whole records first; leaks that nobody had asked for come last. Each is `told`
    when it is known.

    Raises:
        EngineError: the engine is gone.
    """
    body = plan.asked or plan.acceptance
    found = await asyncio.to_thread(lambda: instances(body, read(body), SEARCH_SECONDS))
    aims, alone = await asyncio.to_thread(lambda: (aims_of(found), alone_of(found)))
    trier, places = _Trier(engine, plan, reader, trials, room), asyncio.Semaphore(AT_ONCE)

    async def one(tried: Callable[[], Awaitable[ForceRow]]) -> ForceRow:
        async with places:
            made = await tried()
        told(made)
        return made

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(partial(trier.one_at_a_time, item))) for item in alone]
            tasks += [group.create_task(one(partial(trier.aimed, aim))) for aim in aims]
    except ExceptionGroup as several:  # the first is why the others were cancelled
        raise several.exceptions[0] from None
    rows = [task.result() for task in tasks]
    leaked = {(row.pointer, row.keyword) for row in rows if row.verdict == "leaked"}
    for row in (unasked := [one for one in trier.unasked() if (one.pointer, one.keyword) not in leaked]):
        told(row)
    return rows + unasked


class _Trier:
    def __init__(self, engine: Engine, plan: DecodingPlan, reader: Reader, trials: int, room: int) -> None:
        self._engine, self._plan, self._reader = engine, plan, reader
        self._trials, self._room = trials, room
        self._side = Side(plan, reader)
        self._judging = asyncio.Lock()  # tokenizers are not safe to share
        self._answers = 0
        self._leaks: dict[Site, list[str]] = defaultdict(list)

    async def aimed(self, aim: Aim) -> ForceRow:
        """Both pairs of one aim; the second only if the first proves nothing."""
        if self._side.leaves(aim.site):
            return ForceRow(*aim.site, aim.detail, "left")
        free = await self._other(aim.loose)
        counts = await self._pair(aim, self._side, free, aim.wanted) if aim.wanted else Counts()
        row = _row(aim.site, aim.detail, "taken away" if free else "", counts, counts.of_pair())
        stricter = await self._other(aim.tight)
        if row.verdict in ("leaked", "proven") or row.strayed or stricter is None or stricter.leaves(aim.site):
            return row
        again = await self._pair(aim, stricter, self._side, aim.legal)
        second = _row(aim.site, aim.detail, "made stricter", again, again.of_pair())
        return second if second.verdict in ("leaked", "proven") or row.verdict == "undecided" else row

    async def _other(self, body: Mapping[str, Any] | None) -> Side | None:
        """The side of another body; None without one, or if no document can satisfy it."""

        def made() -> Side | None:
            plan = None if body is None else variant(self._plan, body)
            return None if plan is None else Side(plan, self._reader)

        return await asyncio.to_thread(made)

    async def _pair(self, aim: Aim, held: Side, free: Side | None, wanted: Sequence[str]) -> Counts:
        """The same requests under two plans, both judged by the one that has the keyword, or the stricter one. Where
        one of the other's answers was cut after it left this one's grammar, that is for the keyword: all else is alike.
        """
        counts = Counts()
        sides = [held] if free is None else [held, free]
        under, *others = await asyncio.gather(*(self._ask(side, wanted, self._trials) for side in sides))
        judged = await self._judged(held, under, aim.site)
        counts.note(under, judged, [one.breaks(aim.site, aim.name) for one in judged])
        for side, completions in zip(sides[1:], others, strict=True):
            await self._judged(side, completions, aim.site)
            for one in await self._judged(held, completions, aim.site, own=False):
                counts.other_asked += one.kind != "none"
                counts.other_broke += one.breaks(aim.site, aim.name) or one.strays
        return counts

    async def one_at_a_time(self, alone: Alone) -> ForceRow:
        """Bodies that share no answer, under the same prompts, as often as a proof takes."""
        site, detail = alone.site, "one record at a time" if alone.site == WHOLE else "each member alone"
        if self._side.leaves(site):
            return ForceRow(*site, detail, "left")
        sides = [side for body in alone.bodies if (side := await self._other(body)) is not None]
        rounds = rounds_for(len(sides))
        counts, followed = Counts(other_asked=len(sides)), 0
        for side, completions in zip(
            sides, await asyncio.gather(*(self._ask(side, alone.wanted, rounds) for side in sides)), strict=True
        ):
            judged = await self._judged(side, completions, site)
            broken = [one.kind == "broken" and (site == WHOLE or one.breaks(site)) for one in judged]
            there = [bad or one.strays or _has(side, one, site) for bad, one in zip(broken, judged, strict=True)]
            counts.note(completions, judged, broken, there)
            followed += all(there) and not any(one.kind == "broken" for one in judged)
        return _row(site, detail, "one at a time", counts, chance_of_following(followed, rounds))

    async def _ask(self, side: Side, wanted: Sequence[str], count: int) -> list[Completion]:
        """Answers to so many requests, no two of them alike, that beg for the wanted texts in turn."""
        most = self._room + max(map(len, wanted))
        requests = []
        for number in range(count):
            text = begging(wanted[number // len(WORDINGS) % len(wanted)], number)
            temperature = _TEMPERATURES[number % len(_TEMPERATURES)]
            sampling = Sampling(most, temperature, seed=number, token_ids=self._reader.exact)
            prompt = Prompt(_SYSTEM, f"Request {number + 1}. {text}")
            requests.append(self._engine.generate(prompt, side.plan, sampling))
        return list(await asyncio.gather(*requests))

    async def _judged(
        self, side: Side, completions: Sequence[Completion], site: Site, *, own: bool = True
    ) -> list[Judged]:
        """What answers show of a plan; if they are its `own`, leaks are counted."""
        async with self._judging:
            judged = await asyncio.to_thread(lambda: [side.judged(one, site, own=own) for one in completions])
        for completion, one in zip(completions, judged, strict=True):
            self._answers += own and one.kind != "none"
            if own and one.kind == "broken":
                for place in (one.at if site != WHOLE else ()) or (WHOLE,):
                    self._leaks[place].append(completion.text)
        return judged

    def unasked(self) -> list[ForceRow]:
        """A row for every place at which some answer broke a constraint, whatever it had been asked for."""
        return [
            ForceRow(
                *site,
                "in any answer",
                "leaked",
                asked=self._answers,
                broke=len(texts),
                chance=0.0,
                example=shown(texts[0]),
            )
            for site, texts in self._leaks.items()
        ]


def _row(site: Site, detail: str, how: How, counts: Counts, chance: float) -> ForceRow:
    return ForceRow(*site, detail, counts.verdict(chance), how, chance=chance, **asdict(counts))


def _has(side: Side, judged: Judged, site: Site) -> bool:
    """Whether a whole answer has a part at a site: an enum of items says nothing of an empty list."""
    if not judged.whole or site == WHOLE:
        return judged.whole
    return bool(spots(Source(side.plan.acceptance), judged.value).get(site[0]))
