"""One whole run through Ray Data with a recorded engine, in a process of its own: `python -m bench.whole FOLDER NAME`.

Prints one JSON line: wall and CPU seconds, CPU seconds by kind of process, and peaks of memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.processes import Watch
from bench.recording import recorded_job


def main(folder: str, name: str) -> None:
    from pipeline import flow
    from pipeline.observe.tally import Tally
    from pipeline.runtime.stream import start_ray

    job = recorded_job(Path(folder), name)
    start_ray()  # Ray's own start is not part of what is measured; workers start within it
    seen: list[tuple[float, int]] = []

    def observe(event: str, value: object) -> None:
        if event == "progress" and isinstance(value, Tally):
            seen.append((time.perf_counter(), value.documents))

    watch = Watch().start()
    wall = time.perf_counter()
    manifest = flow.run(job, observe)
    ended = time.perf_counter()
    watch.stop()
    first = next((at for at, documents in seen if documents), ended)
    print(
        json.dumps(
            {
                "documents": manifest.documents,
                "counts": dict(manifest.counts),
                "wall_seconds": ended - wall,
                "seconds_to_first_progress": first - wall,
                "cpu_seconds": sum(watch.seconds.values()),
                "cpu_by_kind": watch.seconds,
                "processes_started_by_kind": watch.started,
                "peaks": _peaks(watch),
            }
        ),
        flush=True,
    )


def _peaks(watch: Watch) -> dict[str, Any]:
    peaks = {kind: asdict(peak) for kind, peak in watch.peaks.items()}
    # ru_maxrss is exact, where samples may miss the last moment.
    peaks["driver"]["resident_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return peaks


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
