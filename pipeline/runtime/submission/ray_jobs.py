"""Ray's job server, by Ray's own client. Read from Ray 2.60: `ray/dashboard/modules/job/sdk.py`, `dashboard_sdk.py`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

from pipeline.errors import NotReachedError, SubmissionError
from pipeline.runtime.submission.package import quiet_ray
from pipeline.runtime.submission.server import Request, Submitted

ADDRESS = "RAY_API_SERVER_ADDRESS"
HEADERS = "RAY_JOB_HEADERS"
HTTP_SECONDS = 120.0
"""Ray's client waits for ever. Long enough for a working directory to be put into the cluster's store."""

MAX_MESSAGE = 600
_ANSWER = re.compile(r"Request failed with status code (\d+): (.*)", re.DOTALL)
_TOKENS = (
    "Set RAY_AUTH_MODE=token, and have the cluster's token in RAY_AUTH_TOKEN, in the file that RAY_AUTH_TOKEN_PATH "
    "names, or in ~/.ray/auth_token."
)


def address_of(given: str | None) -> str | None:
    """Where the job server is: what was given, or what Ray's variables name; None leaves it to Ray, which looks for a
    cluster of this machine. Unlike in Ray, what is given wins over the variables, and no scheme means HTTP."""
    if given is None:
        return os.environ.get(ADDRESS) or os.environ.get("RAY_ADDRESS") or None
    return given.rstrip("/") if "://" in given else f"http://{given.rstrip('/')}"


class RayJobs:
    """A `JobServer` by Ray's client, which is asked for its version first."""

    def __init__(self, address: str | None = None, *, seconds: float = HTTP_SECONDS) -> None:
        quiet_ray()
        self._address = address_of(address) or "the cluster of this machine"
        with self._asking():
            self._client = _client(address_of(address), seconds)
            self._address = str(self._client.get_address())

    @property
    def address(self) -> str:
        return self._address

    def submit(self, request: Request) -> None:
        environment: dict[str, Any] = {"working_dir": request.working_dir, "env_vars": dict(request.env)}
        if request.excludes:
            environment["excludes"] = list(request.excludes)
        with self._asking(request.env):
            self._client.submit_job(
                entrypoint=request.entrypoint,
                submission_id=request.id,
                runtime_env=environment,
                metadata=dict(request.metadata),
            )

    def find(self, job_id: str) -> Submitted | None:
        try:
            with self._asking():
                return _submitted(self._client.get_job_info(job_id))
        except _UnknownError:
            return None

    def all(self) -> list[Submitted]:
        with self._asking():
            return [_submitted(one) for one in self._client.list_jobs() if one.submission_id]

    def stop(self, job_id: str) -> None:
        with self._asking():
            self._client.stop_job(job_id)

    def log(self, job_id: str) -> str:
        with self._asking():
            return str(self._client.get_job_logs(job_id))

    async def tail(self, job_id: str) -> AsyncGenerator[str, None]:
        with self._asking():
            async with aclosing(self._client.tail_job_logs(job_id)) as texts:
                async for text in texts:
                    yield text

    @contextmanager
    def _asking(self, secrets: Mapping[str, str] | None = None) -> Iterator[None]:
        """Turns what Ray's client raises into our errors, without values of `secrets`."""
        import aiohttp
        import requests
        from ray.exceptions import AuthenticationError

        try:
            yield
        except AuthenticationError as error:
            raise _unauthorised(self._address, str(error)) from None
        except aiohttp.WSServerHandshakeError as error:
            if error.status in (401, 403):
                raise _unauthorised(self._address, f"HTTP {error.status}") from None
            raise NotReachedError(f"the job server at {self._address} answered HTTP {error.status}.") from None
        except (OSError, TimeoutError, aiohttp.ClientError, requests.RequestException) as error:
            raise NotReachedError(
                f"no job server answers at {self._address}: {_cut(str(error) or type(error).__name__, secrets)}\n"
                "Give --address http://HOST:8265, the address of Ray's dashboard, or of what forwards to it."
            ) from None
        except (RuntimeError, ValueError, TypeError) as error:
            raise _answered(self._address, str(error), secrets) from None


class _UnknownError(SubmissionError):
    """The server knows no such job."""


def _client(address: str | None, seconds: float) -> Any:
    """Ray's client, whose requests end."""
    from ray.job_submission import JobSubmissionClient

    class Bounded(JobSubmissionClient):  # type: ignore[misc]  # Ray's class has no types
        def _do_request(self, *words: Any, **values: Any) -> Any:
            return super()._do_request(*words, **{"timeout": seconds, **values})

    before = os.environ.get(ADDRESS)
    try:
        if address is not None:
            os.environ[ADDRESS] = address  # it wins over the argument
        return Bounded(address, headers=_headers())
    finally:
        os.environ.pop(ADDRESS, None)
        os.environ |= {} if before is None else {ADDRESS: before}


def _headers() -> dict[str, str] | None:
    """Further headers for a proxy before the cluster, as `ray job` takes them."""
    if not (text := os.environ.get(HEADERS)):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SubmissionError(f'{HEADERS} must hold a JSON object of headers, such as {{"X-Team": "a"}}.')
    return {str(name): str(value) for name, value in found.items()}


def _submitted(details: Any) -> Submitted:
    return Submitted(
        id=str(details.submission_id or details.job_id),
        status=str(details.status),
        exit_code=details.driver_exit_code,
        message=str(details.message or ""),
        started=details.start_time,
        ended=details.end_time,
        metadata=dict(details.metadata or {}),
    )


def _unauthorised(address: str, told: str) -> SubmissionError:
    if "Authentication failed" in told or "403" in told:
        return SubmissionError(f"the job server at {address} refused the token (HTTP 403). {_TOKENS}")
    if "Authentication required" in told or "401" in told:
        return SubmissionError(f"the job server at {address} asks for a token (HTTP 401). {_TOKENS}")
    return SubmissionError(f"RAY_AUTH_MODE asks for a token, and Ray found none. {_TOKENS}")


def _answered(address: str, told: str, secrets: Mapping[str, str] | None) -> SubmissionError:
    found = _ANSWER.match(told)
    status, words = (int(found[1]), found[2]) if found else (0, told)
    if status == 404:
        return _UnknownError(f"the job server at {address} knows no such job.")
    text = f"the job server at {address} answered{f' HTTP {status}' if status else ''}: {_cut(words, secrets)}"
    return NotReachedError(text) if status >= 500 else SubmissionError(text)


def _cut(text: str, secrets: Mapping[str, str] | None) -> str:
    """The end of a text, where a traceback says what happened, without secret values."""
    for value in sorted(filter(None, (secrets or {}).values()), key=len, reverse=True):
        text = text.replace(value, "***")
    return text if len(text) <= MAX_MESSAGE else f"…{text[-MAX_MESSAGE:]}"
