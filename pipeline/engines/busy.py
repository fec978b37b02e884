"""Busy: there is no room for a request now."""

from __future__ import annotations

from pipeline.errors import EngineError


class EngineBusyError(EngineError):  # `extract` lets no other exception of an engine pass
    """The engine has no room. Come again after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"no room; come again in {retry_after:g} s")
        self.retry_after = retry_after
