"""Globs, for paths and URIs alike: pyarrow lists directories but matches no patterns."""

from __future__ import annotations

import os
import re

from pipeline.errors import InputError


def split_glob(path: str) -> tuple[str, str]:
    """The directory before the first wildcard, and the pattern below it (empty if there is no wildcard).

    In a URI `?` starts the query, which stays with the directory.
    """
    query = ""
    if "://" in path:
        path, mark, query = path.partition("?")
        query = mark + query
    else:
        path = os.path.abspath(path)
    wildcard = re.search(r"[*\[]" if "://" in path else r"[*?\[]", path)
    if wildcard is None:
        return path + query, ""
    directory, _, _ = path[: wildcard.start()].rpartition("/")
    return (directory or "/") + query, path[len(directory) + 1 :]


def glob_pattern(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stop at `/`, `**/` matches any number of directories, `[...]` and `[!...]` are classes."""
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = []
    for place, token in enumerate(re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]!]+\])", pattern)):
        if place % 2 == 0:
            parts.append(re.escape(token))
        elif token in known:
            parts.append(known[token])
        else:
            inner = re.sub(r"([\\^\[])", r"\\\1", token[1:-1].removeprefix("!"))
            parts.append(f"[^/{inner}]" if token.startswith("[!") else f"[{inner}]")
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise InputError(f"input.path holds a glob that cannot be used, {pattern}: {error}") from error
