"""Follow: an answer's text through the grammar that it was decoded under, to the point where it stopped or broke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.grammar import Backend, Grammar, Matcher
from pipeline.engines.models import resolve, vocabulary_size
from pipeline.engines.vocabulary import Vocabulary
from pipeline.schema.probe.spelling import Speller
from pipeline.schema.probe.verdict import is_allowed

MAX_TOKENS = 16_384
"""Of an answer that are followed."""
MAX_SHOWN = 20
_STRUCTURE = '"}],:{['


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where an answer left its grammar. The first `accepted` of its `characters` code points are legal.

    `finished`: the legal part is a whole answer. `allowed` counts the tokens that may come next, and `next` has the
    texts of the most readable ones; `may_end`: the end of the answer is among them. `error` holds the library's words
    about a matcher that broke. `followed` is false where the answer was longer than is looked at.
    """

    accepted: int
    characters: int
    tokens: int
    finished: bool
    may_end: bool
    allowed: int
    next: tuple[str, ...]
    error: str = ""
    followed: bool = True


@lru_cache(maxsize=4)
def follower(model: str, backend: Backend, compact: bool) -> Follower:
    """The follower of a model's tokenizer and a back end, built once per process.

    Raises:
        EngineError: the model, or its tokenizer, is not there.
    """
    return Follower(model, backend, compact)


class Follower:
    """The matchers of one model's tokenizer. Building one takes a second or two and no model is run."""

    def __init__(self, model: str, backend: Backend, compact: bool) -> None:
        """Raises EngineError if the model, or its tokenizer, is not there."""
        path = resolve(model)
        self._chat = ChatTokenizer(path)
        vocabulary = Vocabulary(self._chat.tokenizer, vocabulary_size(path))
        self._grammar = Grammar(vocabulary, backend, compact, vocabulary.size)
        self._texts: list[bytes] = list(vocabulary.xgrammar.decoded_vocab)
        self._end_ids = frozenset(int(id_) for id_ in vocabulary.xgrammar.stop_token_ids)
        self._speller = Speller(self._texts)
        self._bytes = {text: id_ for id_, text in reversed(list(enumerate(self._texts))) if len(text) == 1}

    def follow(self, transport: str, text: str, token_ids: Sequence[int] = ()) -> Stopped:
        """Feed an answer to the grammar of a transport schema, by its own tokens if they are known.

        A token that is refused as a whole is fed byte by byte, so that the place is exact to the character.

        Raises:
            SchemaError: the library refuses the schema.
        """
        matcher = self._grammar.matcher(transport)
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids = [id_ for id_ in token_ids if id_ not in self._end_ids] or self._chat.text_ids(clean)
        taken = list(self._taken(matcher, ids[:MAX_TOKENS]))
        legal = b"".join(taken).decode("utf-8", "ignore")
        allowed = [int(id_) for id_ in matcher.allowed()]
        texts = [self._texts[id_] for id_ in allowed if id_ < len(self._texts) and id_ not in self._end_ids]
        return Stopped(
            accepted=min(len(legal), len(text)),
            characters=len(text),
            tokens=len(taken),
            finished=matcher.finished(),
            may_end=not self._end_ids.isdisjoint(allowed),
            allowed=len(allowed),
            next=tuple(map(_shown, islice(sorted(set(texts), key=_unreadable), MAX_SHOWN))),
            error=matcher.error(),
            followed=len(ids) <= MAX_TOKENS,
        )

    def begins(self, transport: str, text: str) -> bool:
        """Whether an answer under a transport schema can begin with a text, in whichever tokens.

        The tokens of an answer under another schema say nothing here: where only one text is possible, llguidance
        allows only its own way to cut it.

        Raises:
            SchemaError: the library refuses the schema.
        """
        matcher, rest = self._grammar.matcher(transport), text.encode("utf-8", "replace")
        while rest:
            mask = matcher.mask()
            token = next((one for one in self._speller.starts(rest) if is_allowed(mask, one)), None)
            if token is None:
                return any(self._texts[int(id_)].startswith(rest) for id_ in matcher.allowed())
            if not matcher.accept(token):
                return False
            rest = rest[len(self._texts[token]) :]
        return True

    def _taken(self, matcher: Matcher, ids: Sequence[int]) -> Iterator[bytes]:
        """Advance the matcher as far as it goes; the bytes of each step."""
        for id_ in ids:
            if _take(matcher, id_):
                yield self._texts[id_]
                continue
            for byte in self._texts[id_]:
                one = self._bytes.get(bytes((byte,)))
                if one is None or not _take(matcher, one):
                    return
                yield self._texts[one]


def _take(matcher: Matcher, id_: int) -> bool:
    """Accept a token if it is legal. The mask is asked first: llguidance breaks on a token that is not."""
    return is_allowed(matcher.mask(), id_) and matcher.accept(id_)


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _unreadable(text: bytes) -> tuple[int, int, bytes]:
    """Sorts what says most at a glance first: structure, then short printable ASCII, other scripts, halves of
    characters and controls."""
    shown = text.decode("utf-8", "replace")
    if len(shown) == 1 and shown in _STRUCTURE:
        return 0, _STRUCTURE.index(shown), text
    if "\ufffd" in shown or not shown.isprintable():
        return 4, len(text), text
    if shown.strip() != shown or not shown:
        return 3, len(text), text
    return 1 if shown.isascii() else 2, len(text), text
