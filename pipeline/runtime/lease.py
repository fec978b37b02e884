"""Lease: one driver at a run.

Exactly once does not rest on it (commit records are created exclusively); it keeps a second driver from doing the
work twice. `_lease/<epoch>.json` says who holds the run; the holder changes `_lease/<epoch>.beat` every few seconds.
Whoever comes later takes the next epoch, by exclusive creation, once the holder has released its own, is known to be
dead, or has not changed the beat for as long as the newcomer watched. Nobody's wall clock is asked.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any

from pipeline.errors import OutputError, RunBusyError
from pipeline.runtime.holder import Holder
from pipeline.runtime.store import Store, json_object, publish, writing

LEASE = "_lease"
TTL_SECONDS = 30.0  # a holder that was not heard for so long is taken for dead
BEAT_SECONDS = 5.0
LOOK_SECONDS = 3.0  # between two looks at another's beat


class Lease:
    """The right to drive a run, held from `acquire` to `release`."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self.epoch = epoch
        self._count = 0

    @classmethod
    def acquire(
        cls,
        store: Store,
        *,
        ttl: float = TTL_SECONDS,
        sleep: Callable[[float], object] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Lease:
        """Become the run's driver. Takes a few seconds if another holds the run, up to `ttl` if that one fell silent.

        Raises:
            RunBusyError: another is alive, or was quicker.
            OutcomeUnknownError: the storage does not say whether we hold it now.
            OutputError: the storage cannot be read or written, or does not create exclusively.
        """
        with writing(f"{store.where}/{LEASE}"):
            epoch = _highest(store)
            if epoch:
                _until_free(store, epoch, ttl, sleep, monotonic)
            lease = cls(store, epoch + 1)
            if not publish(store, f"{_name(epoch + 1)}.json", asdict(Holder.here())):
                raise _busy(store, epoch + 1)
            try:
                lease._check_store()
                lease.beat()
            except BaseException:
                lease.release()
                raise
        return lease

    def beat(self) -> bool:
        """Say that we are alive; False: another has taken the run over, or it was removed: what we do is lost work.

        Raises:
            OSError: the storage does not answer. We may still hold the run.
        """
        if _highest(self._store) != self.epoch:  # not just the next one, which may have been swept by now
            return False
        self._count += 1
        self._store.put(f"{_name(self.epoch)}.beat", str(self._count).encode())
        return True

    def taken(self) -> RunBusyError:
        """What to raise when `beat` said False."""
        return _busy(self._store, _highest(self._store))

    def release(self) -> None:
        """Let the next driver begin at once. If the storage fails now, that one has to wait."""
        with suppress(OSError):
            self._store.put(f"{_name(self.epoch)}.released", b"")

    def _check_store(self) -> None:
        """Some servers take `If-None-Match` and pass it over: there, everything would be published twice."""
        if self._store.create(f"{_name(self.epoch)}.json", b"{}"):
            raise OutputError(
                f"{self._store.where} does not create objects exclusively: a second write replaced the first. Nothing "
                "can be published exactly once there. Choose another `output`: a local or mounted disk, AWS S3, or a "
                "server that honours If-None-Match."
            )


class Beating:
    """Beats in a thread while its block runs. `lost` is set once another driver has taken the run over."""

    def __init__(self, lease: Lease, every: float = BEAT_SECONDS) -> None:
        self.lost = threading.Event()
        self._lease = lease
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join(self._every)  # a request that hangs is not waited for: the thread is a daemon

    def check(self) -> None:
        """Stop a driver that lost the run.

        Raises:
            RunBusyError: another has it.
        """
        if self.lost.is_set():
            with writing("the lease"):
                raise self._lease.taken()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            # Storage that fails for a while ends no run: whether it was taken over is seen when it answers again.
            with suppress(OSError):
                if not self._lease.beat():
                    self.lost.set()
                    return


@contextmanager
def held(store: Store) -> Iterator[Beating]:
    """Hold a run while the block runs; what `Lease.acquire` raises is raised before it begins."""
    lease = Lease.acquire(store)
    try:
        with Beating(lease) as beating:
            yield beating
    finally:
        lease.release()


def _until_free(
    store: Store, epoch: int, ttl: float, sleep: Callable[[float], object], monotonic: Callable[[], float]
) -> None:
    """Return when the holder of an epoch is gone.

    Only time in which we looked counts: a newcomer that was stopped itself (with its machine, say) has not watched.

    Raises:
        RunBusyError: it is alive, or another has taken over.
    """
    if _left(store, epoch):
        return
    first, watched, looked = _beat(store, epoch), 0.0, monotonic()
    pause = min(LOOK_SECONDS, ttl / 4)
    while watched < ttl:
        sleep(pause)
        watched += min(max(0.0, monotonic() - looked), 2 * pause)
        looked = monotonic()
        if _left(store, epoch):
            return
        if _beat(store, epoch) != first or _highest(store) != epoch:
            raise _busy(store, _highest(store))


def _left(store: Store, epoch: int) -> bool:
    holder = _holder(store, epoch)
    return store.size(f"{_name(epoch)}.released") is not None or (holder is not None and holder.gone())


def _beat(store: Store, epoch: int) -> bytes | None:
    return store.get(f"{_name(epoch)}.beat")


def _busy(store: Store, epoch: int) -> RunBusyError:
    holder = _holder(store, epoch)
    who = f"process {holder.pid} on {holder.host}, since {holder.started}" if holder else f"see {LEASE}/ there"
    return RunBusyError(
        f"another driver is at {store.where}: {who}. Wait until it has finished, or stop it and run the same command "
        "again to go on from what it committed."
    )


def _holder(store: Store, epoch: int) -> Holder | None:
    found: dict[str, Any] = json_object(store.get(f"{_name(epoch)}.json")) or {}
    try:
        return Holder(**found) if isinstance(found.get("pid"), int) else None
    except TypeError:
        return None


def _highest(store: Store) -> int:
    """The newest epoch, 0 if there was none."""
    found = (re.fullmatch(rf"{LEASE}/(\d+)\.json", entry.key) for entry in store.list(f"{LEASE}/"))
    return max((int(match[1]) for match in found if match), default=0)


def _name(epoch: int) -> str:
    return f"{LEASE}/{epoch:06d}"
