"""The two real grammar matchers, xgrammar and llguidance, behind one small interface.

They are driven as vLLM 0.32 drives them (same white-space options, same vocabulary size, one fresh matcher
per request), so that what is legal here is legal there. vLLM refuses some schemas before a matcher sees them;
that verdict is not made here.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any, Literal, Protocol

from pipeline.engines.vocabulary import Vocabulary
from pipeline.errors import SchemaError
from pipeline.schema.lately import Lately

Backend = Literal["xgrammar", "guidance"]

_PACKAGES: dict[Backend, str] = {"xgrammar": "xgrammar", "guidance": "llguidance"}
_LOG_PREFIX = re.compile(r"^\[[\d:]+\] \S+:\d+: ")
# The last but one: no thread can be started, which a limit on the address space causes first of all.
_NO_MEMORY = re.compile(
    r"std::bad_alloc|MemoryError|memory allocation of \d+ bytes failed|Resource temporarily unavailable|Cannot allocate"
)


def backend_of(name: str) -> Backend:
    """The back end that an engine config's `backend` means. `auto` is settled for each schema before engines are built;
    an engine for which nobody settled it takes xgrammar."""
    return "guidance" if name == "guidance" else "xgrammar"


class Matcher(Protocol):
    """The state of one answer under one schema."""

    def mask(self) -> Any:
        """The legal next tokens as packed bits: an int32 array, bit i % 32 of word i // 32 for token i."""
        ...

    def allowed(self) -> Any:
        """The legal next tokens as an array of ids; slower than `mask`."""
        ...

    def accept(self, token_id: int) -> bool:
        """Advance by one token; False if it is illegal, and then the answer cannot go on."""
        ...

    def finished(self) -> bool:
        """Whether the text so far is a whole answer."""
        ...

    def error(self) -> str:
        """The library's words about a matcher that broke, else empty. A broken one allows only the end."""
        ...


class Grammar:
    """Makes matchers for one tokenizer. Compiled xgrammar grammars and refusals are kept per schema text."""

    def __init__(self, tokenizer: Any, backend: Backend, compact: bool, vocab_size: int) -> None:
        """`vocab_size` is the model's (rows of its output layer); `compact` forbids blanks around tokens.

        `tokenizer` is Hugging Face's, or a Vocabulary (of the same size), which is then shared and not built again.
        """
        self.backend = backend
        self.version = version(_PACKAGES[backend])
        vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary(tokenizer, vocab_size)
        library = _Xgrammar if backend == "xgrammar" else _Guidance
        self._source: _Xgrammar | _Guidance = library(vocabulary, compact)
        self._compiled: Lately[str, Any] = Lately()
        self._refused: Lately[str, str] = Lately()
        self._pristine: Lately[str, Matcher] = Lately()

    def knows(self, schema_json: str) -> bool:
        """Whether `matcher` will answer at once, without compiling."""
        return schema_json in self._compiled or schema_json in self._refused

    def size(self, schema_json: str) -> int | None:
        """Bytes that the compiled grammar of a schema takes; None if the library does not say or it is not compiled."""
        compiled = self._compiled.find(schema_json)
        return None if compiled is None else self._source.size(compiled)

    def matcher(self, schema_json: str) -> Matcher:
        """A fresh matcher for one answer. The first one of a schema compiles it, which may take seconds.

        Raises:
            SchemaError: the library refuses the schema; the message holds its words.
            MemoryError: memory ran out (a limit of the process), which says nothing about the schema.
        """
        if (refusal := self._refused.find(schema_json)) is not None:
            raise SchemaError(refusal)
        try:
            compiled = self._compiled.get(schema_json, lambda: self._source.compile(schema_json))
            return self._source.matcher(compiled)
        # The bindings raise any of these for the same mistakes, by library and by depth.
        except (RuntimeError, ValueError, TypeError) as error:
            if _NO_MEMORY.search(str(error)):
                raise MemoryError(_words(str(error))) from error
            words = f"{self.backend} {self.version} refuses the schema: {_words(str(error))}"
            raise SchemaError(self._refused.keep(schema_json, words)) from error

    def quick(self, schema_json: str) -> Matcher:
        """A matcher as `matcher` gives, for many short trials. llguidance's are copies of one and share what its lexer
        has learned, so the times of their masks say nothing about a request's.

        Raises:
            SchemaError, MemoryError: as `matcher`.
        """
        pristine = self._pristine.get(schema_json, lambda: self.matcher(schema_json))
        return pristine.copy() if isinstance(pristine, _GuidanceMatcher) else self.matcher(schema_json)


class _Xgrammar:
    def __init__(self, vocabulary: Vocabulary, compact: bool) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        self._compact = compact
        self._vocab_size = vocabulary.size
        self._compiler = xgrammar.GrammarCompiler(vocabulary.xgrammar, max_threads=8, cache_enabled=True)

    def compile(self, schema_json: str) -> Any:
        separators = (",", ":") if self._compact else None
        return self._compiler.compile_json_schema(schema_json, any_whitespace=not self._compact, separators=separators)

    def size(self, compiled: Any) -> int | None:
        return int(compiled.memory_size_bytes)

    def matcher(self, compiled: Any) -> Matcher:
        return _XgrammarMatcher(self._xgrammar.GrammarMatcher(compiled), self._vocab_size)


class _XgrammarMatcher:
    def __init__(self, matcher: Any, vocab_size: int) -> None:
        self._matcher = matcher
        self._bits = _empty_mask(vocab_size)

    def mask(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._bits, 0)
        return self._bits[0]

    def allowed(self) -> Any:
        return _ids(self.mask())

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def finished(self) -> bool:
        return bool(self._matcher.is_terminated() or self._matcher.is_completed())

    def error(self) -> str:
        return ""


class _Guidance:
    def __init__(self, vocabulary: Vocabulary, compact: bool) -> None:
        import llguidance

        self._matcher_class = llguidance.LLMatcher
        self._defaults: Any = {"whitespace_flexible": not compact}
        self._tokenizer = vocabulary.guidance

    def compile(self, schema_json: str) -> Any:
        return self._matcher_class.grammar_from_json_schema(schema_json, defaults=self._defaults)

    def size(self, compiled: Any) -> int | None:
        return None  # the library does not say

    def matcher(self, compiled: Any) -> Matcher:
        raw = self._matcher_class(self._tokenizer, compiled, log_level=0)
        matcher = _GuidanceMatcher(raw, self._tokenizer.vocab_size, self._tokenizer.eos_token)
        # A build that failed raises nothing: it masks all but the end token, at once or from the first mask.
        problem = matcher.error()
        if not problem:
            matcher.mask()
            problem = matcher.error()
        if problem:
            raise ValueError(problem)
        return matcher


class _GuidanceMatcher:
    def __init__(self, matcher: Any, vocab_size: int, eos: int) -> None:
        self._matcher = matcher
        self._eos = eos
        self._bits = _empty_mask(vocab_size)

    def copy(self) -> _GuidanceMatcher:
        """One in the same state."""
        bits = self._bits
        return _GuidanceMatcher(self._matcher.deep_copy(), bits.shape[1] * 32, self._eos)

    def mask(self) -> Any:
        bits = self._bits[0]
        self._matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
        return bits

    def allowed(self) -> Any:
        return _ids(self.mask())

    def accept(self, token_id: int) -> bool:
        # It stops by itself when nothing can follow, and then refuses even the end token.
        if self._matcher.is_stopped():
            return token_id == self._eos and not self._matcher.is_error()
        return bool(self._matcher.consume_token(token_id))

    def finished(self) -> bool:
        if self._matcher.is_error():
            return False
        return bool(self._matcher.is_accepting() or self._matcher.is_stopped())

    def error(self) -> str:
        return _words(self._matcher.get_error())


def _empty_mask(vocab_size: int) -> Any:
    import numpy

    return numpy.zeros((1, (vocab_size + 31) // 32), dtype=numpy.int32)


def _ids(bits: Any) -> Any:
    import numpy

    return numpy.flatnonzero(numpy.unpackbits(bits.view(numpy.uint8), bitorder="little"))


def _words(message: str) -> str:
    """The library's words without its clock, its source path and its back trace."""
    return _LOG_PREFIX.sub("", message).split("<backtrace>")[0].strip()
