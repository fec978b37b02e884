"""Control: what a job knows of itself while it runs. One object a job, in a process of its own; others call it.

It decides nothing that outlives it: what is committed stands in the run's directory, and a new driver begins with a
new control.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.jobplacement import StopConfig
from pipeline.observe.metrics.labels import SchemaLabels
from pipeline.observe.tally import Tally
from pipeline.runtime.supervise.ledger import Ledger, Verdict
from pipeline.runtime.supervise.pilot import Gate
from pipeline.runtime.supervise.stop import Counts, describe, finding

REASONS = 5
REASON_LENGTH = 1000
POISON_IN_A_ROW = 4
"""So many documents of one process may be found to be poison one after the other, as where bad ones stand next to each
other, before its deaths count as those of a process that cannot work at all."""

MISSED_SECONDS = 60.0
"""How long a process that somebody missed may take to be born again, or its node to be known as dead. Longer than Ray
takes to notice the loss of a node."""

_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Orders:
    """What a process is to do. `drain`: end, saving what is finished. `stopped`: schemas to leave alone."""

    drain: bool
    stopped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What the driver sees.

    `total` is the JSON of the tally so far, for display: documents whose outcome was lost count again. `deaths` are the
    most that one process died in a row, without a document that came to an end in it; `all_deaths` count those of all,
    `unit_deaths` those since a unit was last committed; a process that dies with its node is in none of them. `reasons`
    are the last words of processes, oldest first. `idle_seconds` is the time since a document came to an end, or a unit
    was committed, anywhere. `stopped` has schemas that `stop_if` stopped, with the reason. `poison` counts documents.
    `warnings` are what processes have to tell that ends nothing, oldest first. `asking_seconds`: since the first
    document was put before an engine, without what engines of a later turn take to start.
    """

    total: dict[str, Any]
    deaths: int
    all_deaths: int
    unit_deaths: int
    poison: int
    done_units: int
    idle_seconds: float
    reasons: tuple[str, ...]
    stopped: dict[str, str]
    warnings: tuple[str, ...] = ()
    asking_seconds: float = 0.0


def _always(_node: str) -> bool:
    return True


class Control:
    """Sums what processes report, and holds the ledger of open documents, the pilots and the stop rule.

    `pilots` counts the documents of each schema's pilot. `alive` tells whether a node lives, by which a process that
    died is told from one that was lost with its node. `now` is a clock in seconds that never goes back. `labels`: of
    the schemas, for metrics.
    """

    def __init__(
        self,
        stop: StopConfig,
        pilots: Mapping[str, int] | None = None,
        alive: Callable[[str], bool] = _always,
        now: Callable[[], float] = time.monotonic,
        labels: SchemaLabels | None = None,
    ) -> None:
        self._stop = stop
        self._alive = alive
        self._now = now
        self._ledger = Ledger()
        self._gate = Gate(pilots or {}, now())
        self._nodes: dict[str, str] = {}
        self._missed: dict[str, float] = {}
        self._asked_about = float("-inf")
        self._asked: float | None = None
        self._asked_before = 0.0
        self._row: Counter[str] = Counter()
        self._poison_row: Counter[str] = Counter()
        self._unit_deaths = 0
        self._total = Tally()
        self._labels = labels or SchemaLabels({}, ())
        self._by_label: dict[str, Tally] = {}
        self._counts: dict[str, Counts] = {}
        self._stopped: dict[str, str] = {}
        self._reasons: deque[str] = deque(maxlen=REASONS)
        self._warnings: list[str] = []
        self._done_units = 0
        self._moved = now()
        self._drain = False

    def born(self, process: str, node: str) -> None:
        """A process starts, on a node. If one of its name was there, it is dead."""
        last = self._nodes.get(process)
        self._died(process, node_died=last is not None and not self._alive(last), born=True)
        self._nodes[process] = node
        self._gate.stir(self._now())

    def missed(self, process: str, key: str) -> None:
        """A caller that waited for what a process does with `key` finds it gone. To be told before the work is given
        to another process, which would else be killed by the same document."""
        if self._ledger.missed(process, key):
            self._missed.setdefault(process, self._now())

    def begin(
        self, process: str, keys: Sequence[str], ended: Sequence[str] = (), together: bool = False
    ) -> dict[str, tuple[Verdict, int]]:
        """Close what ended, then open what may be worked on: each key's verdict, and how many may be open with it if
        it is suspect (0: ask again later). `together` as in `Ledger.begin`."""
        if self._ledger.ended(process, ended):
            self._ends(process)
        self._bury()
        verdicts = self._ledger.begin(process, keys, together=together)
        if keys and self._asked is None:
            self._asked = self._now()
            self._gate.stir(self._asked)  # until here, engines were starting
        return {key: (verdict, self._ledger.company(key)) for key, verdict in verdicts.items()}

    def report(
        self,
        process: str,
        schemas: Mapping[str, Mapping[str, Any]],
        done_units: int = 0,
        reason: str = "",
        pilot: bool = False,
    ) -> Orders:
        """Count outcomes (the JSON of a Tally by schema) and committed units; `reason`: why the process is to die."""
        if reason and (not self._reasons or self._reasons[-1] != reason[:REASON_LENGTH]):
            self._reasons.append(reason[:REASON_LENGTH])
        for schema, tally in schemas.items():
            found = Tally.from_json(tally)
            self._total.merge(found)
            self._by_label.setdefault(self._labels.of(schema), Tally()).merge(found)
            self._counts.setdefault(schema, Counts()).add(tally)
            whole = self._gate.report(schema, tally.get("documents", 0), self._now()) if pilot else 0
            self._judge(schema, whole)
        if done_units:
            self._done_units += done_units
            self._unit_deaths = 0
            self._ends(process)  # documents alone are no sign: those that were saved are reported after each death
        return Orders(self._drain, tuple(self._stopped))

    def gate(self, schema: str) -> Literal["open", "wait", "stopped"]:
        """Whether the mass of a schema may begin. Nothing may when the job is to end."""
        if self._drain or schema in self._stopped:
            return "stopped"
        return "wait" if self._gate.waits(schema, self._now()) else "open"

    def turn(self) -> None:
        """The units of another back end follow: engines start until the first of their documents begins."""
        self._asked_before, self._asked = self._asking(), None

    def drain(self) -> None:
        """The job is to end: all processes hear of it with their next report."""
        self._drain = True

    def look(self) -> Look:
        """What the driver sees."""
        return Look(
            total=self._total.to_json(),
            deaths=max(self._row.values(), default=0),
            all_deaths=self._ledger.deaths,
            unit_deaths=self._unit_deaths,
            poison=len(self._ledger.poison),
            done_units=self._done_units,
            idle_seconds=self._now() - self._moved,
            reasons=tuple(self._reasons),
            stopped=dict(self._stopped),
            warnings=tuple(self._warnings),
            asking_seconds=self._asking(),
        )

    def by_label(self) -> dict[str, dict[str, Any]]:
        """The JSON of the tally of each label so far, as `look` has that of all."""
        return {label: tally.to_json() for label, tally in self._by_label.items()}

    def warn(self, words: str) -> None:
        """Something that a person should hear of, and that ends nothing."""
        if len(self._warnings) < REASONS and words[:REASON_LENGTH] not in self._warnings:
            self._warnings.append(words[:REASON_LENGTH])

    def open_in(self, process: str) -> frozenset[str]:
        """What a process has open."""
        return self._ledger.open_in(process)

    def _asking(self) -> float:
        return self._asked_before + (0.0 if self._asked is None else self._now() - self._asked)

    def _judge(self, schema: str, pilot: int) -> None:
        """`pilot`: its size, if it has just ended. Then it is judged although some of it could not be asked about."""
        after = max(1, min(self._stop.after, pilot) // 2) if pilot else self._stop.after
        counts = self._counts[schema]
        if schema not in self._stopped and (found := finding(counts, self._stop, after)):
            self._stopped[schema] = describe(schema, found, counts)

    def _died(self, process: str, *, node_died: bool, born: bool = False) -> None:
        deaths, poison = self._ledger.deaths, len(self._ledger.poison)
        (self._ledger.born if born else self._ledger.died)(process, node_died=node_died)
        self._missed.pop(process, None)
        if self._ledger.deaths == deaths:
            return
        self._unit_deaths += 1
        self._row[process] += 1
        if len(self._ledger.poison) > poison and self._poison_row[process] < POISON_IN_A_ROW:
            self._poison_row[process] += 1
            self._row[process] = 0
            self._moved = self._now()

    def _bury(self) -> None:
        """Settle what missed processes died of, at most once a second."""
        now = self._now()
        if not self._missed or now - self._asked_about < _LOOK_SECONDS:
            return
        self._asked_about = now
        for process, since in list(self._missed.items()):
            if process not in self._ledger.missing:
                del self._missed[process]  # it lives
            elif process in self._nodes and not self._alive(self._nodes[process]):
                self._died(process, node_died=True)
            elif now - since >= MISSED_SECONDS:
                self._died(process, node_died=False)

    def _ends(self, process: str) -> None:
        self._moved = self._now()
        del self._row[process], self._poison_row[process]
