"""Forced tokens: a request that has to say what another one said, so that vLLM tells how likely each token was.

Only vLLM itself imports this, in the process of its core (0.32, model runner V1: its sampler takes log probabilities
before any logits processor acts). Unlike the log probabilities of a prompt, these come from the same kernels that wrote
the answer, read the prefix cache, and never hold more than one row of the vocabulary for a request.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from pipeline.engines.vllm_scores import KEY


class Forced(AdapterLogitsProcessor):  # type: ignore[misc]  # vLLM is not typed here
    """Does nothing to requests that do not ask for it."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: Any) -> Any:
        ids = (params.extra_args or {}).get(KEY)
        if not ids:
            return None

        def force(written: list[int], logits: Any) -> Any:
            if len(written) < len(ids):
                logits.fill_(float("-inf"))
                logits[ids[len(written)]] = 0.0
            return logits

        return force
