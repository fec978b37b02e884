"""Secrets: what a job may hold that no file of a run may: told by names, and by what a URI says beside its path.

A secret under an innocent name, or inside a text that is no URI, is not recognised: secrets belong in the environment.
"""

from __future__ import annotations

import re
from typing import Any

from pipeline.records import JsonValue

_NAME = re.compile(
    r"(^|[_-])(token|secrets?|passwords?|passwd|pwd|passphrases?|api[_-]?keys?"
    r"|(access|private|secret|session)[_-]?keys?([_-]?id)?|auth|authorization|credentials?|bearer)$"
)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OF_A_VOCABULARY = re.compile(r"(^|_)(eos|bos|pad|stop|sep|cls|unk|mask|image)_token$")


def is_secret(name: str) -> bool:
    """Whether a key of that name may hold a secret. `clientSecret` is told like `client_secret`; tokens that belong to
    a model, such as `eos_token`, are none."""
    spelled = _WORD.sub("_", name).lower()
    return bool(_NAME.search(spelled)) and not _OF_A_VOCABULARY.search(spelled)


def without_secrets(value: JsonValue, place: str = "") -> tuple[JsonValue, list[str]]:
    """A copy of a JSON value without members named like secrets, whose places (`place.name`) are listed, and without
    credentials in its URIs."""
    if isinstance(value, str):
        return without_credentials(value), []
    lost: list[str] = []
    if isinstance(value, list):
        items = []
        for number, item in enumerate(value):
            kept, names = without_secrets(item, f"{place}.{number}" if place else str(number))
            items.append(kept)
            lost += names
        return items, lost
    if not isinstance(value, dict):
        return value, []
    copy: dict[str, Any] = {}
    for name, item in value.items():
        here = f"{place}.{name}" if place else name
        if is_secret(name):
            lost.append(here)
        else:
            copy[name], names = without_secrets(item, here)
            lost += names
    return copy, lost


def without_credentials(path: str) -> str:
    """A path as it may be stored: of a URI, neither user and password nor the query, which may hold keys.

    Who reads it again, as `inspect` does, needs them in the environment.
    """
    if "://" not in path:
        return path
    scheme, rest = path.split("://", 1)
    place, slash, below = rest.partition("?")[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{below}"
