"""Where output goes: one small interface over local disks and S3 (`keys.py` says what it promises)."""

from __future__ import annotations

import os
from urllib.parse import unquote

from pipeline.errors import OutputError
from pipeline.runtime.store.keys import Entry, Store
from pipeline.runtime.store.local import LocalStore
from pipeline.runtime.store.publish import json_bytes, json_object, publish, reason, writing
from pipeline.runtime.store.s3 import S3Store

__all__ = ["Entry", "LocalStore", "S3Store", "Store", "json_bytes", "json_object", "open_store", "publish"]
__all__ += ["reason", "writing"]


def open_store(output: str) -> Store:
    """The store that a job's `output` names: a path, or `s3://bucket/prefix` with blanks written as %20.

    Nothing is read or written yet. A relative path is one of this process's working directory, also in other processes
    that the store is sent to.

    Raises:
        OutputError: another kind of URI, or one that holds more than bucket and prefix.
    """
    scheme, found, rest = output.partition("://")
    if not found:
        return LocalStore(os.path.abspath(output), output)
    if scheme.lower() != "s3":
        raise OutputError(
            f"output is a {scheme}:// URI. Give a path of a local or mounted disk, or s3://bucket/prefix."
        )
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or ":" in bucket or {"?", "#"} & set(rest):  # such a URI may hold keys: it is not repeated
        raise OutputError(
            "output is an s3:// URI with more than a bucket and a prefix. Keys, region and endpoint come from the "
            "environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, or AWS's own files."
        )
    try:
        return S3Store(bucket, unquote(prefix.strip("/"), errors="strict"))
    except ValueError as error:
        raise OutputError(f"output {output} names no bucket, or a prefix with empty names, '.' or '..'.") from error
