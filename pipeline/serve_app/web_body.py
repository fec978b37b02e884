"""A request's body: JSON read strictly, and the documents that it asks about. What is wrong is said, never guessed."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from pipeline.records import JsonValue
from pipeline.serve_app.answers import Fault, FaultError
from pipeline.serve_app.service import Asked

MAX_ID = 512
MAX_NAME = 200
_SHOWN = 80


def json_of(body: bytes) -> JsonValue:
    """The JSON value of a body.

    Raises:
        FaultError: 400: not UTF-8, not JSON, a repeated key, NaN, a number that no double holds, or too deep.
    """
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite
        )
    except RecursionError as error:
        raise _bad(400, "bad_json", "the body nests too deeply to be read") from error
    except UnicodeDecodeError as error:
        raise _bad(400, "bad_json", f"the body is not UTF-8: byte {error.start} is wrong") from error
    except ValueError as error:
        raise _bad(400, "bad_json", f"the body is not JSON: {error}") from error


def asked_of(value: JsonValue, where: str = "the body") -> Asked:
    """The document that an object asks about.

    Raises:
        FaultError: 422: a member is missing, unknown or of another type.
    """
    _check_object(value, where, needed=("text", "schema"), known=("id", "text", "schema"))
    text, schema, key = value["text"], value["schema"], value.get("id")
    if not isinstance(text, str):
        raise _wrong(f"`text` of {where} must be a string")
    if not isinstance(schema, str | dict) or (isinstance(schema, str) and len(schema) > MAX_NAME):
        raise _wrong(f"`schema` of {where} must be the name of a schema, or a JSON Schema as an object")
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= MAX_ID):
        raise _wrong(f"`id` of {where} must be a string of 1 to {MAX_ID} characters, or be left out")
    return Asked(text, schema, key)


def batch_of(value: JsonValue, most: int) -> list[Asked]:
    """The documents that a batch asks about.

    Raises:
        FaultError: 422: as `asked_of`; or there are none, or more than `most`.
    """
    _check_object(value, "the body", needed=("documents",), known=("documents",))
    documents = value["documents"]
    if not isinstance(documents, list) or not 0 < len(documents) <= most:
        raise _wrong(f"`documents` must be a list of 1 to {most} objects")
    return [asked_of(one, f"documents[{index}]") for index, one in enumerate(documents)]


def _check_object(value: JsonValue, where: str, *, needed: tuple[str, ...], known: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        raise _wrong(f"{where} must be a JSON object")
    if missing := [name for name in needed if name not in value]:
        raise _wrong(f"{where} lacks `{missing[0]}`")
    if strangers := [name for name in value if name not in known]:
        raise _wrong(f"{where} has an unknown member {strangers[0][:_SHOWN]!a}; known are {', '.join(known)}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated[:_SHOWN]!a} occurs more than once in one object")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:_SHOWN]} is beyond what a double holds")
    return number


def _wrong(message: str) -> FaultError:
    return _bad(422, "bad_request", message)


def _bad(http: int, code: str, message: str) -> FaultError:
    return FaultError(Fault(http, code, message))
