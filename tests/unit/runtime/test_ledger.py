"""The ledger, under random deaths: every poison is found within three deaths of its own, nothing healthy is blamed."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest

from pipeline.runtime.supervise.ledger import FEW, Ledger

SEEDS = range(800)


class World:
    """Processes that keep to the rules of the ledger, and work on documents in random order until all are through."""

    def __init__(self, seed: int, *, twice: bool = False) -> None:
        self.dice = random.Random(seed)
        self.ledger = Ledger()
        self.twice = twice
        healthy = [f"d{number}" for number in range(self.dice.choice([3, 20, 120]))]
        self.poisons = {f"x{number}" for number in range(self.dice.randrange(4))}
        self.todo = deque(self.dice.sample([*healthy, *sorted(self.poisons)], len(healthy) + len(self.poisons)))
        self.through: dict[str, str] = {}
        self.room = self.dice.choice([1, 4, FEW, 64])
        self.running: dict[str, list[str]] = {f"p{number}": [] for number in range(self.dice.randrange(1, 5))}
        self.waiting: dict[str, list[str]] = {process: [] for process in self.running}
        self.apart: set[str] = set()
        self.closed: dict[str, list[str]] = {process: [] for process in self.running}
        self.killed: Counter[str] = Counter()
        self.extra: Counter[str] = Counter()
        self.empty_deaths = 0
        for process in self.running:
            assert self.ledger.born(process) == ()

    def play(self) -> None:
        steps = 0
        while any([self.todo, *self.running.values(), *self.waiting.values()]):
            steps += 1
            assert steps < 50_000, "it does not come to an end"
            self.step(self.dice.choice(sorted(self.running)))

    def step(self, process: str) -> None:
        chance = self.dice.random()
        if chance < 0.01:
            self.die(process, node_died=True)
        elif chance < 0.015 and not self.running[process]:
            self.flush(process)
            self.empty_deaths += 1
            self.die(process)
        elif chance < 0.5 or not self.running[process]:
            self.start(process)
        else:
            self.finish(process, self.dice.choice(self.running[process]))

    def start(self, process: str) -> None:
        running, waiting = self.running[process], self.waiting[process]
        if process in self.apart and running:
            return
        self.apart.discard(process)
        if waiting and not running:
            group = [waiting.pop(0)]
            while waiting and len(group) < min(map(self.ledger.company, [*group, waiting[0]])):
                group.append(waiting.pop(0))
            self.apart.add(process)
            self.open(process, group, together=True)
        elif self.todo and len(running) < self.room:
            most = min(len(self.todo), self.room - len(running))
            keys = [self.todo.popleft() for _ in range(self.dice.randint(1, most))]
            self.open(process, keys)
            if self.twice and self.dice.random() < 0.1:  # nobody knows that this process still lives
                again = [key for key in keys if key not in self.through]
                self.extra.update(again)
                self.todo.extend(again)

    def open(self, process: str, keys: list[str], *, together: bool = False) -> None:
        self.flush(process)
        verdicts = self.ledger.begin(process, keys, together=together)
        for key in keys:
            verdict = verdicts[key]
            if verdict == "poison":
                assert key in self.poisons, f"{key} is healthy"
                self.through[key] = "poison"
            elif verdict == "go":
                self.running[process].append(key)
            else:
                self.waiting[process].append(key)

    def flush(self, process: str) -> None:
        self.ledger.ended(process, self.closed[process])
        self.closed[process] = []

    def finish(self, process: str, key: str) -> None:
        if key in self.poisons:
            self.killed[key] += 1
            self.die(process)
            return
        self.running[process].remove(key)
        self.closed[process].append(key)
        self.through[key] = "ended"
        if process in self.apart:
            self.flush(process)

    def die(self, process: str, *, node_died: bool = False) -> None:
        before = self.ledger.poison, self.ledger.deaths
        charged = self.ledger.born(process, node_died=node_died)
        assert set(charged) == (set() if node_died else {*self.running[process], *self.closed[process]})
        if node_died:
            assert before == (self.ledger.poison, self.ledger.deaths)
        self.todo.extendleft(reversed(self.running[process] + self.waiting[process]))
        self.running[process], self.waiting[process], self.closed[process] = [], [], []
        self.apart.discard(process)


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_random_deaths(twice: bool) -> None:
    """With `twice`, some documents run in two processes at once: a process that was given up lives on."""
    for seed in SEEDS:
        world = World(seed, twice=twice)
        world.play()
        told = f"seed {seed}"
        assert {key for key, how in world.through.items() if how == "poison"} == world.poisons, told
        assert all(world.killed[key] <= 3 * (1 + world.extra[key]) for key in world.poisons), (told, world.killed)
        assert world.ledger.deaths == world.killed.total() + world.empty_deaths, told
        assert world.room > FEW or twice or all(count <= 2 for count in world.killed.values()), told


def test_two_deaths_find_a_poison_in_small_company_and_three_in_large() -> None:
    for size, groups in ((FEW, 1), (FEW + 1, 5), (64, 8), (65, 9), (400, 20)):
        ledger = Ledger()
        keys = [f"k{number}" for number in range(size)]
        ledger.born("p")
        assert set(ledger.begin("p", keys).values()) == {"go"}
        ledger.born("p")
        assert [ledger.company(key) for key in keys] == [groups] * size
        assert set(ledger.begin("p", keys).values()) == {"suspect"}
        if groups > 1:
            ledger.begin("p", keys[:groups], together=True)
            ledger.born("p")
            assert ledger.company(keys[0]) == 1
            assert ledger.company(keys[groups]) == groups
        assert ledger.begin("p", [keys[0]], together=True) == {keys[0]: "go"}
        assert not ledger.poison
        ledger.born("p")
        assert ledger.poison == {keys[0]}
        assert ledger.begin("p", [keys[0]], together=True) == {keys[0]: "poison"}


def test_suspects_are_opened_only_as_many_as_may_be_together() -> None:
    ledger = Ledger()
    ledger.begin("p", ["a", "b", "c"])
    ledger.born("p")
    assert ledger.begin("p", ["a", "b", "new"], together=True) == {"a": "go", "b": "suspect", "new": "suspect"}
    assert ledger.open_in("p") == {"a"}


def test_one_that_came_to_an_end_is_no_suspect_any_more() -> None:
    ledger = Ledger()
    ledger.begin("p", ["a"])
    ledger.born("p")
    ledger.begin("p", ["a"], together=True)
    ledger.ended("p", ["a"])
    assert ledger.begin("p", ["a", "b"]) == {"a": "go", "b": "go"}
    ledger.born("p")
    assert not ledger.poison


def test_a_mark_belongs_to_its_process_and_counts() -> None:
    ledger = Ledger()
    ledger.begin("zombie", ["a", "b"])
    ledger.begin("p", ["a", "a"])
    ledger.ended("zombie", ["a", "a", "unheard of"])
    assert ledger.open_in("p") == {"a"}
    ledger.ended("p", ["a"])
    assert ledger.open_in("p") == {"a"}
    ledger.ended("p", ["a"])
    assert ledger.open_in("p") == frozenset()
    assert ledger.born("zombie") == ("b",)


def test_one_that_was_open_beside_a_known_poison_is_not_alone() -> None:
    ledger = Ledger()
    for process in ("p", "zombie"):
        ledger.begin(process, ["x", "healthy"])
    ledger.born("p")
    ledger.begin("p", ["x"], together=True)
    ledger.born("p")
    assert ledger.poison == {"x"}
    ledger.born("zombie")
    assert ledger.poison == {"x"}
    assert ledger.begin("q", ["healthy"], together=True) == {"healthy": "go"}


def test_what_a_missed_process_had_open_is_suspect_at_once() -> None:
    """Else the document that killed it would kill others until it is born again, which takes an engine a minute."""
    ledger = Ledger()
    ledger.begin("e0", ["x", "a"])
    assert ledger.missed("e0", "x")
    assert not ledger.missed("e0", "never there")
    assert ledger.begin("e1", ["x", "b"]) == {"x": "suspect", "b": "go"}
    ledger.begin("e1", ["x"], together=True)
    ledger.ended("e1", ["b"])
    assert ledger.missed("e1", "x")
    assert ledger.company("x") == 0, "it is not known yet whether it is poison"
    assert ledger.begin("e2", ["x"], together=True) == {"x": "suspect"}
    assert ledger.company("a") == 1
    ledger.born("e0")
    assert ledger.company("x") == 0
    ledger.born("e1")
    assert ledger.poison == {"x"}


def test_a_missed_process_whose_node_died_charges_nobody() -> None:
    ledger = Ledger()
    ledger.begin("e0", ["a"])
    ledger.missed("e0", "a")
    assert ledger.died("e0", node_died=True) == ()
    assert ledger.begin("e1", ["a"]) == {"a": "go"}
    assert ledger.born("e0") == ()
    assert ledger.deaths == 0


def test_a_missed_process_that_asks_lives() -> None:
    ledger = Ledger()
    ledger.begin("e0", ["a"])
    ledger.missed("e0", "a")
    ledger.begin("e0", ["b"])
    assert ledger.begin("e1", ["a"]) == {"a": "go"}
