"""What a seed has in store: which troubles there are, and how much of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.simulation.storage import Wire

NEVER = float("inf")
STALL_SECONDS = 20.0
"""After so long without a sign an engine is taken for stuck."""


@dataclass(frozen=True, slots=True)
class Weather:
    """Times are virtual seconds. `kills`, `node_deaths` and `driver_deaths` are mean times between such events."""

    processes: int
    lanes: int
    """Units that a process works on at once."""
    in_flight: int
    save_seconds: float
    save_documents: int
    pilot: int
    stop_rule: bool
    answer_seconds: float
    wire: Wire
    stalls: float
    """The share of calls of the storage that take up to a minute."""
    kills: float
    node_deaths: float
    driver_deaths: float
    aborts: float
    engine_deaths: float
    poison: int
    sticky: int
    """Documents that kill their process, and those that make their engine stick."""
    twice: float
    """The share of units that are given out twice."""
    rival: bool
    """A second driver is started while the first is at work."""
    pause: bool
    """Drivers stop for a while, so that they are taken for dead."""
    stubborn: bool
    """A driver that lost the run does not hear of it, and goes on."""
    interrupt: bool

    @property
    def reliable(self) -> bool:
        """Whether the storage does what it is told, in time."""
        return not (self.wire.faults or self.stalls)

    @property
    def deadly(self) -> bool:
        """Whether processes die of anything but their documents."""
        return min(self.kills, self.node_deaths) < NEVER or self.engine_deaths > 0

    def calm(self) -> Weather:
        """The same without what goes wrong by chance: in it, a job must come to its end."""
        return replace(
            self,
            wire=replace(self.wire, faults=0.0),
            stalls=0.0,
            kills=NEVER,
            node_deaths=NEVER,
            driver_deaths=NEVER,
            aborts=0.0,
            engine_deaths=0.0,
            stop_rule=False,
            rival=False,
            pause=False,
            interrupt=False,
        )


def forecast(dice: random.Random) -> Weather:
    """Each trouble is there in some seeds and absent in others, so that what needs its absence is checked as well."""

    def some(share: float, value: float, otherwise: float = 0.0) -> float:
        return value if dice.random() < share else otherwise

    def often(share: float, mean: float) -> float:
        return mean * dice.choice([0.3, 1.0, 3.0]) if dice.random() < share else NEVER

    return Weather(
        processes=dice.randint(1, 3),
        lanes=dice.randint(1, 3),
        in_flight=dice.choice([1, 2, 4, 20]),
        save_seconds=dice.choice([0.5, 2.0, 8.0, 60.0, 60.0]),
        save_documents=dice.choice([3, 3, 5, 500]),
        pilot=dice.choice([0, 0, 1, 2]),
        stop_rule=dice.random() < 0.1,
        answer_seconds=dice.choice([0.2, 1.0, 3.0]),
        wire=Wire(dice.choice([0.002, 0.02, 0.3, 1.5]), some(0.5, dice.choice([0.04, 0.2])), dice.choice([5, 120])),
        stalls=some(0.15, 0.01),
        kills=often(0.5, 12.0),
        node_deaths=often(0.15, 20.0),
        driver_deaths=often(0.4, 25.0),
        aborts=some(0.3, 0.15),
        engine_deaths=some(0.2, 0.03),
        poison=dice.choice([0, 0, 1, 1, 2]),
        sticky=dice.choice([0, 0, 0, 1]),
        twice=some(0.3, 0.3),
        rival=dice.random() < 0.3,
        pause=dice.random() < 0.2,
        stubborn=dice.random() < 0.5,
        interrupt=dice.random() < 0.1,
    )
