"""Where the subschemas of a schema are: the reachable ones with their place, what leads to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.schema.walk import IN_PLACE, children, target, unescape

_UNIONS = ("anyOf", "oneOf")
_ASIDE = frozenset({"not", "if", "then", "else", "dependentSchemas"})
_DEFINITIONS = ("$defs", "definitions")
Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """A reachable subschema: where it is, the keyword that holds it, and the site that this keyword belongs to.

    `aside`: it, or a schema around it, only adds to or tests what another schema describes.
    """

    pointer: str
    node: Any
    keyword: str
    parent: Site | None
    aside: bool = False

    @property
    def in_place(self) -> bool:
        """Whether it judges the same value as its parent."""
        return self.keyword in IN_PLACE

    def around(self) -> Iterator[Site]:
        """The site itself and the sites around it that judge the same value."""
        site: Site | None = self
        while site is not None:
            yield site
            site = site.parent if site.in_place else None

    @property
    def home(self) -> Site:
        """The outermost site that judges the same value: the property, item or definition."""
        return list(self.around())[-1]

    @property
    def name(self) -> str:
        """The property that the value belongs to; "" for items, definitions and the root."""
        home = self.home
        return unescape(home.pointer.rsplit("/", 1)[1]) if home.keyword == "properties" else ""

    def says(self, *keywords: str) -> bool:
        """Whether this schema or one around it, for the same value, has one of the keywords."""
        return any(keyword in site.node for site in self.around() for keyword in keywords)

    @property
    def text(self) -> str:
        """Title and description of the value, joined."""
        notes = [site.node.get(key) for site in self.around() for key in ("description", "title")]
        return " ".join(note for note in notes if isinstance(note, str))


def reach(root: Node) -> tuple[list[Site], list[str]]:
    """All sites that the root leads to, in schema order, and the pointers of definitions that it does not lead to."""
    sites: dict[str, Site] = {}
    everything = dict(_placed(root))
    pending = [""]
    while pending:
        pointer = pending.pop()
        if pointer in sites or pointer not in everything:
            continue
        sites[pointer] = site = everything[pointer]
        pending += reversed(steps_of(site))
    ordered = [site for pointer, site in everything.items() if pointer in sites]
    held = [s for s in everything.values() if s.keyword in _DEFINITIONS]
    used: set[str] = set()
    for reached in ordered:
        around: Site | None = reached
        while around is not None and around.pointer not in used:
            used.add(around.pointer)
            around = around.parent
    unused = [site.pointer for site in held if site.pointer not in used]
    return ordered, unused


def steps_of(site: Site) -> list[str]:
    """The pointers that a site leads to: its subschemas, definitions apart, and what its `$ref` names."""
    held = children(site.node)
    steps = [site.pointer + step for keyword, step, _ in held if keyword not in _DEFINITIONS]
    if isinstance(site.node, dict) and "$ref" in site.node:
        steps.append(named(site.node["$ref"]))
    return steps


def named(reference: Any) -> str:
    """The pointer that a reference names; one that no schema has where it leads nowhere (loading refuses that)."""
    try:
        return target(reference)
    except KeyError:
        return "#"  # no pointer begins so: it leads nowhere


def _aside(parent: Site, keyword: str) -> bool:
    """Parts of an `allOf` are aside themselves, what lies in them is not: it is described nowhere else, as a rule."""
    if keyword in _DEFINITIONS:
        return False
    inherited = parent.aside and not (parent.keyword == "allOf" and keyword not in IN_PLACE and not _far_aside(parent))
    return inherited or keyword in _ASIDE or keyword == "allOf" or (keyword in _UNIONS and "properties" in parent.node)


def _far_aside(site: Site) -> bool:
    return site.parent is not None and site.parent.aside


def _placed(root: Node) -> Iterator[tuple[str, Site]]:
    pending = [Site("", root, "", None)]
    while pending:
        site = pending.pop()
        yield site.pointer, site
        below = [
            Site(site.pointer + step, child, keyword, site, _aside(site, keyword))
            for keyword, step, child in children(site.node)
        ]
        pending += reversed(below)
