"""Whether a process that held a run is surely no more."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.runtime import holder
from pipeline.runtime.holder import Holder


def test_a_holder_that_died_and_was_not_collected_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{process.pid}/stat").read_text().split()[21]
    here = Holder.here()
    holder = Holder("a", here.host, here.machine, process.pid, started, "")
    assert not holder.gone()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert holder.gone()
    process.communicate()
    assert not here.gone()


def test_a_number_that_another_process_has_now_says_that_the_holder_is_gone() -> None:
    here = Holder.here()
    assert dataclasses.replace(here, pid_started="1").gone()
    assert not dataclasses.replace(here, pid_started="1", machine="another").gone()


def test_a_process_that_the_kernel_hides_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `hidepid`, of another user's process."""
    here = Holder.here()
    for name in ("self/ns", "sys/kernel/random"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_bytes(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    (tmp_path / "self/ns/pid").symlink_to(os.readlink("/proc/self/ns/pid"))
    monkeypatch.setattr(holder, "PROC", tmp_path)
    assert not here.gone()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert dataclasses.replace(here, pid=process.pid).gone()
