"""What the `http` engine hears: replies, bounded and read once, and what a reply that is no answer means.

Error bodies as seen: OpenAI and vLLM 0.32 `{"error": {"message", "type", "param", "code"}}`, vLLM without a token
`{"error": "Unauthorized"}`, FastAPI `{"detail": …}`, llama.cpp as OpenAI, gateways text or HTML. Some gateways answer
200 and an `error` with the status as its code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.records import JsonValue

MAX_SHOWN = 300
"""Characters of a server's words that are kept."""

Meaning = Literal["prompt_too_long", "schema_refused", "refusal", "cut", "gone", "engine_failed"]
"""What a reply without an answer means: two codes of Completion.error, a provider's refusal, an answer for which the
tokens were too few, a server that will answer nothing, and anything else."""

_TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum (model|context|input|prompt|sequence) length"
    r"|too many (input |prompt )?tokens|maximum number of (input )?tokens"
    r"|(prompt|input|messages?|request|payload)[^.]{0,60} too (long|large)",
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    r"schema|grammar|response_?format|structured.?outputs?|json.?(object|mode)|guided|xgrammar|llguidance|outlines",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?(filter|policy|management)", re.IGNORECASE)
_NO_ROOM = re.compile(r"could not finish the message because max_tokens", re.IGNORECASE)
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes and types of errors, not words: servers repeat what stands in a document, and no document may end a job."""

_HINTS = {
    401: "the server does not accept the key: see `api_key_env`",
    402: "the server asks for payment",
    404: "the server knows no such address or model: see `base_url` and `model`",
    405: "the server takes no chat completions there: see `base_url`",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply. `data` is what its body is as JSON, None if it is none; `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    data: JsonValue
    text: str


def read_reply(status: int, headers: Mapping[str, str], body: bytes) -> Reply:
    """A reply from its parts; an error that came as 200 has the status that it should have had."""
    text = body.decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # a number of too many digits is a ValueError, too
        data = None
    if status == 200 and isinstance(data, dict) and data.get("error") and not data.get("choices"):
        code = data["error"].get("code") if isinstance(data["error"], dict) else None
        status = code if isinstance(code, int) and 400 <= code <= 599 else 502
    return Reply(status, headers, data, text)


def meaning_of(reply: Reply, *, constrained: bool) -> Meaning:
    """What a reply that is no answer means. A schema can only be refused if one was sent."""
    marks = _marks(reply)
    if 300 <= reply.status < 400 or reply.status in _HINTS or (reply.status in (403, 429) and _NO_MONEY & set(marks)):
        return "gone"
    if reply.status == 413:
        return "prompt_too_long"
    if reply.status in (400, 403, 422):
        words = " ".join([*marks, _message(reply)[:4000]])  # bounded, since patterns look for words in it
        if _NO_ROOM.search(words):
            return "cut"
        if _FILTERED.search(words):
            return "refusal"
        if _TOO_LONG.search(words):
            return "prompt_too_long"
        if constrained and _SCHEMA.search(words):
            return "schema_refused"
    return "engine_failed"


def told(reply: Reply) -> str:
    """What a reply says, for people: its status, our advice and the server's words, short and on one line."""
    if 300 <= reply.status < 400:
        where = cleaned(reply.headers.get("location", "nowhere"))
        return f"HTTP {reply.status}: the server redirects to {where}; redirects are not followed, see `base_url`"
    hint = _HINTS.get(reply.status, "")
    return ": ".join(part for part in (f"HTTP {reply.status}", hint, cleaned(_message(reply))) if part)


def cleaned(text: str) -> str:
    """A server's text as one short line without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * MAX_SHOWN]).split())
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def _message(reply: Reply) -> str:
    """The words of an error, wherever they stand."""
    data: Any = reply.data
    for name in ("error", "message", "detail"):
        if not isinstance(data, dict):
            break
        data = data.get(name, data)
    if isinstance(data, str):
        return data
    return reply.text if data is None else json.dumps(data, ensure_ascii=False)


def _marks(reply: Reply) -> list[str]:
    """The error's code, type and parameter, as far as it has them."""
    error = reply.data.get("error") if isinstance(reply.data, dict) else None
    found = [error.get(name) for name in ("code", "type", "param")] if isinstance(error, dict) else []
    return [str(mark)[:100] for mark in found if mark]
