"""Where each output token's text ends in a completion's text.

Byte-level tokens may split a character: a token that finishes none adds nothing, the one that finishes it adds it all.
The stream of the library `tokenizers` is asked token by token, as vLLM's detokenizer does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PRIMING_TOKENS = 16
"""Of the prompt, to begin the stream with: SentencePiece decoders drop the blank before a first token. The whole prompt
gives the same and takes longer, the more so the longer it is."""
_UNFINISHED = "\ufffd"


def token_ends(tokenizer: Any, ids: Sequence[int], text: str, prompt: Sequence[int] = ()) -> tuple[int, ...]:
    """The code point of `text` at which each token's text ends; that of the last one is the end of `text`.

    `tokenizer` is a fast one of Hugging Face; `prompt` are the tokens before. A last token that ended the answer need
    not show in the text. Empty if the tokens do not make this text: no alignment is better than a wrong one.
    """
    for counted in (ids, ids[:-1]):
        if not counted:
            continue
        made, ends, waiting = _streamed(tokenizer._tokenizer, counted, prompt[-_PRIMING_TOKENS:])
        # A whole decoding shows a character that was cut at the end as U+FFFD; the stream still waits for its rest.
        if text.startswith(made) and text[len(made) :].rstrip(_UNFINISHED) in ("", waiting):
            ends += [ends[-1]] * (len(ids) - len(counted))
            return (*(min(end, len(text)) for end in ends[:-1]), len(text))
    return (0,) if len(ids) == 1 and not text else ()


def _streamed(fast: Any, ids: Sequence[int], before: Sequence[int]) -> tuple[str, list[int], str]:
    """The text that a stream makes of tokens, where each one's ends in it, and what else is finished at the end."""
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(ids=list(before), skip_special_tokens=True)
    pieces: list[str] = []
    ends: list[int] = []
    length, pending, parts = 0, list[int](), list[str]()
    for id_ in ids:
        pending.append(id_)
        try:
            piece = stream.step(fast, id_)
        except Exception:  # of no class of its own; vLLM begins the stream anew where the library lost the thread
            stream = DecodeStream(ids=[], skip_special_tokens=True)
            piece = stream.step(fast, id_)
        if piece is None:  # it waits for a character's last byte; what stands before that character is finished
            parts.append(fast.decode(pending, skip_special_tokens=True).rstrip(_UNFINISHED))
            continue
        ends += [length + (len(part) if piece.startswith(part) else 0) for part in parts]
        length += len(piece)
        pieces.append(piece)
        ends.append(length)
        pending, parts = [], []
    ends += [length + len(part) for part in parts]
    return "".join(pieces), ends, parts[-1] if parts else ""
