"""What a search for instances gives: valid values, violations, and the sites that none was found for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.schema.shape.shapes import Site


@dataclass(frozen=True, slots=True)
class Valid:
    """A value that the body accepts, as canonical text, and the sites that judge a part of it.

    A neighbour comes from `base` (a position in the list) by a change of the part that `aim` judges, and nothing else.
    """

    text: str
    sites: frozenset[Site]
    base: int | None = None
    aim: Site | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """A value that the body refuses at `site` and nowhere else; `base` is the valid one that it was made from."""

    text: str
    value: Any
    site: Site
    base: int | None = None


@dataclass(frozen=True)
class Instances:
    """What was found for one body. `sites` are all its sites; `complete` is whether the time was enough."""

    body: Mapping[str, Any]
    sites: tuple[Site, ...]
    valid: tuple[Valid, ...]
    violations: Mapping[Site, tuple[Violation, ...]]
    complete: bool
    seconds: float

    @property
    def unfound(self) -> tuple[Site, ...]:
        """Sites without a violation."""
        return tuple(site for site in self.sites if site not in self.violations)
