"""A store on S3, or on what speaks its protocol and honours `If-None-Match`.

Endpoint, region and keys come from the usual AWS_* environment or files, the same that `pyarrow.fs` reads for inputs.
An object appears whole or not at all, so there are no temporaries. A request is tried `ATTEMPTS` times with growing
pauses, and waits for `CONNECT_SECONDS` and `READ_SECONDS` at most: some minutes all together, then it is an OSError.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import Any
from urllib.parse import quote

from pipeline.runtime.store.keys import Entry, checked_key, checked_prefix

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 30, 5
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
CONNECTIONS = 32  # of a process at a time
# What people can do about an answer. The texts of a server are not repeated: they may hold what we sent.
ADVICE = {
    "AccessDenied": (errno.EACCES, "the keys in use may not do this (they need to list, get, put and delete)"),
    "InvalidAccessKeyId": (errno.EACCES, "the access key is not known there"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret key is wrong"),
    "ExpiredToken": (errno.EACCES, "the session token has expired"),
    "RequestTimeTooSkewed": (errno.EACCES, "this machine's clock is wrong"),
    "NoSuchBucket": (errno.ENOENT, "the bucket does not exist: create it, or choose another"),
    "NotImplemented": (errno.ENOTSUP, "it cannot do this; exclusive creation needs If-None-Match"),
    "403": (errno.EACCES, "the keys in use may not do this (they need to list, get, put and delete)"),
}
_making = Lock()


class S3Store:
    """Objects below a prefix of a bucket."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = checked_key(bucket)
        self._root = f"{checked_key(prefix)}/" if prefix else ""

    def __reduce__(self) -> tuple[type[S3Store], tuple[str, str]]:
        return S3Store, (self._bucket, self._root.rstrip("/"))

    def __repr__(self) -> str:
        return f"S3Store({self.where!r})"

    @property
    def where(self) -> str:
        return f"s3://{self._bucket}/{quote(self._root, safe='/=@:+,')}".rstrip("/")

    def at(self, prefix: str) -> S3Store:
        return S3Store(self._bucket, self._root + checked_key(prefix))

    def put(self, key: str, data: bytes) -> None:
        name = self._name(key)
        with _failures(f"writing {self.where}/{key}"):
            _client().put_object(Bucket=self._bucket, Key=name, Body=data)

    def create(self, key: str, data: bytes) -> bool:
        name = self._name(key)
        for left in reversed(range(ATTEMPTS)):
            try:
                with _failures(f"creating {self.where}/{key}"):
                    _client().put_object(Bucket=self._bucket, Key=name, Body=data, IfNoneMatch="*")
                return True
            except FileExistsError:
                # It may be our own: the answer to a first try was lost, and the second found what that had written.
                return self.get(key) == data
            except BlockingIOError:  # another conditional write of the key is under way: nobody has won yet
                if not left:
                    raise
                time.sleep(0.1 * (ATTEMPTS - left))
        raise AssertionError

    def get(self, key: str) -> bytes | None:
        name = self._name(key)
        for left in reversed(range(ATTEMPTS)):
            with suppress(_AbsentError), _failures(f"reading {self.where}/{key}"):
                answer = _client().get_object(Bucket=self._bucket, Key=name)
                try:
                    return bytes(answer["Body"].read())
                except Exception:  # it broke off, in one of several libraries' words; botocore does not try again
                    if not left:
                        raise
                    continue
            return None
        raise AssertionError

    def size(self, key: str) -> int | None:
        name = self._name(key)
        with suppress(_AbsentError), _failures(f"reading {self.where}/{key}"):
            return int(_client().head_object(Bucket=self._bucket, Key=name)["ContentLength"])
        return None

    def list(self, prefix: str = "") -> Iterator[Entry]:
        start = self._root + checked_prefix(prefix)
        with _failures(f"listing {self.where}/{prefix}"):
            for page in _client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start):
                for item in page.get("Contents", ()):
                    if not item["Key"].endswith("/"):  # a folder that some web console made
                        yield Entry(item["Key"][len(self._root) :], item["Size"])

    def folders(self, prefix: str) -> tuple[str, ...]:
        start, found = self._root + checked_prefix(prefix), set()
        with _failures(f"listing {self.where}/{prefix}"):
            pages = _client().get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=start, Delimiter="/"):
                found |= {item["Prefix"][len(self._root) :].rstrip("/") for item in page.get("CommonPrefixes", ())}
        return tuple(sorted(found))

    def delete(self, key: str) -> None:
        name = self._name(key)
        with suppress(_AbsentError), _failures(f"deleting {self.where}/{key}"):
            _client().delete_object(Bucket=self._bucket, Key=name)

    def sweep_temporary(self, prefix: str = "", older_than: float = 0) -> None:
        checked_prefix(prefix)

    def _name(self, key: str) -> str:
        return self._root + checked_key(key)


class _AbsentError(FileNotFoundError):
    """There is no such object."""


def _client() -> Any:
    """The client of this process and environment. Clients are thread-safe, making them is not."""
    endpoint = next(filter(None, map(os.environ.get, ENDPOINTS)), "")
    # boto3 knows only the latter.
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    with _making:
        return _make_client(os.getpid(), endpoint, region)


@lru_cache(maxsize=4)
def _make_client(process: int, endpoint: str, region: str | None) -> Any:
    """`process`: a fork must not share sockets. `endpoint`: boto3 reads it from the environment, and only here."""
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=CONNECTIONS,
    )
    return boto3.session.Session(region_name=region).client("s3", config=config)


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Turns what botocore raises into OSErrors that hold no keys.

    _AbsentError: there is no such object. FileExistsError: a condition did not hold. BlockingIOError: another
    conditional write is under way. TimeoutError: no answer, or one that breaks off.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, IncompleteReadError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ClientError as error:
        raise _answered(what, error.response) from None
    except (ConnectionError, HTTPClientError, IncompleteReadError, HTTPError) as error:
        raise TimeoutError(errno.ETIMEDOUT, f"{what}: {_endpoint()} did not answer ({type(error).__name__})") from None
    except (BotoCoreError, ValueError) as error:
        advice = "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" if "Credentials" in type(error).__name__ else ""
        raise OSError(errno.EIO, f"{what}: {type(error).__name__} in the settings or answer of S3{advice}") from None


def _answered(what: str, response: Any) -> OSError:
    code = re.sub(r"[^A-Za-z0-9.]", "", str(response.get("Error", {}).get("Code", "")))[:60]
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in ("NoSuchKey", "404"):
        return _AbsentError(errno.ENOENT, f"{what}: there is none")
    if code == "PreconditionFailed" or status == 412:
        return FileExistsError(errno.EEXIST, f"{what}: it exists")
    if code == "ConditionalRequestConflict":
        return BlockingIOError(errno.EAGAIN, f"{what}: another write of it is under way")
    number, advice = ADVICE.get(code, (errno.EIO, ""))
    return OSError(number, f"{what}: {_endpoint()} answered {status} {code}{': ' if advice else ''}{advice}")


def _endpoint() -> str:
    """The server's name, without the user and password that a URL may hold."""
    url = next(filter(None, map(os.environ.get, ENDPOINTS)), "")
    return url.rpartition("://")[2].partition("/")[0].rpartition("@")[2] or "S3"
