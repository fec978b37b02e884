"""Job functions that misbehave, loaded into the sandbox's zygote as a job module, and what its tests share."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from pipeline.compile.sandbox import Job, Limits, Sandbox

SHORT = Limits(seconds=1.0, memory_mib=256)
LONG = Limits(seconds=30.0, memory_mib=1024)


def _allocate(tools: Any, payload: Any) -> Any:
    kept = [bytearray(1 << 20) for _ in range(payload["mib"])]
    return len(kept)


def _library_allocate(tools: Any, payload: Any) -> Any:
    """A C++ program's last words when memory runs out, and its end."""
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def _segfault(tools: Any, payload: Any) -> Any:
    os.write(2, b"last words\n")
    return ctypes.string_at(0)


def _deep(tools: Any, payload: Any) -> Any:
    value: Any = 0
    for _ in range(payload):
        value = [value]
    return value


def _recurse(tools: Any, payload: Any) -> Any:
    return _recurse(tools, payload)


def _stack_overflow(tools: Any, payload: Any) -> Any:
    """Recursion in C code: a comparison function that sorts, and so on, without Python's own guard."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    sys.setrecursionlimit(10**8)

    def down(_: Any) -> None:
        entry(None)

    entry = kind(down)
    entry(None)


def _burn(tools: Any, payload: Any) -> Any:
    while True:
        pass


def _children(tools: Any, payload: Any) -> Any:
    """Starts a process, tells its id in a file, and hangs."""
    with subprocess.Popen(["sleep", "60"]) as child:
        Path(payload).write_text(f"{os.getpid()} {child.pid}")
        time.sleep(60)


def _sleep(tools: Any, payload: Any) -> Any:
    """How long, and when it began and ended, by the clock that all processes share."""
    began = time.monotonic()
    time.sleep(payload)
    return [payload, began, time.monotonic()]


def _hang(tools: Any, payload: Any) -> Any:
    Path(payload).write_text(str(os.getpid()))
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    time.sleep(60)


def _kill_zygote(tools: Any, payload: Any) -> Any:
    """The first time only, if a marker file is named."""
    if payload and Path(payload).exists():
        return "second time"
    if payload:
        Path(payload).touch()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    return None


def _print(tools: Any, payload: Any) -> Any:
    print("on stdout " + "x" * payload)
    os.write(2, b"the end\n")
    return payload


def _thread(tools: Any, payload: Any) -> Any:
    worker = threading.Thread(target=time.sleep, args=(0.01,))
    worker.start()
    worker.join()
    return [threading.active_count(), len(os.listdir("/proc/self/fd"))]


JOBS: dict[str, Callable[[Any, Any], Any]] = {
    "self_test_echo": lambda tools, payload: payload,
    "self_test_sleep": _sleep,
    "self_test_allocate": _allocate,
    "self_test_library_allocate": _library_allocate,
    "self_test_abort": lambda tools, payload: os.abort(),
    "self_test_segfault": _segfault,
    "self_test_exit": lambda tools, payload: os._exit(payload),
    "self_test_sys_exit": lambda tools, payload: sys.exit(payload),
    "self_test_kill": lambda tools, payload: os.kill(os.getpid(), payload),
    "self_test_raise": lambda tools, payload: 1 / 0,
    "self_test_huge": lambda tools, payload: "x" * payload,
    "self_test_not_json": lambda tools, payload: object(),
    "self_test_nan": lambda tools, payload: float("nan"),
    "self_test_surrogate": lambda tools, payload: "\ud800",
    "self_test_deep": _deep,
    "self_test_recurse": _recurse,
    "self_test_stack_overflow": _stack_overflow,
    "self_test_burn": _burn,
    "self_test_children": _children,
    "self_test_hang": _hang,
    "self_test_kill_zygote": _kill_zygote,
    "self_test_print": _print,
    "self_test_thread": _thread,
}


def bare(workers: int = 1) -> Sandbox:
    """Without tokenizer and libraries: starts in a fraction of a second."""
    return Sandbox(None, workers, ("sandbox_jobs",))


def job(name: str, payload: Any = None, limits: Limits = SHORT) -> Job:
    return Job(f"self_test_{name}", payload, limits)


def until(true: Callable[[], Any], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return False


def gone(*pids: int) -> bool:
    return not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def written(file: Path, count: int = 1) -> list[int]:
    """The process ids that a job wrote."""
    assert until(lambda: file.exists() and len(file.read_text().split()) == count)
    return [int(word) for word in file.read_text().split()]
