"""The limits of the two grammar back ends, found by trying the pinned versions (docs/transport.md)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pipeline.schema.shape.shapes import Site

Drop = Callable[[Site, str], None]
"""Called with a site that the written schema does not hold, and why."""

_REWRITTEN = frozenset({"not", "then", "dependentRequired", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The limits of one back end. `largest_bound` is for integers, `largest_count` for minItems and maxItems."""

    name: str
    bounded_numbers: bool
    largest_bound: int
    largest_count: int
    largest_enum: int
    names: bool
    absent_keys: bool
    counts_optional_keys: bool
    odd_names_apart: bool

    def tells_name_apart(self, name: str) -> bool:
        """Whether a declared key of this name is never taken for an undeclared one."""
        return self.odd_names_apart or (name.isascii() and name.isprintable() and not {'"', "\\"} & set(name))


XGRAMMAR = Dialect(
    "xgrammar",
    bounded_numbers=False,  # a bound caps numbers at six decimals
    largest_bound=10**18,
    largest_count=5000,
    largest_enum=10_000,  # 20,000 members take 12 s
    names=True,
    absent_keys=False,  # `false` as a property is a compile error
    counts_optional_keys=True,
    odd_names_apart=False,  # names that are not plain in JSON text, or beyond ASCII
)
GUIDANCE = Dialect(
    "guidance",
    bounded_numbers=True,
    largest_bound=2**53,  # computed in binary floating point; near 2^63 the process crashes
    largest_count=5000,
    largest_enum=100_000,
    names=False,
    absent_keys=True,
    counts_optional_keys=False,  # "only supported when all keys listed in properties are required"
    odd_names_apart=True,
)
DIALECTS = {"xgrammar": XGRAMMAR, "guidance": GUIDANCE}


def speaks(site: Site, keywords: Collection[str]) -> bool:
    """Whether a site is one of these keywords, or one that the reader rewrote and that may be behind them."""
    return site[1] in keywords or site[1] in _REWRITTEN
