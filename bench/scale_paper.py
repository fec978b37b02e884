"""Extrapolation on paper: from what one machine measured to many GPUs and many documents.

Every line is a formula over measured numbers (`Measured`) and a stated target (`Target`). What a part needs is put
beside what it has; the largest share saturates first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """Microseconds are of CPU unless said otherwise; a unit's cost does not contain its documents'."""

    worker_micros_per_document: float
    control_begin_micros: float
    control_report_micros: float
    driver_micros_per_unit: float
    daemons_micros_per_unit: float
    prepare_wall_micros_per_unit: float
    driver_bytes_per_unit: float
    scan_rows_per_second: float
    scan_bytes_per_unit: float
    list_wall_micros_per_unit: float
    manifest_bytes_per_unit: float
    commit_wall_micros_per_unit: float
    files_per_unit: float


@dataclass(frozen=True, slots=True)
class Target:
    """Assumed, not measured: the rate of a GPU, the driver's memory, and the tolerated shares."""

    documents: float = 1e9
    gpus: int = 100
    documents_per_gpu_second: float = 20.0
    unit_documents: int = 1000
    driver_memory_gib: float = 64.0
    manifest_limit_gib: float = 1.0
    overhead_share: float = 0.05
    """Of the job's duration that scan, listing or commit may take."""
    cpu_cores_per_gpu: float = 8.0

    @property
    def rate(self) -> float:
        """Documents per second of all GPUs."""
        return self.gpus * self.documents_per_gpu_second

    @property
    def units(self) -> float:
        return self.documents / self.unit_documents

    @property
    def units_per_second(self) -> float:
        return self.rate / self.unit_documents

    @property
    def seconds(self) -> float:
        """The job at full speed."""
        return self.documents / self.rate


@dataclass(frozen=True, slots=True)
class Line:
    """`share` = needs / has: at 1 the part is full. `turn` is the key that makes it smaller."""

    part: str
    formula: str
    needs: float
    has: float
    unit: str
    turn: str

    @property
    def share(self) -> float:
        return self.needs / self.has


def lines(measured: Measured, target: Target) -> list[Line]:
    """All parts, the one that saturates first at the top."""
    parts = (_at_work, _before, _kept, _after)
    found = [line for part in parts for line in part(measured, target)]
    return sorted(found, key=lambda line: -line.share)


def _at_work(m: Measured, t: Target) -> Iterator[Line]:
    """While documents flow."""
    control = t.rate * m.control_begin_micros / 1e6 + t.gpus * m.control_report_micros / 1e6
    yield Line(
        "CPU beside the engines",
        "rate × CPU of a worker per document",
        t.rate * m.worker_micros_per_document / 1e6,
        t.gpus * t.cpu_cores_per_gpu,
        "cores",
        "placement.cpu_actors",
    )
    yield Line(
        "control actor",
        "rate × one begin per document + one report per process and second",
        control,
        1.0,
        "cores",
        "a control per group of processes; more documents in flight share a call",
    )
    yield Line(
        "driver: Ray Data's loop",
        "units per second × driver's CPU per unit",
        t.units_per_second * m.driver_micros_per_unit / 1e6,
        1.0,
        "cores",
        "placement.unit_documents up",
    )
    yield Line(
        "raylet and GCS of the head",
        "units per second × their CPU per unit",
        t.units_per_second * m.daemons_micros_per_unit / 1e6,
        1.0,
        "cores",
        "placement.unit_documents up",
    )


def _before(m: Measured, t: Target) -> Iterator[Line]:
    """Before the first document."""
    tolerated = t.seconds * t.overhead_share
    yield Line(
        "driver: handing all units to Ray",
        "units × wall per block of `from_items`",
        t.units * m.prepare_wall_micros_per_unit / 1e6,
        tolerated,
        "s",
        "placement.unit_documents up; several jobs",
    )
    yield Line(
        "scan",
        "documents / rows per second of one process",
        t.documents / m.scan_rows_per_second,
        tolerated,
        "s",
        "several jobs, each on a part of the input",
    )
    yield Line(
        "resume: listing commits",
        "units × wall per listed object (local disk)",
        t.units * m.list_wall_micros_per_unit / 1e6,
        tolerated,
        "s",
        "placement.unit_documents up",
    )


def _kept(m: Measured, t: Target) -> Iterator[Line]:
    """What is held or saved."""
    memory = t.units * m.driver_bytes_per_unit / GIB
    yield Line(
        "driver: memory",
        "units × driver's growth per unit",
        memory,
        t.driver_memory_gib,
        "GiB",
        "placement.unit_documents up; several jobs",
    )
    yield Line(
        "saved scan",
        "units × bytes of its description",
        t.units * m.scan_bytes_per_unit / GIB,
        t.manifest_limit_gib,
        "GiB",
        "placement.unit_documents up",
    )
    yield Line(
        "manifest",
        "units × bytes per unit",
        t.units * m.manifest_bytes_per_unit / GIB,
        t.manifest_limit_gib,
        "GiB",
        "placement.unit_documents up",
    )


def _after(m: Measured, t: Target) -> Iterator[Line]:
    """After the last document."""
    tolerated = t.seconds * t.overhead_share
    yield Line(
        "commit of the run",
        "units × wall from the last unit to the manifest",
        t.units * m.commit_wall_micros_per_unit / 1e6,
        tolerated,
        "s",
        "placement.unit_documents up",
    )


def to_json(measured: Mapping[str, float], target: Target) -> dict[str, Any]:
    """For the results file: the numbers it rests on, and every line."""
    known = Measured(**measured)
    rows = [asdict(line) | {"share": line.share} for line in lines(known, target)]
    derived = {"rate": target.rate, "units": target.units, "hours": target.seconds / 3600}
    return {"target": asdict(target) | derived, "measured": dict(measured), "lines": rows}


def table(paper: Mapping[str, Any]) -> str:
    """The same as Markdown, for README.md."""
    target = paper["target"]
    out = [
        f"{target['documents']:.0e} documents on {target['gpus']} GPUs of {target['documents_per_gpu_second']:g} "
        f"documents/s (assumed): {target['rate']:g} documents/s, {target['hours']:.0f} h, "
        f"{target['units']:.0e} units of {target['unit_documents']}.",
        "",
        "| part | from | needs | has | share | turn |",
        "|---|---|---|---|---|---|",
    ]
    for row in paper["lines"]:
        needs, has = (f"{row[key]:.3g} {row['unit']}" for key in ("needs", "has"))
        out.append(f"| {row['part']} | {row['formula']} | {needs} | {has} | {row['share']:.1%} | {row['turn']} |")
    return "\n".join(out)
