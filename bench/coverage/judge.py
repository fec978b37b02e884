"""The validator's word on a handed instance, and why it differs from what the set says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from jsonschema.protocols import Validator

from pipeline.schema.shape.announced import site_of
from pipeline.schema.shape.canonical import canonical_text
from pipeline.schema.shape.source import Source
from pipeline.schema.validator import PatternTimeout, validator_of
from pipeline.schema.walk import rebuild

MAX_ERRORS = 20


class Judge:
    """A loaded body, with the pointers that closing changed."""

    def __init__(self, body: Mapping[str, Any], closed: Sequence[str]) -> None:
        self._body = body
        self._closed = frozenset(closed)
        self._source = Source(body)

    def judged(self, test: Mapping[str, Any]) -> dict[str, Any]:
        """`text` (canonical), `accepted`, `label`, and `reason` where the two differ; or `unjudged`, and why."""
        data = test["data"]
        row: dict[str, Any] = {"label": test["valid"], "about": test["about"]}
        try:
            if not _is_json(data):
                return row | {"unjudged": "holds a number that is not JSON"}
            accepted = self._source.validator.is_valid(data)
            row |= {"text": canonical_text(self._source, data), "accepted": accepted}
            if accepted != test["valid"]:
                row["reason"] = "accepted" if accepted else self._why_refused(data)
        except (RecursionError, PatternTimeout) as error:
            return row | {"unjudged": f"{type(error).__name__}: {error}"}
        return row

    def _why_refused(self, data: Any) -> str:
        if self._open.is_valid(data):
            return "undeclared keys (closing policy)"
        if self._plain.is_valid(data):
            return "format"
        if self._lenient.is_valid(data):
            return "undeclared keys and format"
        errors = islice(self._open.iter_errors(data), MAX_ERRORS)
        return "keyword " + ", ".join(sorted({site_of(self._body, error)[1] for error in errors}))

    @cached_property
    def _open(self) -> Validator:
        return validator_of(rebuild(self._body, self._opened))

    @cached_property
    def _plain(self) -> Validator:
        return validator_of(rebuild(self._body, _without_format))

    @cached_property
    def _lenient(self) -> Validator:
        opened = rebuild(self._body, self._opened)
        return validator_of(rebuild(opened, _without_format))

    def _opened(self, pointer: str, node: Any) -> Any:
        """A node as it was before it was closed; what it requires stays listed, which refuses nothing."""
        return _without(node, "additionalProperties") if pointer in self._closed else node


def _without_format(_pointer: str, node: Any) -> Any:
    return _without(node, "format")


def _without(node: Any, keyword: str) -> Any:
    return {key: value for key, value in node.items() if key != keyword} if isinstance(node, Mapping) else node


def _is_json(data: Any) -> bool:
    """Whether a value has a JSON text that can be written: no NaN, no infinity, no half of a surrogate pair."""
    try:
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True
