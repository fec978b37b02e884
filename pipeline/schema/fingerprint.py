"""Digests: what makes two things the same thing. All are the first 16 hex digits of SHA-256 over canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

DIGEST_LENGTH = 16
_MODULUS = 1 << 128


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks. Lone surrogates stay escaped, so that any text has a digest."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: Any) -> str:
    """Digest of any JSON value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:DIGEST_LENGTH]


def multiset_digest(items: Iterable[str]) -> str:
    """Digest of strings with their multiplicity, whatever their order: the sum of their hashes modulo 2^128.

    Sums of two parts add up to the sum of the whole (see `add_multisets`), so parts can be digested where they are.
    """
    total = 0
    for item in items:
        total += int.from_bytes(hashlib.sha256(item.encode("utf-8", "surrogatepass")).digest()[:16], "big")
    return f"{total % _MODULUS:032x}"


def add_multisets(digests: Iterable[str]) -> str:
    """The digest of the union (with multiplicity) of multisets that are known by their digests."""
    return f"{sum(int(item, 16) for item in digests) % _MODULUS:032x}"
