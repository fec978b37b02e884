"""A chat completion as a server wrote it, as a Completion. Nothing in it is believed without a look: it is untrusted.

Fields are those of OpenAI's API and of vLLM 0.32: `reasoning` (others: `reasoning_content`), `token_ids`, tokens as
`token_id:N` with their bytes, finish reasons `abort`, `repetition` and `error`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from pipeline.engines.http_reply import Reply, cleaned
from pipeline.records import Completion, FinishReason, JsonValue, Prompt, Sampling

UNKNOWN_TOKEN = -1
"""Stands for the chosen token in `logprobs`, where the server does not tell its id."""

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "abort": "abort",
    "repetition": "repetition",
    "error": "error",
}
_TOKEN_ID = re.compile(r"token_id:(\d{1,9})")
_MOST = 2**31 - 1


def completion_of(reply: Reply, base: Completion, sampling: Sampling) -> Completion:
    """The completion of a reply with status 200; what makes no sense is `engine_failed`. `base` knows the request."""
    data = reply.data if isinstance(reply.data, dict) else {}
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        kind = cleaned(reply.headers.get("content-type", "no content type"))
        return failed(base, f"HTTP 200 without a chat completion ({kind}): {cleaned(reply.text)}")
    base = replace(_counted(base, data.get("usage")), reasoning=_reasoning(message))
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        return failed(base, f"the message's content is no text but {type(content).__name__}")
    base = replace(base, text=content or "")
    if isinstance(message.get("refusal"), str) and message["refusal"].strip():
        return replace(base, finish_reason="stop", constrained=False, refusal=message["refusal"])
    return _finished(base, choice, sampling)


def failed(base: Completion, detail: str, error: str = "engine_failed") -> Completion:
    """The completion of a request that brought no answer."""
    return replace(base, finish_reason="error", constrained=False, error=error, detail=detail)


def cut_prompt(completion: Completion, prompt: Prompt) -> str:
    """Why the server cannot have read the whole prompt, or empty. A word is a token or more, blanks between two words
    belong to one of them: half as many tokens as words are too few for any tokenizer. It sees no cut in scripts without
    blanks, nor a cut of less than half."""
    words = len(prompt.system.split()) + len(prompt.user.split())
    tokens = completion.prompt_tokens + completion.cached_tokens  # some count these apart
    if not 0 < tokens < words / 2:
        return ""
    return f"the server says that it read {tokens} tokens of a prompt of {words} words: it cuts prompts to its context"


def _finished(base: Completion, choice: Mapping[str, Any], sampling: Sampling) -> Completion:
    """What the finish reason makes of an answer."""
    said = choice.get("finish_reason")
    if said == "content_filter":
        words = "the provider's content filter stopped the answer (finish reason content_filter)"
        return replace(base, finish_reason="stop", constrained=False, refusal=words)
    reason = _REASONS.get(said) if isinstance(said, str) else None
    if reason is None:
        words = "called a tool, though none was offered" if said in ("tool_calls", "function_call") else "is unknown"
        return failed(base, f"the answer ended with finish reason {cleaned(repr(said))}, which {words}")
    if reason == "error":
        error = choice.get("error")
        words = cleaned(str(error.get("message", ""))) if isinstance(error, dict) else ""
        return failed(base, f"the server ended the request with an error{': ' if words else ''}{words}")
    base = replace(base, finish_reason=reason)
    if not sampling.token_ids and sampling.logprobs is None:
        return base
    return replace(base, **_tokens(choice, base.text, sampling))


def _counted(base: Completion, usage: JsonValue) -> Completion:
    """With token counts, 0 where the server does not tell."""
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    return replace(
        base,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else 0


def _reasoning(message: Mapping[str, Any]) -> str:
    for name in ("reasoning", "reasoning_content"):
        if isinstance(message.get(name), str):
            return str(message[name])
    return ""


def _tokens(choice: Mapping[str, Any], text: str, sampling: Sampling) -> dict[str, Any]:
    """Token ids, log probabilities and where tokens end, as far as the server tells them without contradiction."""
    found: dict[str, Any] = {}
    ids = choice.get("token_ids")
    ids = tuple(ids) if isinstance(ids, list) and all(map(_is_token, ids)) else ()
    if sampling.token_ids:
        found["token_ids"] = ids
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not all(_is_scored(entry) for entry in content):
        return found
    if sampling.logprobs is not None:
        found["logprobs"] = tuple(_row(entry) for entry in content)
    if not ids or len(ids) == len(content):
        found["token_ends"] = _ends([_bytes(entry) for entry in content], text)
    return found


def _is_token(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_scored(entry: JsonValue) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    score = entry.get("logprob")
    return isinstance(score, int | float) and not isinstance(score, bool) and not math.isnan(score)


def _row(entry: Mapping[str, Any]) -> dict[int, float]:
    """The chosen token first; others only where they have ids."""
    row = {_id_of(entry): float(entry["logprob"])}
    others = entry.get("top_logprobs")
    for other in others if isinstance(others, list) else ():
        if _is_scored(other) and _id_of(other) != UNKNOWN_TOKEN:
            row.setdefault(_id_of(other), float(other["logprob"]))
    return row


def _id_of(entry: Mapping[str, Any]) -> int:
    found = _TOKEN_ID.fullmatch(entry["token"])
    return int(found[1]) if found else UNKNOWN_TOKEN


def _bytes(entry: Mapping[str, Any]) -> bytes:
    """What a token stands for in the text. OpenAI: `bytes` may be null, and then `token` is the text."""
    given = entry.get("bytes")
    if isinstance(given, list) and all(isinstance(item, int) and 0 <= item <= 255 for item in given):
        return bytes(given)
    return b"" if _TOKEN_ID.fullmatch(entry["token"]) else entry["token"].encode("utf-8", "replace")


def _ends(pieces: Sequence[bytes], text: str) -> tuple[int, ...]:
    """The code point at which each token ends; empty if the tokens do not make the text, as in `alignment.token_ends`.

    A token that finishes no character ends where the last finished one does; a last token may not show in the text.
    """
    whole = text.encode("utf-8", "replace")
    for shown in (pieces, pieces[:-1]):
        if b"".join(shown) != whole:
            continue
        starts = [byte & 0xC0 != 0x80 for byte in whole]
        characters = [0, *accumulate(starts)]
        ends = list(accumulate(map(len, shown)))
        # Within a character, its first byte was counted: it is not finished yet.
        places = [characters[end] - (end < len(whole) and not starts[end]) for end in ends]
        return (*places, *([len(text)] * (len(pieces) - len(shown))))
    return ()
