"""The forked side of a job: its limits, its run, its answer. Nothing here returns to the zygote's code.

The answer on the pipe: a line with the resident pages at the start, a line `{kind, words}`, a line with the JSON of
the value. Whatever is not whole counts as absent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pipeline.errors import GristmillError

MAX_WORDS = 2000
"""Characters kept of a message and of what a job printed."""

Job = Callable[[Any], Any]
_MIB = 1 << 20
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def become_job(
    request: Mapping[str, Any], job: Job | None, parent: int, pipes: tuple[int, int], unwanted: Iterable[int]
) -> NoReturn:
    """Run `job` on the request's payload under the request's limits and end this process.

    `parent`: the zygote's process id; `pipes`: the descriptors for the answer and for all that is printed;
    `unwanted` ones are closed.
    """
    code = 70
    answer, printed = pipes
    try:
        os.setpgid(0, 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.close(printed)
        for descriptor in unwanted:
            os.close(descriptor)
        _die_with(parent)
        pages, resident = _pages()
        _write(answer, f"{resident}\n".encode())
        _limit(request, pages)
        kind, words, value = _run(request, job)
        head = json.dumps({"kind": kind, "words": words[:MAX_WORDS]})
        _write(answer, head.encode() + b"\n" + value + b"\n")
        code = 0
    except BaseException:  # a process that is a copy of the zygote must end here whatever happens
        traceback.print_exc()
    finally:
        os._exit(code)


def parts(answer: bytes) -> tuple[float, dict[str, Any], bytes]:
    """(resident MiB at the start, head, JSON of the value) of what `become_job` wrote; no head unless it is whole."""
    first, _, rest = answer.partition(b"\n")
    line, _, value = rest.partition(b"\n")
    base = int(first) * resource.getpagesize() / _MIB if first.isdigit() else 0.0
    if not value.endswith(b"\n"):
        return base, {}, b""
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return base, {}, b""
    known = isinstance(head, dict) and head.get("kind") in ("ok", "error", "memory", "crash")
    return base, head if known and isinstance(head.get("words"), str) else {}, value


def _run(request: Mapping[str, Any], job: Job | None) -> tuple[str, str, bytes]:
    try:
        if job is None:
            raise ValueError(f"there is no job {request['job']}")
        value = job(request["payload"])
        return "ok", "", json.dumps(value, allow_nan=False).encode()
    except MemoryError as error:
        words = f"more than the {request['memory_mib']} MiB allowed: {str(error) or 'out of memory'}"
        return "memory", words, b"null"
    except GristmillError as error:
        return "error", str(error), b"null"
    except Exception as error:  # a job function calls libraries that raise anything
        return "error", f"{type(error).__name__}: {error}", b"null"
    except BaseException as error:  # a panic of a Rust library, an exit: the engine's process would go the same way
        return "crash", f"{type(error).__name__}: {error}", b"null"
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _die_with(parent: int) -> None:
    """The kernel kills this process when the zygote dies, however that dies. Linux only."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(70)  # it died before the kernel was told


def _pages() -> tuple[int, int]:
    """(address space, resident) of this process in pages; zeros where the system does not tell."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0, 0
    size, resident = status.read_text().split()[:2]
    return int(size), int(resident)


def _limit(request: Mapping[str, Any], pages: int) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    if pages:
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + int(request["memory_mib"]) * _MIB)
        # If the machine itself runs short, this process goes first, not the zygote.
        with contextlib.suppress(OSError):  # some containers forbid it
            Path("/proc/self/oom_score_adj").write_text("1000")
    if request["cpu_seconds"] is not None:
        _lower(resource.RLIMIT_CPU, int(request["cpu_seconds"]), spare=1)


def _lower(which: int, value: int, spare: int = 0) -> None:
    """Set the soft limit, and the hard one `spare` above it, unless what stands is lower."""
    _, hard = resource.getrlimit(which)
    ceiling = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
    resource.setrlimit(which, (min(value, ceiling), ceiling))


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
