"""Providers that know their schemas and do nothing: with them the real terraform binary validates without a registry.

Terraform reaches a provider over gRPC (plug-in protocol 6), and TF_REATTACH_PROVIDERS names ones that run already.
These answer with the schemas of providers.json, find every configuration valid beyond them, and do nothing else; what
they would plan is made up by `mock_provider` of `terraform test`. Messages are few and written by hand, field by field,
from the protocol's numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROVIDERS = Path(__file__).with_name("providers.json")
SINGLE, LIST, SET, MAP = 1, 2, 3, 4
NESTING = {"single": SINGLE, "one": LIST, "list": LIST, "set": SET, "map": MAP}


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | int) -> bytes:
    """One field of a message: its number with its kind, and what it holds."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name: str, kind: Any, use: str) -> bytes:
    message = field(1, name)
    if isinstance(kind, dict):
        inner = b"".join(field(1, attribute(key, *value)) for key, value in kind["schema"]["attributes"].items())
        message += field(10, inner + field(3, NESTING[kind["nested"]]))
    else:
        message += field(2, json.dumps(kind))
    flags = {"required": (4,), "optional": (5,), "computed": (6,), "either": (5, 6)}[use]
    return message + b"".join(field(flag, 1) for flag in flags)


def block(schema: dict[str, Any]) -> bytes:
    message = b"".join(field(2, attribute(name, *value)) for name, value in schema["attributes"].items())
    for name, (nesting, required, inner) in schema["blocks"].items():
        nested = field(1, name) + field(2, block(inner)) + field(3, NESTING[nesting])
        if nesting != "single":
            nested += field(4, int(required)) + field(5, 1 if nesting == "one" else 0)
        message += field(3, nested)
    return message


def schema(of: dict[str, Any]) -> bytes:
    return field(2, block(of))


def all_schemas(entry: dict[str, Any]) -> bytes:
    """The answer to GetProviderSchema."""
    message = field(1, schema(entry["provider"]))
    for name, of in entry["types"].items():
        number = 3 if name.startswith("data.") else 2
        message += field(number, field(1, name.removeprefix("data.")) + field(2, schema(of)))
    return message


@contextmanager
def running() -> Iterator[dict[str, str]]:
    """The environment in which terraform finds these providers."""
    import grpc

    names, servers = {}, []
    for provider, entry in json.loads(PROVIDERS.read_text(encoding="utf-8")).items():
        answers = {"GetProviderSchema": all_schemas(entry)}
        answers |= dict.fromkeys(
            ("ValidateProviderConfig", "ValidateResourceConfig", "ValidateDataResourceConfig"), b""
        )
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(lambda request, context, answer=answer: answer)
            for name, answer in answers.items()
        }
        server = grpc.server(ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tfplugin6.Provider", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        names[f"hashicorp/{provider}"] = {
            "Protocol": "grpc",
            "ProtocolVersion": 6,
            "Pid": os.getpid(),
            "Test": True,
            "Addr": {"Network": "tcp", "String": f"127.0.0.1:{port}"},
        }
    try:
        yield {"TF_REATTACH_PROVIDERS": json.dumps(names)}
    finally:
        for server in servers:
            server.stop(None)
