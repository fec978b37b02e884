"""Whether vLLM lets a schema pass before it compiles anything: its own functions, run without model and engine.

`AsyncLLM.generate` calls `SamplingParams.verify`, whose last part looks at the constraint; that part is called here.
It is private to vLLM (0.32), and may crash, hang or recurse like any compiler: run it in the sandbox.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

from pipeline.engines.grammar import Backend

_MODULES = (
    "vllm.sampling_params",
    "vllm.exceptions",
    # Imported by the private function at its first call, whatever the back end.
    "vllm.v1.structured_output.backend_guidance",
    "vllm.v1.structured_output.backend_lm_format_enforcer",
    "vllm.v1.structured_output.backend_outlines",
    "vllm.v1.structured_output.backend_xgrammar",
    "vllm.v1.structured_output.utils",
)


@dataclass(frozen=True, slots=True)
class Admission:
    """vLLM's answer to a schema. `unknown`: vLLM cannot be asked on this machine, which is not a pass."""

    verdict: Literal["admitted", "refused", "unknown"]
    words: str = ""
    """vLLM's own words of a refusal; why nobody knows, if unknown; else empty."""


@cache
def load() -> str:
    """Import vLLM's validators (seconds, once). Empty if they can be used, else why not."""
    try:
        modules = [importlib.import_module(name) for name in _MODULES]
        _ = modules[0].SamplingParams._validate_structured_outputs
    except Exception as error:  # a broken installation raises what it likes; it must not pass for "admitted"
        return f"vLLM's validation cannot be used here: {type(error).__name__}: {error}"
    return ""


def admission(schema_json: str, backend: Backend, tokenizer: Any) -> Admission:
    """What a vLLM engine with this back end and tokenizer would say to a request with this schema.

    `schema_json` is the text that goes into `StructuredOutputsParams(json=…)`; `tokenizer` is Hugging Face's.

    Raises:
        MemoryError: memory ran out (a limit of the process), which says nothing about the schema.
    """
    problem = load()
    if problem:
        return Admission("unknown", problem)
    from vllm.exceptions import VLLMClientError
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    model, engine = SimpleNamespace(is_diffusion=False), SimpleNamespace(backend=backend)
    try:
        params = SamplingParams(structured_outputs=StructuredOutputsParams(json=schema_json))
        params._validate_structured_outputs(model, engine, tokenizer)
    except MemoryError:
        raise
    except Exception as error:
        if "std::bad_alloc" in str(error):
            raise MemoryError(str(error)) from error
        # Anything but a client error is a fault in its walk over odd schemas; `generate` raises it just the same.
        kind = "" if isinstance(error, VLLMClientError) else f"{type(error).__name__}: "
        return Admission("refused", kind + str(error))
    return Admission("admitted")
