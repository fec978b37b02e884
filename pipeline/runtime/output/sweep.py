"""Sweep: what a finished run needs no more. Only called when every unit is committed, so that whatever no commit record
names was made by an attempt that lost, or by one that is still at it and will lose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pipeline.runtime.output.journal import JOURNAL
from pipeline.runtime.store import Entry, Store
from pipeline.runtime.store.keys import checked_key

_EPOCH = re.compile(r"_lease/(\d+)\.")


def data_files(store: Store) -> dict[str, int]:
    """The sizes of all files below `status=*/schema=*/` by key: one listing.

    Raises:
        OSError: the store cannot be listed.
    """
    return {entry.key: entry.size for entry in store.list("status=") if entry.key.count("/") >= 2 and _is_key(entry)}


def sweep_index(store: Store, named: Collection[str]) -> None:
    """Remove the files of an index that are not `named` by the manifest: only once there is one, since until then
    another driver's may be the ones that it will name.

    Raises:
        OSError: something cannot be listed or removed.
    """
    for entry in list(store.list("_since/")):
        if entry.key not in named:
            store.delete(entry.key)


def _is_key(entry: Entry) -> bool:
    """A stranger's file may have any name, and is left alone."""
    try:
        return bool(checked_key(entry.key))
    except ValueError:
        return False


def sweep(store: Store, there: Iterable[str], named: Collection[str]) -> None:
    """Remove files that are `there` and not `named`, what was saved of units that are written since, leases that
    were taken over, and what interrupted writes left.

    Raises:
        OSError: something cannot be listed or removed.
    """
    for key in there:
        if key not in named:
            store.delete(key)
    for entry in list(store.list(f"{JOURNAL}/")):
        store.delete(entry.key)
    sweep_leases(store)
    store.sweep_temporary()


def sweep_leases(store: Store) -> None:
    """Remove leases that were taken over.

    Raises:
        OSError: something cannot be listed or removed.
    """
    leases = {entry.key: int(found[1]) for entry in store.list("_lease/") if (found := _EPOCH.match(entry.key))}
    for key, epoch in leases.items():
        if epoch < max(leases.values()):
            store.delete(key)
