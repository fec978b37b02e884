"""The Ray that a job runs on: found or started, and what it says of itself."""

from __future__ import annotations

import logging
import os
import signal
import threading

from pipeline.errors import EngineError, GristmillError, ResourceError
from pipeline.runtime.setup import Setup

AGENT_MILLISECONDS = "120000"
"""A node's agents need longer to start on a busy small machine than the 15 s that Ray gives them."""


def start_ray() -> None:
    """Use the Ray that is there (in this process, or at RAY_ADDRESS), or start one on this machine."""
    import ray
    from ray.data import DataContext

    verbose = bool(os.environ.get("GRISTMILL_VERBOSE"))
    if not ray.is_initialized():
        _init_ray(verbose)
    if not verbose:
        # A failed stage is raised here; Ray Data would print its stack three times besides.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.raise_original_map_exception = True  # wrapped exceptions lose their cause on the way here


def room(resource: str) -> float:
    """How much of a resource the cluster has, or will have when its autoscaler, if it has one, has made it as large as
    it may be."""
    import ray

    return max(float(ray.cluster_resources().get(resource, 0)), _grown().get(resource, 0.0))


def has_choice() -> bool:
    """Whether there is, or may be, more than one node for a process to be on."""
    import ray

    return bool(_grown()) or sum(one["Alive"] for one in ray.nodes()) > 1


def _grown() -> dict[str, float]:
    """The most that the autoscaler may give; nothing without one. It is what Ray Data itself asks."""
    from ray._private.state import state

    return {name: float(most) for name, most in (state.get_max_resources_from_cluster_config() or {}).items()}


def check_gpus(setup: Setup) -> None:
    """Raises ResourceError if the cluster lacks the GPUs of placement `local`: Ray would wait for them for ever. Those
    that an autoscaler can bring are waited for."""
    engines, each = setup.processes, setup.gpus
    needed, most = engines * each, room("GPU")
    if needed > most:
        raise ResourceError(
            f"{engines} engine(s) of {each:g} GPU(s) need {needed:g}, and the cluster has {most:g}, with all that it "
            "may grow by. Lower `placement.actors`, or choose an engine config for this machine."
        )


def is_alive(node: str) -> bool:
    """Whether a node of the cluster lives, as far as Ray knows."""
    import ray

    return any(one["NodeID"] == node and one["Alive"] for one in ray.nodes())


def job_failure(error: BaseException) -> GristmillError:
    """The exception of a stage without what Ray wrapped around it; anything that is not ours is told as it is.

    Ray's wrapper also claims the class of what it wraps, so `cause` is looked at before the class is.
    """
    cause: BaseException = error
    while isinstance(inner := getattr(cause, "cause", None), BaseException):
        cause = inner
    if isinstance(cause, GristmillError):
        return cause
    return EngineError(
        f"a worker failed: {type(cause).__name__}: {cause}\n"
        "What was committed is kept; run the same command to continue. --verbose shows the worker's log."
    )


def _init_ray(verbose: bool) -> None:
    import ray

    local = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
    os.environ.setdefault("RAY_agent_register_timeout_ms", AGENT_MILLISECONDS)
    if not verbose:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    terminated = signal.getsignal(signal.SIGTERM)
    for last in (False, True):
        try:
            ray.init(logging_level="ERROR", log_to_driver=verbose, **local)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, terminated)  # Ray's own ends the process without a word
            return
        except Exception as error:  # plain Exception if a node is not up in 30 s, as on a busy small machine
            ray.shutdown()
            if last:
                hint = "Is RAY_ADDRESS right, if it is set? Is the machine out of CPU or memory?"
                raise ResourceError(f"Ray did not start: {error} {hint}") from error
