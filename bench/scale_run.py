"""The driver of `bench.scale`, in a process of its own: `python -m bench.scale_run FOLDER [again]`.

Prints one JSON line: when things happened (time.time), and documents finished over time.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from bench.scale_input import scale_job


def main(folder: str, again: bool) -> None:
    from pipeline import flow
    from pipeline.observe.tally import Tally
    from pipeline.runtime.input import scan_once
    from pipeline.runtime.store import open_store

    job = scale_job(Path(folder))
    told: dict[str, Any] = {"begun": time.time()}
    if not again:
        # What `flow.run` does first; it finds this scan saved and reads it.
        found = scan_once(job.input, job.placement.unit_documents, open_store(job.output))
        told |= {"scanned": time.time(), "units": len(found.units), "scan_peak_mib": _peak_mib()}
        del found
    progress: list[tuple[float, int]] = []

    def observe(event: str, value: object) -> None:
        if event == "progress" and isinstance(value, Tally):
            progress.append((time.time(), value.documents))
        else:
            told[event] = time.time()

    manifest = flow.run(job, observe)
    told |= {
        "ended": time.time(),
        "documents": manifest.documents,
        "counts": dict(manifest.counts),
        "progress": progress,
        "peak_mib": _peak_mib(),
    }
    print(json.dumps(told), flush=True)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(sys.argv[1], again="again" in sys.argv[2:])
