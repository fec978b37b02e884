"""References made plain: after `localise` every one is `#` or `#/…`, leads to a schema, and needs no escapes.

Names (`$anchor`, `$dynamicAnchor`), embedded resources (`$id` below the root), percent-encoded and escaped pointers and
pointers into places that hold no schema by themselves are all read as JSON Schema has them, and written as the one
form that validators and grammar back ends agree on. (xgrammar 0.2.8 reads no escapes in a pointer, llguidance 1.7.6
nothing but escapes.) What a reference cannot name plainly where it lies is copied below `$defs`, under a name made
from its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin

from pipeline.errors import SchemaError
from pipeline.schema.dialects import DRAFT_2020_12, Dialect, dialect_of, is_schema, places, rebuild
from pipeline.schema.walk import escape, resolve, target, unescape

_PLAIN = re.compile(r"(/[A-Za-z0-9_.$-]+)*")
_NAMES = frozenset({"$anchor", "$dynamicAnchor", "$recursiveAnchor"})
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_ADVICE = "Nothing is fetched: copy what it means below $defs and refer to it as '#/$defs/…'."


def localise(source: Mapping[str, Any], dialect: Dialect = DRAFT_2020_12) -> dict[str, Any]:
    """The same schema with plain local references only, and with no `$id` below the root and no anchors.

    A schema that was plain already comes back equal, in the same order.

    Raises:
        SchemaError: `bad_ref`: a reference to what is not in the file, or not a schema, or not one thing;
            `ambiguous_dynamic_ref`: a dynamic reference that can mean several schemas, depending on the way to it.
    """
    document = _Document(source, dialect)
    leads = document.follow_all()

    def change(pointer: str, schema: Any) -> Any:
        return document.plain(pointer, schema, leads[pointer]) if isinstance(schema, dict) else schema

    body: dict[str, Any] = rebuild(dialect, source, change)
    copies = {name: rebuild(dialect, document.value(at), change, at) for at, name in document.copied.items()}
    if copies:
        body[dialect.container] = {**body.get(dialect.container, {}), **copies}
    return body


class _Document:
    """What can be referred to in one document, and by which names."""

    def __init__(self, source: Mapping[str, Any], dialect: Dialect) -> None:
        self.source, self.dialect = source, dialect
        self.bases: dict[str, str] = {}  # pointer of every schema → the URI that its references start from
        self.copied: dict[str, str] = {}  # pointer of what is copied below $defs → its name there
        self._nodes: dict[str, Any] = {}
        self._waiting: list[str] = []
        self._resources: dict[str, str | None] = {}  # None: two share the name
        self._anchors: dict[tuple[str, str], str | None] = {}
        self._dynamic: dict[str, list[str]] = {}
        held = source.get(dialect.container)
        self._taken = set(held) if isinstance(held, Mapping) else set()
        self._resources[""] = ""
        self._enter("", source, "", named=True)

    def value(self, pointer: str) -> Any:
        return resolve(self.source, "#" + quote(pointer))

    def follow_all(self) -> dict[str, dict[str, str]]:
        """For every schema, by its pointer: reference keyword → pointer of what it leads to."""
        leads: dict[str, dict[str, str]] = {}
        for pointer in self._waiting:  # grows while references lead to new places
            leads[pointer] = dict(self._follow(pointer, self._nodes[pointer]))
        return leads

    def plain(self, pointer: str, schema: dict[str, Any], leads: Mapping[str, str]) -> dict[str, Any]:
        """A schema without names, with plain references."""
        identifier = self.dialect.identifier
        kept: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword == "$ref":
                kept[keyword] = self._reference(leads[keyword])
            elif keyword == identifier:
                if not pointer and isinstance(value, str) and not urldefrag(value).fragment:
                    kept[keyword] = value
            elif keyword in (self.dialect.container, "definitions") and isinstance(value, Mapping):
                kept[keyword] = {key: item for key, item in value.items() if self._stays(pointer, keyword, key)}
            elif not (keyword in _NAMES | set(_DYNAMIC) or (keyword == "$schema" and pointer)):
                kept[keyword] = value
        extra = [{"$ref": self._reference(leads[keyword])} for keyword in _DYNAMIC if keyword in leads]
        if len(extra) == 1 and "$ref" not in kept:
            kept.update(extra[0])
        elif extra:
            kept["allOf"] = [*kept.get("allOf", []), *extra]
        return kept

    def _stays(self, pointer: str, keyword: str, key: str) -> bool:
        """Definitions that were copied under another name have no use where they were."""
        return f"{pointer}/{keyword}/{escape(key)}" not in self.copied

    def _enter(self, pointer: str, schema: Any, base: str, *, named: bool) -> None:
        """Take in a schema and all below it. Only what is `named` can be referred to by anchors."""
        pending = [(pointer, schema, base)]
        while pending:
            at, node, base = pending.pop()
            if at in self.bases:
                continue
            if isinstance(node, Mapping):
                base = self._named(at, node, base, named)
            self.bases[at], self._nodes[at] = base, node
            self._waiting.append(at)
            pending += [(at + step, child, base) for _, step, child in reversed(list(places(self.dialect, node)))]

    def _named(self, pointer: str, node: Mapping[str, Any], base: str, named: bool) -> str:
        """The base of a schema, after its names were noted."""
        identifier = node.get(self.dialect.identifier)
        if isinstance(identifier, str) and (self.dialect.siblings or "$ref" not in node):
            declared = node.get("$schema", self.dialect.uri)
            if pointer and dialect_of(declared) is not self.dialect:
                raise SchemaError(
                    f"at {pointer}: a schema of {declared!r:.200} inside one of another.", "unknown_draft"
                )
            uri, fragment = urldefrag(_join(pointer, base, identifier))
            if uri != base:
                base = uri
                if uri in self._resources and named:
                    self._resources[uri] = None
                self._resources.setdefault(uri, pointer)
            if fragment and named and not self.dialect.siblings:
                self._anchor(base, fragment, pointer)
        if named and self.dialect.siblings:
            for keyword in ("$anchor", "$dynamicAnchor"):
                if self.dialect.knows(keyword) and isinstance(node.get(keyword), str):
                    self._anchor(base, node[keyword], pointer)
            if self.dialect.knows("$dynamicAnchor") and isinstance(node.get("$dynamicAnchor"), str):
                self._dynamic.setdefault(node["$dynamicAnchor"], []).append(pointer)
            if self.dialect.knows("$recursiveAnchor") and node.get("$recursiveAnchor") is True:
                self._dynamic.setdefault("", []).append(pointer)
        return base

    def _anchor(self, base: str, name: str, pointer: str) -> None:
        known = self._anchors.get((base, name), pointer)
        self._anchors[base, name] = pointer if known == pointer else None

    def _follow(self, pointer: str, node: Any) -> Iterator[tuple[str, str]]:
        for keyword in ("$ref", *_DYNAMIC):
            if isinstance(node, Mapping) and keyword in node and self.dialect.knows(keyword):
                reference = node[keyword]
                if not isinstance(reference, str):
                    raise SchemaError(f"is malformed at {pointer or '/'}: {keyword} must be a string.", "malformed")
                found = self._target(pointer, keyword, reference)
                if keyword in _DYNAMIC:
                    found = self._outermost(pointer, keyword, reference, found)
                yield keyword, self._enterable(pointer, keyword, reference, found)

    def _target(self, pointer: str, keyword: str, reference: str) -> str:
        """The pointer that a reference names from where it stands."""
        uri, _, fragment = _join(pointer, self.bases[pointer], reference).partition("#")
        root = self._resources.get(uri)
        if root is None:
            why = "names two schemas" if uri in self._resources else "does not lead to a schema in the same file"
            raise _bad(pointer, keyword, reference, why)
        try:
            return root + target(f"#{fragment}")
        except KeyError:
            fragment = unquote(fragment)
            found = self._anchors.get((uri, fragment))
        if found is None:
            why = "names two schemas" if (uri, fragment) in self._anchors else "names no anchor of this file"
            raise _bad(pointer, keyword, reference, why)
        return found

    def _outermost(self, pointer: str, keyword: str, reference: str, found: str) -> str:
        """What a dynamic reference means: the outermost schema of its name on the way, if any way gives the same."""
        name = unquote(urldefrag(reference).fragment) if keyword == "$dynamicRef" else ""
        named = self._dynamic.get(name, [])
        if found not in named or named == [found]:
            return found
        outermost = [other for other in named if self.bases[other] == self.bases[""]]
        if len(outermost) != 1:
            raise SchemaError(
                f"at {pointer or '/'}: {keyword} {reference!r} can mean {len(named)} schemas, depending on the way "
                "to it. Use $ref to the one that is meant.",
                "ambiguous_dynamic_ref",
            )
        return outermost[0]  # every way starts at the root

    def _enterable(self, pointer: str, keyword: str, reference: str, found: str) -> str:
        """The target, after making sure that it is a known schema with a plain place."""
        if found not in self.bases:
            try:
                value = self.value(found)
            except KeyError as error:
                raise _bad(pointer, keyword, reference, "does not lead to a schema in the same file") from error
            if not is_schema(value):
                raise _bad(pointer, keyword, reference, "leads to a value that is not a schema")
            around = found
            while around not in self.bases:
                around = around.rpartition("/")[0]
            self.copied[found] = self._fresh(found)
            self._enter(found, value, self.bases[around], named=False)
        elif not _PLAIN.fullmatch(self._place(found)):
            self.copied[found] = self._fresh(found)
        return found

    def _place(self, pointer: str) -> str:
        """Where a schema lies in the result."""
        root = pointer
        while root and root not in self.copied:
            root = root.rpartition("/")[0]
        return f"/{self.dialect.container}/{self.copied[root]}{pointer[len(root) :]}" if root else pointer

    def _reference(self, pointer: str) -> str:
        return f"#{self._place(pointer)}"

    def _fresh(self, pointer: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", unescape(pointer.rpartition("/")[2]))[:40].strip("_.-")
        stem = stem if stem and not stem.isdigit() else f"schema_{stem}".rstrip("_")
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name


def _join(pointer: str, base: str, reference: str) -> str:
    if not reference or reference.startswith("#"):  # `urljoin` knows no `urn:` bases
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError as error:
        raise _bad(pointer, "the name", reference, f"is not a URI: {error}") from error


def _bad(pointer: str, keyword: str, reference: str, why: str) -> SchemaError:
    return SchemaError(f"at {pointer or '/'}: {keyword} {reference[:200]!r} {why}. {_ADVICE}", "bad_ref")
