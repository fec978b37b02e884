r"""Writes providers.json: what the pinned providers accept, for the types that terraform/ uses.

No provider can be downloaded where the tests run. Their schemas can be: the packages cdktf-cdktf-provider-* of PyPI
hold TypeScript that was generated from them, with name, type and use of every argument, block and attribute.

    pip download --no-deps --dest wheels \
        cdktf-cdktf-provider-aws cdktf-cdktf-provider-helm cdktf-cdktf-provider-kubernetes
    python -m tests.unit.deploy.provider_schemas wheels

A schema is {"attributes": {name: [type, use]}, "blocks": {name: [nesting, required, schema]}}. `type` is a type as
Terraform's JSON writes it, or {"nested": nesting, "schema": schema}; `use` is required, optional, computed or either.
"""

from __future__ import annotations

import base64
import io
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(__file__).with_name("providers.json")
SCALARS = {"string": "string", "number": "number", "boolean": "bool", "boolean | cdktf.IResolvable": "bool"}
USES = {(True, False): "optional", (False, True): "computed", (True, True): "either", (False, False): "required"}
FRAMEWORK = {"helm"}  # providers in which a nested argument is written with `=`
PROPERTY = re.compile(
    r"// (?P<name>\w+) - computed: (?P<computed>\w+), optional: (?P<optional>\w+), required: \w+\n"
    r"  (?:private \w+\??(?:: (?P<type>[^\n;]+);| = new (?P<made>\w+)\(this, \"\w+\"(?:, (?P<set>\w+))?\);)|"
    r"public get \w+\(\) \{\n    return (?P<got>[^\n]+);)"
    r"(?:\s*\n  public get \w+\(\) \{\n    return (?P<read>[^\n]+);)?"
)
ITEM = re.compile(r"listMapperHcl\((?P<base>\w+)ToHclTerraform, (?P<block>true|false)\)")
GETTERS = {
    "String": "string",
    "Number": "number",
    "Boolean": "bool",
    "List": ["list", "string"],
    "NumberList": ["list", "number"],
    "StringMap": ["map", "string"],
    "AnyMap": ["map", "string"],
    "NumberMap": ["map", "number"],
    "BooleanMap": ["map", "bool"],
}


class Source:
    """The TypeScript of one resource, data source or provider."""

    def __init__(self, text: str, framework: bool) -> None:
        self.framework = framework
        classes = re.split(r"^export class (?=\w+ extends)", text, flags=re.MULTILINE)[1:]
        self.classes = {part.split(" ", 1)[0]: part for part in classes}
        self.blocks = {m["base"].lower(): m["block"] == "true" for m in ITEM.finditer(text)}
        single = re.findall(r"value: (\w+)ToHclTerraform\([^\n]*\n\s+isBlock: true,\n\s+type: \"(\w+)\"", text)
        self.single = {base.lower(): kind for base, kind in single}
        self.interfaces = dict(re.findall(r"^export interface (\w+)[^{]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))

    def root(self) -> str:
        return next(name for name, part in self.classes.items() if re.match(r"\w+ extends cdktf\.Terraform", part))

    def schema(self, name: str) -> dict[str, Any]:
        """The schema of a class, or of an interface that has none (those of a provider's blocks)."""
        if name not in self.classes:
            return self.of_interface(name)
        result: dict[str, Any] = {"attributes": {}, "blocks": {}}
        for found in PROPERTY.finditer(self.classes[name]):
            use = USES[found["optional"] == "true", found["computed"] == "true"]
            self.place(result, found["name"], use, self.kind(found))
        return result

    def of_interface(self, name: str) -> dict[str, Any]:
        result: dict[str, Any] = {"attributes": {}, "blocks": {}}
        for place, optional, kind in re.findall(
            r"\{@link \S+#(\w+) [^\n]*\n(?:  \*[^\n]*\n)*?  \*/\n  readonly \w+(\?)?: ([^\n;]+);", self.interfaces[name]
        ):
            self.place(result, place, "optional" if optional else "required", self.written(kind))
        return result

    def place(self, result: dict[str, Any], name: str, use: str, kind: Any) -> None:
        """A nested schema is a block or an argument, whatever else is an argument."""
        if isinstance(kind, tuple):
            nesting, block, inner = kind
            if use == "computed":
                result["attributes"][name] = [object_type(nesting, self.schema(inner)), use]
            elif block:
                result["blocks"][name] = [nesting, use == "required", self.schema(inner)]
            else:
                result["attributes"][name] = [{"nested": nesting, "schema": self.schema(inner)}, use]
        else:
            result["attributes"][name] = [kind, use]

    def kind(self, found: re.Match[str]) -> Any:
        """The type of a property: of Terraform's JSON, or (nesting, is a block, class) of a nested schema."""
        if found["made"]:
            if found["made"].endswith("OutputReference"):
                return self.one(found["made"])
            base = re.sub(r"(List|Map)$", "", found["made"])
            inner = f"{base}OutputReference"
            if found["made"].endswith("Map") and inner not in self.classes:
                return ["map", "string"]
            return ("set" if found["set"] == "true" else "list", self.blocks.get(base.lower(), False), inner)
        if found["type"]:
            kind = self.written(found["type"])
            if isinstance(kind, list) and kind[0] == "list" and "Fn.tolist" in (found["read"] or ""):
                return ["set", kind[1]]
            return kind
        getter = re.search(r"get(\w+)Attribute\(", found["got"])
        return GETTERS[getter[1]] if getter else "string"

    def one(self, made: str) -> tuple[str, bool, str]:
        """A nested schema that occurs once: a list of one for the older plug-in SDK, an object for the framework."""
        kind = self.single.get(made.removesuffix("OutputReference").lower(), "struct")
        if kind == "list":
            return "one", True, made
        return "single", not self.framework, made

    def written(self, text: str) -> Any:
        """A type as TypeScript writes it."""
        text = text.removesuffix(" | undefined")
        if text in SCALARS:
            return SCALARS[text]
        if text.startswith("{ [key: string]: "):
            inner = text.removeprefix("{ [key: string]: ").removesuffix(" } | cdktf.IResolvable").removesuffix(" }")
            return ["map", SCALARS.get(inner.removeprefix("(").removesuffix(")"), "string")]
        name = text.removesuffix(" | cdktf.IResolvable")
        if name.endswith("[]"):
            inner = name[:-2]
            if inner in self.interfaces:
                return "list", self.blocks.get(inner.lower(), not self.framework), inner
            return ["list", SCALARS.get(inner, "string")]
        if name in self.interfaces:
            return "single", not self.framework, name
        raise ValueError(f"this type is not understood: {text}")


def object_type(nesting: str, schema: dict[str, Any]) -> Any:
    """The type of an attribute that only the provider sets and that holds objects."""
    fields = {name: kind for name, (kind, _) in schema["attributes"].items()}
    inner = ["object", fields]
    return inner if nesting == "single" else [nesting if nesting in ("set", "map") else "list", inner]


def used() -> set[str]:
    """The types that terraform/ names: `aws_vpc`, `data.aws_region`."""
    names = set()
    for path in (ROOT / "terraform").rglob("*.tf"):
        for kind, name in re.findall(r'^(resource|data) "(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            names.add(f"data.{name}" if kind == "data" else name)
    return names


def sources(wheel: Path) -> Iterator[tuple[str, str]]:
    """(folder, TypeScript) of everything that a package describes."""
    with zipfile.ZipFile(wheel) as archive:
        inner = next(name for name in archive.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(archive.read(inner))) as package:
            for member in package:
                found = re.fullmatch(r"package/lib/([\w-]+)/index\.js", member.name)
                handle = package.extractfile(member) if found else None
                if found and handle:
                    text = handle.read().decode()
                    encoded = text.rpartition("sourceMappingURL=data:application/json;base64,")[2]
                    yield found[1], json.loads(base64.b64decode(encoded))["sourcesContent"][0]


def lines(result: dict[str, Any]) -> str:
    """JSON with a line for each type, so that a difference shows what changed."""
    parts = []
    for provider, entry in sorted(result.items()):
        types = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(entry['types'][name])}" for name in sorted(entry["types"])
        )
        head = f'{json.dumps(provider)}: {{"version": {json.dumps(entry["version"])},\n "provider": '
        parts.append(f'{head}{json.dumps(entry["provider"])},\n "types": {{\n{types}\n}}}}')
    return "{" + ",\n".join(parts) + "}\n"


def main(folder: Path) -> None:
    """Reads the three packages in `folder`, writes providers.json."""
    result: dict[str, Any] = {}
    for wheel in sorted(folder.glob("*.whl")):
        provider = wheel.name.split("-")[0].rpartition("_")[2]
        wanted = {name for name in used() if name.removeprefix("data.").startswith(f"{provider}_")}
        entry: dict[str, Any] = {"version": "", "provider": {}, "types": {}}
        for place, text in sources(wheel):
            kind = ("data." if place.startswith("data-") else "") + f"{provider}_"
            kind += place.removeprefix(f"data-{provider}-").replace("-", "_")
            if place == "provider" or kind in wanted:
                source = Source(text, provider in FRAMEWORK)
                schema = source.schema(source.root())
                entry["version"] = re.search(rf"providers/\w+/{provider}/([\d.]+)/docs", text)[1]  # type: ignore[index]
                if place == "provider":
                    entry["provider"] = schema
                else:
                    entry["types"][kind] = schema
        if missing := wanted - set(entry["types"]):
            raise SystemExit(f"{wheel.name} does not describe {', '.join(sorted(missing))}")
        result[provider] = entry
    TARGET.write_text(lines(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
