"""The switch of a job: back to "prompt + repair" for all runs that begin from now on, without another job file.

`_switch/<job>.json` in the output says how it stands; every command that begins a run of the job reads it there. The
last writer wins. It overrides `sampling.constrained`, which is in a run's identity: runs of both kinds never mix.
"""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict, dataclass
from typing import Literal

from pipeline.errors import JobFileError, OutputError
from pipeline.job import JobConfig
from pipeline.runtime.output.run_record import now, reading
from pipeline.runtime.store import Store, json_bytes, json_object, writing

State = Literal["free", "constrained"]
STATES: tuple[State, ...] = ("free", "constrained")
CONSTRAINED = "sampling.constrained"
"""The piece of a run's work that the switch changes."""


@dataclass(frozen=True, slots=True)
class Switch:
    """`free`: no constraint, whatever the job says; `constrained`: as the job says. `time` it was set (UTC), by whom
    and why, in the words of that person."""

    state: State
    time: str = ""
    who: str = ""
    why: str = ""

    def told(self, job: str) -> str:
        """One line for people."""
        why = f": {self.why}" if self.why else ""
        if self.state == "constrained":
            return f"the constraint of `{job}` is as its job file says, since {self.time} by {self.who}{why}"
        return (
            f"the constraint of `{job}` is switched off (prompt and repair only) since {self.time} by {self.who}{why}. "
            "Back: gristmill canary JOB.yaml --switch constrained"
        )


def read_switch(output: Store, job: str) -> Switch | None:
    """How the switch of a job stands, None if nobody has ever set it.

    Raises:
        OutputError: it cannot be read, or is none: which of the two a run should be is not to be guessed.
    """
    with reading(f"{output.where}/{_key(job)}"):
        data = output.get(_key(job))
    if data is None:
        return None
    found = json_object(data) or {}
    if found.get("state") not in STATES:
        raise OutputError(
            f"{output.where}/{_key(job)} does not say how the switch stands. Set it again: gristmill canary JOB.yaml "
            "--switch free|constrained"
        )
    return Switch(found["state"], *(str(found.get(name, "")) for name in ("time", "who", "why")))


def set_switch(job: JobConfig, output: Store, state: State, why: str = "") -> Switch:
    """Set the switch of a job; runs that are under way go on as they began.

    Raises:
        JobFileError: the job's own file says that there is no constraint, so that none can be switched on here.
        OutputError: the output cannot be written.
    """
    if state == "constrained" and not job.sampling.constrained:
        raise JobFileError(
            "the job says `sampling.constrained: false` itself, and the switch goes back to what the job says. "
            "Change the job."
        )
    switch = Switch(state, now(), f"{_user()}@{socket.gethostname()}", why)
    with writing(f"{output.where}/{_key(job.name)}"):
        output.put(_key(job.name), json_bytes(asdict(switch)))
    return switch


def switched(job: JobConfig, switch: Switch | None) -> JobConfig:
    """The job as the switch has it."""
    if switch is None or switch.state == "constrained" or not job.sampling.constrained:
        return job
    return job.model_copy(update={"sampling": job.sampling.model_copy(update={"constrained": False})})


def _key(job: str) -> str:
    return f"_switch/{job}.json"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user of a container may have no name
        return "unknown"
