"""The round trip of a schema through transport and a real matcher: what is lost, and what gets through unannounced."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from pipeline.engines.draw import Draw
from pipeline.engines.draw import Vocabulary as Tokens
from pipeline.engines.grammar import Grammar
from pipeline.engines.models import load_tokenizer, resolve, vocabulary_size
from pipeline.engines.vocabulary import Vocabulary
from pipeline.errors import SchemaError
from pipeline.schema.probe.draw import Drawer
from pipeline.schema.probe.minimal import TooLargeError
from pipeline.schema.probe.verdict import is_allowed
from pipeline.schema.probe.walks import Walk, walk
from pipeline.schema.shape.announced import unannounced
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER, Site
from pipeline.schema.shape.source import Source
from pipeline.schema.transport import Transport, written

BACKENDS = ("xgrammar", "guidance")
MAX_TOKEN = 64
"""Bytes of a token that is tried."""


@cache
def tokenizer() -> Any:
    """The embedded model's tokenizer."""
    return load_tokenizer(resolve("embedded"))


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(tokenizer(), vocabulary_size(resolve("embedded")))


@cache
def tokens() -> Tokens:
    """Its tokens as the sampler sees them."""
    return Tokens(tokenizer(), vocabulary().size, frozenset())


@cache
def grammar(backend: str) -> Grammar:
    return Grammar(vocabulary(), backend, True, vocabulary().size)  # type: ignore[arg-type]


@cache
def spelled() -> dict[bytes, int]:
    """The token of every text that is one."""
    return {text: token for token, text in enumerate(tokens().texts) if text and token not in tokens().end_ids}


def encode(text: str) -> list[int]:
    """The tokens of a text as a model writes it."""
    return list(tokenizer().encode(text, add_special_tokens=False, split_special_tokens=True))


def takes(transport: str, text: str, backend: str) -> bool:
    """Whether a real matcher lets a text be decoded to its end, by whatever tokens.

    Where only one text is possible, llguidance allows only its own way to cut it into tokens, which need not be the
    tokenizer's way to cut the whole: then any token goes that is allowed and goes on with the text, long ones first.
    """
    matcher = grammar(backend).matcher(transport)
    rest = text.encode()
    for token in encode(text):
        if not is_allowed(matcher.mask(), token) or not matcher.accept(token):
            break
        rest = rest[len(tokens().texts[token]) :]
    while rest:
        mask = matcher.mask()
        starts = (spelled().get(rest[:size], -1) for size in range(min(len(rest), MAX_TOKEN), 0, -1))
        chosen = next((token for token in starts if token >= 0 and is_allowed(mask, token)), None)
        if chosen is None or not matcher.accept(chosen):
            return False
        rest = rest[len(tokens().texts[chosen]) :]
    return matcher.finished() and not matcher.error()


@dataclass(frozen=True, slots=True)
class Fault:
    """`lost`: the body accepts it, the matcher does not; `leak`: the other way round, and nobody said so; others:
    `refused` (no matcher), `dead end` (of a random walk), `unsatisfiable` (yet here is a document)."""

    kind: str
    backend: str
    text: str
    sites: tuple[Site, ...] = ()


class Trip:
    """One body under both back ends."""

    def __init__(self, body: Any, backends: tuple[str, ...] = BACKENDS) -> None:
        self.body = body
        self.source = Source(body)
        self.shapes = read(body)
        self.transports: dict[str, Transport] = {backend: written(self.shapes, backend) for backend in backends}

    def faults(self, value: Any) -> Iterator[Fault]:
        """What is wrong with one value."""
        text = canonical_text(self.source, value)
        # What a decoder writes is read again: a whole float comes back as an integer.
        errors = list(islice(self.source.validator.iter_errors(json.loads(text)), 50))
        for backend, transport in self.transports.items():
            if not transport.satisfiable:
                if not errors:
                    yield Fault("unsatisfiable", backend, text)
                continue
            taken = takes(transport.text, text, backend)
            if not errors and not taken:
                yield Fault("lost", backend, text)
            elif errors and taken:
                sites = unannounced(self.body, errors, transport.left)
                if sites:
                    yield Fault("leak", backend, text, tuple(sites))

    def refusals(self) -> Iterator[Fault]:
        """Back ends that do not compile what they are given."""
        for backend, transport in self.transports.items():
            if transport.satisfiable:
                try:
                    grammar(backend).matcher(transport.text)
                except SchemaError as error:
                    yield Fault("refused", backend, error.message)

    def walk(self, backend: str, seed: int, most: int = 150) -> Walk:
        """One random answer."""
        matcher = grammar(backend).matcher(self.transports[backend].text)
        return walk(matcher, Draw(tokens(), seed).choose, tokens().end_ids, most)

    def walked(self, seed: int, most: int = 150) -> Iterator[Fault]:
        """What random answers show: dead ends, and violations that nobody announced."""
        for backend, transport in self.transports.items():
            if transport.satisfiable:
                made = self.walk(backend, seed, most)
                text = text_of(made)
                if made.end in ("dead_end", "error"):
                    yield Fault("dead end", backend, f"{text} {made.words}")
                elif made.end == "finished" and (value := parsed(text)) is not REFUSED:
                    errors = list(islice(self.source.validator.iter_errors(value), 50))
                    sites = unannounced(self.body, errors, transport.left)
                    if sites:
                        yield Fault("leak", backend, text, tuple(sites))

    def drawn(self, rng: random.Random, count: int) -> Iterator[Any]:
        """Values of the shapes."""
        if self.shapes.root == NEVER:
            return
        drawer = Drawer(self.shapes, rng)
        for _ in range(count):
            try:
                yield drawer.draw(spare=rng.choice([0, 30, 200])).value
            except (TooLargeError, RecursionError):
                return


def text_of(made: Walk) -> str:
    """The text of a walk's tokens."""
    return b"".join(tokens().texts[token] for token in made.tokens).decode("utf-8", "replace")


REFUSED = object()


def parsed(text: str) -> Any:
    """The value of a text; REFUSED for what is refused before it is validated: a key twice, NaN, half a surrogate."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    def finite(number: str) -> float:
        if math.isinf(float(number)):
            raise ValueError("too large")
        return float(number)

    def constant(name: str) -> float:
        raise ValueError(f"{name} is no number")

    try:
        value = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
        return value
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        return REFUSED
