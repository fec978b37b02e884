"""Publication happens once, also if the storage does not say whether it happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.errors import OutcomeUnknownError, OutputError
from pipeline.runtime.store.keys import Store

KEPT = "What was committed is kept: mend it, or choose another `output`, and run the same command again."  # for people


def publish(store: Store, key: str, value: Mapping[str, Any]) -> bool:
    """Create a JSON object exclusively: True if what stands there is ours, False if somebody else was first.

    `value` must have a member `attempt` that no other call ever has (a UUID): by it the object is recognised when
    `create` raised, which may have been before or after it took effect.

    Raises:
        OutcomeUnknownError: `create` raised, and the object is not there or cannot be read now. It may still appear,
            so nothing that it names may be deleted. Running again finds out.
    """
    ours = value["attempt"]
    try:
        return store.create(key, json_bytes(value))
    except OSError as error:
        failure = error
    try:
        found = json_object(store.get(key))
    except OSError:
        found = None
    if found is None or "attempt" not in found:
        raise OutcomeUnknownError(
            f"{store.where}/{key} could not be published: {reason(failure)}. It cannot be read there now, yet the "
            f"write may still take effect, so nothing was deleted. {KEPT}"
        ) from failure
    return bool(found["attempt"] == ours)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON as run files have it: ASCII, indented by one."""
    return json.dumps(value, ensure_ascii=True, indent=1).encode("ascii")


def json_object(data: bytes | None) -> dict[str, Any] | None:
    """The JSON object in the bytes, or None if they hold anything else or there are none."""
    if data is None:
        return None
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turns what the storage and Arrow raise into an OutputError that names what could not be written."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot write {what}: {reason(error)}. {KEPT}") from error


def reason(error: BaseException) -> str:
    """What went wrong, without the number and the file name of an OSError."""
    return str((isinstance(error, OSError) and error.strerror) or error) or type(error).__name__
