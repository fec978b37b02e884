"""Bounds on what something costs, in processor time.

A wall clock also counts what a busy or paused machine takes away, so a bound in wall seconds fails on code that has
not changed. Only waits (deadlines, drains, kills) are timed by a wall clock in tests, and generously.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Fail if the body takes more processor time than that, all threads of this process together."""
    began = time.process_time()
    yield
    spent = time.process_time() - began
    assert spent < most, f"{spent:.2f} s of processor time, more than {most} s"
