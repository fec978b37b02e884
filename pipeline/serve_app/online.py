"""What an operator sets of the online endpoint, with defaults and bounds; and the token, which comes from outside."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping

from pydantic import Field

from pipeline.errors import JobFileError
from pipeline.jobplacement import Strict

MIN_TOKEN = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What can stand behind `Bearer` (RFC 6750, 2.1)."""


class InlineConfig(Strict):
    """Schemas that come with a request. `max_bytes` as compact JSON; `kept`: how many plans stay, and how many
    refusals, apart from the registered ones; `seconds` for all that the sandbox does about one; `at_once` are tried at
    a time, `waiting` more may wait, and others are told to come again."""

    max_bytes: int = Field(64 << 10, ge=64, le=1 << 20)
    kept: int = Field(64, ge=1, le=10_000)
    seconds: float = Field(10.0, gt=0, le=600)
    at_once: int = Field(1, ge=1, le=64)
    waiting: int = Field(4, ge=0, le=1000)


class OnlineConfig(Strict):
    """The endpoint of one process.

    `token_env` names the environment variable that holds the bearer token; `open` serves without one. A request's body
    has at most `max_body_bytes` and arrives within `body_seconds`; a document's text has at most `max_text` code
    points, since all others wait while a long one is tokenised and searched for values. `in_flight` documents are at
    work at a time, and others are told to come again; twice as many requests may be open. A batch holds at most
    `batch_documents`. `deadline_seconds` is for one document, and at most `retry.deadline_seconds`. `inline: null`
    refuses schemas that come with a request.
    """

    token_env: str = Field("GRISTMILL_TOKEN", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    open: bool = False
    max_body_bytes: int = Field(1 << 20, ge=1024, le=64 << 20)
    body_seconds: float = Field(10.0, gt=0, le=600)
    max_text: int = Field(200_000, ge=1)
    in_flight: int = Field(64, ge=1, le=10_000)
    batch_documents: int = Field(64, ge=1, le=1000)
    deadline_seconds: float = Field(60.0, gt=0)
    inline: InlineConfig | None = InlineConfig()


class Token:
    """The token that callers must send, or that none is asked for. It cannot be read back, nor is it ever shown."""

    __slots__ = ("_digest",)

    def __init__(self, secret: str | None) -> None:
        """None: everybody may call."""
        self._digest = None if secret is None else hashlib.sha256(secret.encode()).digest()

    @property
    def asked(self) -> bool:
        """Whether callers have to send one."""
        return self._digest is not None

    def allows(self, authorization: bytes | None) -> bool:
        """Whether the value of an `Authorization` header is right. Takes as long for a wrong token as for another."""
        if self._digest is None:
            return True
        scheme, _, given = (authorization or b"").strip().partition(b" ")
        same = hmac.compare_digest(hashlib.sha256(given.strip(b" ")).digest(), self._digest)
        return same and scheme.lower() == b"bearer"

    def __repr__(self) -> str:
        return "Token(…)" if self.asked else "Token(None)"


def token_of(config: OnlineConfig, environment: Mapping[str, str] = os.environ) -> Token:
    """The token of this process.

    Raises:
        JobFileError: there is none although `open` is not set, or it is too short or holds what no header can.
    """
    secret = environment.get(config.token_env, "").strip()
    if config.open:
        if secret:
            raise JobFileError(
                f"online: `open: true` serves everybody, but {config.token_env} holds a token. Remove one of the two."
            )
        return Token(None)
    if not secret:
        raise JobFileError(
            f"online: the environment variable {config.token_env} must hold the bearer token of the endpoint, for "
            'example of `python -c "import secrets; print(secrets.token_urlsafe())"`. `open: true` serves without one.'
        )
    if len(secret) < MIN_TOKEN or not _TOKEN.fullmatch(secret):
        raise JobFileError(
            f"online: the token in {config.token_env} must have at least {MIN_TOKEN} characters, letters, digits and "
            "`._~+/-` only."
        )
    return Token(secret)
