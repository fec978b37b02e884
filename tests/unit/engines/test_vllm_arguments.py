"""What the engine config says of vLLM, without vLLM."""

from __future__ import annotations

import pytest

from pipeline.engines.vllm import VllmEngine
from pipeline.errors import JobFileError
from pipeline.job import VllmConfig


@pytest.mark.parametrize("argument", ["tensor_parallel_size", "pipeline_parallel_size"])
def test_what_has_a_key_of_its_own_is_not_taken_from_engine_args(argument: str) -> None:
    config = VllmConfig(engine="vllm", engine_args={argument: 2})
    with pytest.raises(JobFileError, match=argument.removesuffix("_size") + ": 2"):
        VllmEngine(config)
