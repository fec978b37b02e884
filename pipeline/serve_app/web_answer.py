"""Answers as bytes: JSON that any reader takes, whatever a model wrote."""

from __future__ import annotations

import json

from pipeline.records import JsonValue


def json_bytes(value: JsonValue) -> bytes:
    """Compact JSON in UTF-8. Half surrogate pairs, which UTF-8 does not have, make all of it ASCII with escapes."""
    try:
        return _text(value, ascii_only=False).encode("utf-8")
    except UnicodeEncodeError:
        return _text(value, ascii_only=True).encode("ascii")


def _text(value: JsonValue, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
