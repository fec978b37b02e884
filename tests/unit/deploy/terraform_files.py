"""Reads folders of Terraform files with python-hcl2 into what the checks look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

Block = dict[str, Any]
META = frozenset({"count", "for_each", "depends_on", "lifecycle", "provider", "source", "providers"})


@dataclass(frozen=True, slots=True)
class Folder:
    """One module or environment. Blocks by name; resources and data sources by (type, name)."""

    path: Path
    variables: dict[str, Block] = field(default_factory=dict)
    locals: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Block] = field(default_factory=dict)
    modules: dict[str, Block] = field(default_factory=dict)
    checks: dict[str, Block] = field(default_factory=dict)
    resources: dict[tuple[str, str], Block] = field(default_factory=dict)
    data: dict[tuple[str, str], Block] = field(default_factory=dict)
    providers: list[Block] = field(default_factory=list)
    settings: list[Block] = field(default_factory=list)

    def blocks(self) -> Iterator[tuple[str, Any]]:
        """(where, block) of everything that may refer to something."""
        for kind in ("variables", "locals", "outputs", "modules", "checks"):
            for name, block in getattr(self, kind).items():
                yield f"{self.path.name}: {kind.removesuffix('s')} {name}", block
        for kind in ("resources", "data"):
            for (of, name), block in getattr(self, kind).items():
                yield f"{self.path.name}: {of}.{name}", block
        for block in self.providers:
            yield f"{self.path.name}: provider", block


@lru_cache(maxsize=256)
def parse(text: str) -> Block:
    import hcl2

    return hcl2.loads(text, serialization_options=hcl2.SerializationOptions(with_comments=False))


def plain(text: str) -> str:
    """A label or a constant string without its quotes."""
    return text.strip('"')


def labelled(blocks: list[Block]) -> Iterator[tuple[str, Any]]:
    for block in blocks:
        for name, body in block.items():
            if name != "__is_block__":
                yield plain(name), body


def read(path: Path) -> Folder:
    """Raises whatever python-hcl2 raises for a file that is no HCL."""
    folder = Folder(path)
    for file in sorted(path.glob("*.tf")):
        tree = parse(file.read_text(encoding="utf-8"))
        folder.variables.update(labelled(tree.get("variable", [])))
        folder.locals.update(labelled(tree.get("locals", [])))
        folder.outputs.update(labelled(tree.get("output", [])))
        folder.modules.update(labelled(tree.get("module", [])))
        folder.checks.update(labelled(tree.get("check", [])))
        for kind, target in (("resource", folder.resources), ("data", folder.data)):
            for of, named in labelled(tree.get(kind, [])):
                target.update({(of, name): body for name, body in labelled([named])})
        folder.providers.extend(tree.get("provider", []))
        folder.settings.extend(tree.get("terraform", []))
    return folder


def texts(value: Any) -> Iterator[str]:
    """Every string below a value, expressions among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "__is_block__":
                yield key
                yield from texts(item)


def constants(value: Any) -> Iterator[str]:
    """Every constant string below a value, those inside expressions among them."""
    for text in texts(value):
        yield from re.findall(r'"((?:[^"\\]|\\.)*)"', text)


def nested(block: Block, name: str) -> Iterator[Block]:
    """The blocks of a name inside a block, dynamic ones among them."""
    found = block.get(name, [])
    yield from (item for item in found if isinstance(item, dict))
    for label, body in labelled(block.get("dynamic", [])):
        if label == name:
            yield from body["content"]
