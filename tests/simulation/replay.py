"""`python -m tests.simulation.replay SEED` plays one seed and tells what it had in store and what came of it.

With FIRST LAST: the seeds from FIRST up to LAST, and only those in which something is wrong.
"""

from __future__ import annotations

import sys
import time
import traceback

from tests.simulation.world import World


def played(seed: int, kind: type[World] = World) -> tuple[World, list[str]]:
    """The world of a seed at its end, and what was wrong; also what broke off its story."""
    world = kind(seed)
    try:
        return world, world.play()
    except Exception as error:
        return world, [*world.complaints, "".join(traceback.format_exception(error)[-4:])]


def main(seeds: list[int]) -> int:
    """The command; returns its exit code."""
    started, bad = time.perf_counter(), 0
    for seed in seeds:
        world, wrong = played(seed)
        bad += bool(wrong)
        if len(seeds) == 1:
            print(world.forecast, f"poison: {sorted(world.poison)}, sticky: {sorted(world.sticky)}", sep="\n")
            print(*world.endings, sep="\n")
        if wrong or len(seeds) == 1:
            print(f"seed {seed}, {world.loop.time():.0f} virtual seconds:", *wrong or ["nothing is wrong"], sep="\n  ")
    print(f"{len(seeds)} seeds, {bad} wrong, {(time.perf_counter() - started) / len(seeds) * 1000:.1f} ms each")
    return 1 if bad else 0


if __name__ == "__main__":
    ends = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(ends if len(ends) == 1 else list(range(*ends))))
