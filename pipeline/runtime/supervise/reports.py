"""Reports: what a process tells the job's control about once a second, and the orders that come back."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

from pipeline.observe.tally import Tally
from pipeline.records import Outcome
from pipeline.runtime.supervise.control import Orders
from pipeline.runtime.supervise.control_calls import ControlCalls
from pipeline.schema.plan import DecodingPlan

REPORT_SECONDS = 1.0


class Reports:
    """Sums outcomes by schema between two reports; `plans` by schema. `orders` are the latest that came back."""

    def __init__(self, calls: ControlCalls, process: str, plans: Mapping[str, DecodingPlan] | None = None) -> None:
        self._plans = plans or {}
        self._calls = calls
        self._process = process
        self._pending: defaultdict[tuple[str, bool], Tally] = defaultdict(Tally)
        self._last = float("-inf")
        self.orders = Orders(drain=False, stopped=())

    async def add(self, outcomes: Iterable[Outcome], *, pilot: bool = False) -> None:
        """Count outcomes, and report if it is time."""
        for outcome in outcomes:
            self._pending[outcome.schema, pilot].add(outcome, self._plans.get(outcome.schema))
        if asyncio.get_running_loop().time() - self._last >= REPORT_SECONDS:
            await self.flush()

    async def flush(self, done_units: int = 0) -> None:
        """Report now."""
        self._last = asyncio.get_running_loop().time()
        pending, self._pending = self._pending, defaultdict(Tally)
        for is_pilot in sorted({pilot for _, pilot in pending} or {False}):
            tallies = {schema: tally.to_json() for (schema, pilot), tally in pending.items() if pilot is is_pilot}
            self.orders = await self._calls.report(self._process, tallies, done_units, pilot=is_pilot)
            done_units = 0
