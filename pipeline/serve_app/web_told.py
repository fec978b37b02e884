"""What OpenAPI says of the routes beyond their shapes: every code that is answered, and the bodies that are read."""

from __future__ import annotations

from typing import Any

from pipeline.serve_app.service import Service
from pipeline.serve_app.web_models import ErrorShape, ExtractRequest, OutcomeShape

Responses = dict[int | str, dict[str, Any]]

_WORDS = {
    400: "Not JSON, or headers that contradict the body",
    401: "No token, or a wrong one",
    404: "No schema of this name",
    408: "The body did not arrive in time",
    413: "The body, or a text in it, is too large",
    415: "Not `application/json`, or compressed",
    422: "The document is rejected (an outcome), or the request or its schema is (an error)",
    429: "As much is at work as may: ask again",
    500: "A fault of this program",
    503: "The engine failed: ask again",
    504: "The document's time ran out while the engine was answering",
}
_EITHER = frozenset({422, 500, 503, 504})
_RETRY = {"Retry-After": {"description": "Seconds, at least 1", "schema": {"type": "integer", "minimum": 1}}}


def responses(*codes: int, either: bool = False) -> Responses:
    """What OpenAPI says of codes; `either`: some may hold an outcome as well as an error."""
    found: Responses = {}
    for code in sorted(codes):
        model: Any = (OutcomeShape | ErrorShape) if either and code in _EITHER else ErrorShape
        found[code] = {"model": model, "description": _WORDS[code]}
        if code in (429, 503):
            found[code]["headers"] = _RETRY
    return found


def _bodied(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def _batch_schema(most: int) -> dict[str, Any]:
    items = ExtractRequest.model_json_schema()
    documents = {"type": "array", "minItems": 1, "maxItems": most, "items": items}
    return {
        "type": "object",
        "properties": {"documents": documents},
        "required": ["documents"],
        "additionalProperties": False,
    }


def bodies(service: Service) -> tuple[dict[str, Any], dict[str, Any]]:
    """The bodies of one document and of several, with an example that can be sent as it is."""
    served = [plan.name for plan in service.plans.values() if not plan.refused]
    example = {"id": "7", "text": "Ann & Co, total 19.90", "schema": min(served, default={"type": "object"})}
    one = _bodied(ExtractRequest.model_json_schema(), example)
    return one, _bodied(_batch_schema(service.online.batch_documents), {"documents": [example, example]})
