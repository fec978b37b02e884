"""EngineBusyError: an engine that others use, too, takes no more requests just now."""

from __future__ import annotations


class EngineBusyError(Exception):
    """As many requests wait for the engine as may. `retry_after`: seconds after which asking again makes sense.

    It is no EngineError: the engine lives, and other requests succeed.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, retry_after)  # both, so that it survives a journey between processes
        self.message = message
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message
