"""Ray nodes of our own on this machine, beside other Rays: own ports, own directory, own token."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from bench.chaos.herd import Herd, kill

START_SECONDS = 90
ATTEMPTS = 3
OBJECT_STORE = 100_000_000


class Nodes:
    """A cluster made by `ray start`, a raylet per node. Without a head, commands start a Ray of their own in its
    directory. Its processes end with the herd's `end`."""

    def __init__(self, herd: Herd, *, dashboard: bool = False) -> None:
        """`dashboard` is for a head that takes jobs."""
        # Short, because paths of Unix sockets are below it.
        self.folder = Path(tempfile.mkdtemp(prefix="gm-"))
        self._herd = herd
        self._port = 0
        self._dashboard = _free_port() if dashboard else 0
        self.raylets: list[psutil.Process] = []
        self._token = secrets.token_hex(32)

    @property
    def job_server(self) -> str:
        """Where the head takes jobs."""
        return f"http://127.0.0.1:{self._dashboard}"

    @property
    def environment(self) -> dict[str, str]:
        """Of a command that uses this Ray."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        mine |= {"RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0"}
        if self._port:
            mine |= {"RAY_ADDRESS": f"127.0.0.1:{self._port}", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self._token}
        return mine

    def start(self, *, cpus: int = 2, gpus: int = 0) -> psutil.Process:
        """Start the head if there is none, else a node that joins it; returns its raylet. Tried again, since a node
        that is not up in 30 s, as on a busy machine, gives up."""
        said = ""
        for _ in range(ATTEMPTS):
            before = set(self._mine())
            said = self._start(cpus, gpus)
            new = [one for one in self._mine() if one not in before]
            raylets = [one for one in new if one in self._herd.named("raylet")]
            if not said and len(raylets) == 1:
                self.raylets.append(raylets[0])
                return raylets[0]
            for one in new:
                kill(one)
            self._port = self._port if self.raylets else 0
        raise RuntimeError(f"ray start failed:\n{said[-3000:]}")

    def _start(self, cpus: int, gpus: int) -> str:
        """One try; returns what it said if it failed."""
        own = ["--min-worker-port", "0", "--max-worker-port", "0", "--temp-dir", str(self.folder)]
        size = ["--num-cpus", str(cpus), "--num-gpus", str(gpus), "--object-store-memory", str(OBJECT_STORE)]
        if self.raylets:
            where = ["--address", f"127.0.0.1:{self._port}"]
        else:
            self._port = _free_port()
            where = ["--head", "--port", str(self._port), "--include-dashboard", str(bool(self._dashboard)).lower()]
            if self._dashboard:
                where += ["--dashboard-port", str(self._dashboard), "--dashboard-agent-listen-port", str(_free_port())]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *where, *own, *size, "--disable-usage-stats"]
        environment = {name: value for name, value in self.environment.items() if name != "RAY_ADDRESS"}
        log = self.folder / "start.log"
        with log.open("wb") as file:
            # Not through a pipe: the daemons would hold it open.
            done = subprocess.run(
                command, env=environment, stdout=file, stderr=subprocess.STDOUT, timeout=START_SECONDS, check=False
            )
        return (log.read_text(errors="replace") or "no word") if done.returncode else ""

    def _mine(self) -> list[psutil.Process]:
        """Daemons of this cluster."""
        return [one for one in self._herd.all() if str(self.folder) in " ".join(_command(one))]

    def is_up(self) -> bool:
        """Whether the head and what it coordinates live."""
        alive = self._mine()
        servers = [one for one in self._herd.named("gcs_server") if one in alive]
        return bool(servers) and bool(self.raylets) and self.raylets[0] in alive

    def drop(self) -> None:
        """Forget a cluster that lost its head; the next `start` makes a new one. What is left of the old one is
        killed, as a cluster manager does with the machines of a dead cluster."""
        for one in self._mine():
            kill(one)
        self._port = 0
        self.raylets = []

    def remove(self) -> None:
        """Remove the directory, after the end of all processes."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
