"""What Terraform would refuse: names that lead nowhere, wrong or missing arguments, versions that are not pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.unit.deploy.terraform_files import META, Block, Folder, labelled, plain, read, texts

PROVIDERS: dict[str, Any] = json.loads(Path(__file__).with_name("providers.json").read_text(encoding="utf-8"))
TYPES = {name: schema for entry in PROVIDERS.values() for name, schema in entry["types"].items()}
INDEX = r"(?:\[[^\]]*\])?"
SIMPLE = re.compile(r"(?<![\w.\"-])(var|local)\.(\w+)")
CALL = re.compile(rf"(?<![\w.\"-])module\.(\w+){INDEX}(?:\.(\w+))?")
OBJECT = re.compile(rf"(?<![\w.\"-])(data\.)?((?:{'|'.join(PROVIDERS)})_\w+)\.(\w+){INDEX}(?:\.(\w+))?")


def references(folder: Folder) -> Iterator[str]:
    """Names of variables, locals, resources and data sources that are not there, or lack the attribute."""
    for where, block in folder.blocks():
        for text in texts(block):
            for kind, name in SIMPLE.findall(text):
                if name not in (folder.variables if kind == "var" else folder.locals):
                    yield f"{where}: {kind}.{name} is not declared"
            for data, of, name, attribute in OBJECT.findall(text):
                if (of, name) not in (folder.data if data else folder.resources):
                    yield f"{where}: {data}{of}.{name} is not declared"
                    continue
                schema = TYPES[data + of]
                if attribute and attribute not in schema["attributes"] and attribute not in schema["blocks"]:
                    yield f"{where}: {data}{of} has no attribute {attribute}"


def unused(folder: Folder) -> Iterator[str]:
    """Variables and locals that nothing reads, besides a variable's own validation."""
    read_names = set()
    for where, block in folder.blocks():
        if ": variable " not in where:
            read_names |= {match for text in texts(block) for match in SIMPLE.findall(text)}
    for kind, names in (("var", folder.variables), ("local", folder.locals)):
        for name in names:
            if (kind, name) not in read_names:
                yield f"{folder.path.name}: {kind}.{name} is used nowhere"


def calls(folder: Folder) -> Iterator[str]:
    """Calls of modules: the folder, its arguments, and the outputs that are read."""
    called = {}
    for name, block in folder.modules.items():
        path = (folder.path / plain(block["source"])).resolve()
        if not path.is_dir():
            yield f"{folder.path.name}: module {name} has no folder {plain(block['source'])}"
            continue
        called[name] = read(path)
        arguments = set(block) - META - {"__is_block__"}
        variables = called[name].variables
        for argument in arguments - set(variables):
            yield f"{folder.path.name}: module {name} takes no {argument}"
        for variable in {key for key, value in variables.items() if "default" not in value} - arguments:
            yield f"{folder.path.name}: module {name} needs {variable}"
    for where, block in folder.blocks():
        for text in texts(block):
            for name, output in CALL.findall(text):
                if name not in folder.modules:
                    yield f"{where}: module.{name} is not declared"
                elif output and name in called and output not in called[name].outputs:
                    yield f"{where}: module {name} has no output {output}"


def arguments(folder: Folder) -> Iterator[str]:
    """Arguments and blocks of resources and data sources, against the schemas of the providers."""
    for prefix, objects in (("", folder.resources), ("data.", folder.data)):
        for (of, name), block in objects.items():
            where = f"{folder.path.name}: {prefix}{of}.{name}"
            if schema := TYPES.get(prefix + of):
                yield from compared(where, block, schema, META)
            else:
                yield f"{where}: providers.json does not know this type; run provider_schemas.py"


def compared(where: str, block: Block, schema: Any, meta: frozenset[str] = frozenset()) -> Iterator[str]:
    """`meta` are the names that every object takes."""
    given = {name: value for name, value in block.items() if name not in meta | {"__is_block__", "dynamic"}}
    inner = [(name, item) for name, value in given.items() if name in schema["blocks"] for item in value]
    for label, body in labelled(block.get("dynamic", [])):
        inner.extend((label, item) for item in body["content"])
    for name in set(given) - set(schema["attributes"]) - set(schema["blocks"]):
        yield f"{where} takes no {name}"
    for name, (_, use) in schema["attributes"].items():
        if use == "required" and name not in given:
            yield f"{where} needs {name}"
        if use == "computed" and name in given:
            yield f"{where}: {name} is set by the provider"
    for name, (_, required, _) in schema["blocks"].items():
        if required and name not in {label for label, _ in inner}:
            yield f"{where} needs a block {name}"
    for name, item in inner:
        if name not in schema["blocks"]:
            yield f"{where} takes no block {name}"
        else:
            yield from compared(f"{where}.{name}", item, schema["blocks"][name][2])


def pins(folder: Folder) -> Iterator[str]:
    """Versions: bounded on both sides in a module, exact in an environment, and one for every chart from elsewhere."""
    declared: dict[str, Any] = {}
    bounded = False
    for block in folder.settings:
        bounded |= "<" in block.get("required_version", "")
        for providers in block.get("required_providers", []):
            declared.update(labelled([providers]))
    if not bounded:
        yield f"{folder.path.name}: required_version has no upper bound"
    exact = folder.path.parent.name == "environments"
    for name, entry in declared.items():
        version = plain(entry.get("version", ""))
        if exact and version != PROVIDERS.get(name, {}).get("version"):
            yield f"{folder.path.name}: provider {name} is not pinned to the version of providers.json"
        if not exact and not ("<" in version and ">=" in version):
            yield f"{folder.path.name}: provider {name} is not bounded on both sides"
    for of, name in [*folder.resources, *folder.data]:
        if of.split("_")[0] not in declared:
            yield f"{folder.path.name}: the provider of {of}.{name} is not declared"
    for (of, name), block in folder.resources.items():
        if of == "helm_release" and "repository" in block and "version" not in block:
            yield f"{folder.path.name}: {of}.{name} takes whatever version of its chart is newest"


def described(folder: Folder) -> Iterator[str]:
    """Variables say what they are and of what type, and outputs what they are; numbers and collections of modules have
    bounds, unless none of them is the default."""
    for name, block in folder.variables.items():
        if not plain(block.get("description", "")) or "type" not in block:
            yield f"{folder.path.name}: variable {name} lacks a description or a type"
        bounded = folder.path.parent.name == "environments" or "validation" in block or block.get("default", "") is None
        if re.search(r"number|list|set|map|object", str(block.get("type"))) and not bounded:
            yield f"{folder.path.name}: variable {name} has no bounds"
    for name, block in folder.outputs.items():
        if not plain(block.get("description", "")):
            yield f"{folder.path.name}: output {name} lacks a description"


CHECKS: tuple[Callable[[Folder], Iterator[str]], ...] = (references, unused, calls, arguments, pins, described)
