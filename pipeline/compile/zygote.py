"""The process that the sandbox forks from: it loads tokenizer, grammar libraries and vLLM's validators once.

Started by `sandbox.py` as `python -m pipeline.compile.zygote`. It compiles no grammar itself: thread pools do not
survive a fork, and a crash here would cost the loading again. What a job may do is a fixed table of functions:
`JOBS` here and those of the modules named by `--jobs`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.compile import admission
from pipeline.compile.forkserver import ForkServer
from pipeline.engines import draw, models
from pipeline.engines.grammar import Backend, Grammar
from pipeline.engines.vocabulary import Vocabulary
from pipeline.errors import EngineError, SchemaError
from pipeline.schema.probe.spelling import Speller


@dataclass(frozen=True, slots=True)
class Tools:
    """What a job function gets beside its payload. Nothing in it has started a thread yet."""

    tokenizer: Any
    """The fast Hugging Face tokenizer; None in a sandbox without a model."""
    vocab_size: int
    vocabulary: Vocabulary | None
    tokens: draw.Vocabulary | None
    """The tokens by what is in them, for random answers."""
    speller: Speller | None

    def grammar(self, backend: Backend, compact: bool) -> Grammar:
        """A new Grammar of this tokenizer.

        Raises:
            EngineError: the sandbox was started without a model.
        """
        if self.vocabulary is None:
            raise EngineError("this sandbox has no tokenizer. Start it with a model.")
        return Grammar(self.vocabulary, backend, compact, self.vocab_size)

    def admission(self, schema_json: str, backend: Backend) -> admission.Admission:
        """Whether vLLM would let the schema pass, before any grammar is compiled."""
        return admission.admission(schema_json, backend, self.tokenizer)


Job = Callable[[Tools, Any], Any]
"""A job function: tools and the payload (JSON) in, JSON out. It runs alone in a forked process."""


def compile_schema(tools: Tools, payload: Any) -> Any:
    """Compile one schema: payload `schema_json`, `backend`, `compact`.

    Answers `compile_seconds` (until a matcher can be made; with guidance that includes its first mask),
    `grammar_bytes` (None where the library does not say) and `error`: the library's refusal, that no answer can
    begin (a reference that only leads to itself, for one: xgrammar compiles it without a word), or "".
    """
    grammar = tools.grammar(payload["backend"], payload["compact"])
    started, error, seconds = time.monotonic(), "", 0.0
    try:
        matcher = grammar.matcher(payload["schema_json"])
        seconds = time.monotonic() - started
        if not matcher.mask().any() and not matcher.finished():
            error = (
                f"{grammar.backend} {grammar.version} compiles the schema, but no answer can begin: no token is legal"
            )
    except SchemaError as refusal:
        seconds, error = time.monotonic() - started, str(refusal)
    return {"compile_seconds": seconds, "grammar_bytes": grammar.size(payload["schema_json"]), "error": error}


JOBS: dict[str, Job] = {"compile": compile_schema}
"""Name to function. A module for `--jobs` has a table of the same name and kind."""


def prepare(model: str | None) -> Tools:
    """Load all that jobs share (seconds).

    Raises:
        EngineError: the model's tokenizer or configuration cannot be loaded.
    """
    if model is None:
        return Tools(None, 0, None, None, None)
    tokenizer, size = models.load_tokenizer(model), models.vocabulary_size(model)
    vocabulary = Vocabulary(tokenizer, size)
    # Built here so that no job pays for it; both are plain data, without threads.
    _ = vocabulary.xgrammar, vocabulary.guidance
    admission.load()
    tokens = draw.Vocabulary(tokenizer, size, frozenset())
    return Tools(tokenizer, size, vocabulary, tokens, Speller(tokens.texts))


def table(modules: Sequence[str]) -> dict[str, Job]:
    """The jobs of this module and of the named ones.

    Raises:
        EngineError: two modules give the same name to different jobs, or one cannot be imported.
    """
    jobs = dict(JOBS)
    for name in modules:
        try:
            extra: dict[str, Job] = importlib.import_module(name).JOBS
        except (ImportError, AttributeError) as error:
            raise EngineError(f"no job module {name}: {error}. It must be importable and have a table JOBS.") from error
        clash = sorted(job for job in extra if jobs.get(job, extra[job]) is not extra[job])
        if clash:
            raise EngineError(f"job module {name} redefines {', '.join(clash)}. Rename them there.")
        jobs |= extra
    return jobs


def main() -> int:
    """Serve jobs on what were stdin and stdout until the parent closes its end or dies."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--jobs", action="append", default=[])
    options = parser.parse_args()
    # Libraries print what they like: the protocol moves to descriptors of its own, stdout becomes stderr.
    inbox, outbox = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    server = ForkServer(inbox, outbox)
    try:
        jobs, tools = table(options.jobs), prepare(options.model)
    except Exception as error:  # whatever a library raises while it loads must reach the caller in words
        words = str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
        server.failed(words)
        return 1
    gc.collect()
    gc.freeze()  # so that a collection in a job does not copy every page of what is loaded here
    server.run({name: partial(job, tools) for name, job in jobs.items()})
    return 0


if __name__ == "__main__":
    # Job modules import this one by its name: run that copy, not a second one called __main__.
    from pipeline.compile import zygote

    code = zygote.main()
    sys.stderr.flush()
    os._exit(code)  # nothing here needs tearing down, and tearing torch down takes time
