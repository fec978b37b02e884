"""Transport: the schema as an engine of one back end gets it, and what it leaves to the validator.

The transport language never excludes a value that the acceptance schema accepts in canonical form; whatever it lets
through beyond that breaks a site that is listed as left. docs/transport.md tells how, `gristmill check` tries it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.schema.pattern.emit import MAX_WIDE_COUNT
from pipeline.schema.shape.apart import apart
from pipeline.schema.shape.emit import emit
from pipeline.schema.shape.policy import Policy, apply
from pipeline.schema.shape.read import read
from pipeline.schema.shape.shapes import NEVER, Left, Shapes

BACKENDS = ("xgrammar", "guidance")


@dataclass(frozen=True, slots=True)
class Transport:
    """What the engine decodes under (JSON text; the order of properties is part of it), what it leaves to the
    validator, and the pointers of schemas that a policy narrowed. `satisfiable`: some document can satisfy it."""

    text: str
    left: tuple[Left, ...]
    narrowed: tuple[str, ...] = ()
    satisfiable: bool = True


def transport_of(body: Mapping[str, Any], backend: str, policy: Policy | None = None) -> Transport:
    """The transport schema of a loaded body for a back end."""
    return written(read(body), backend, policy)


def written(shapes: Shapes, backend: str, policy: Policy | None = None) -> Transport:
    """The transport schema of shapes that were read before."""
    if shapes.root == NEVER:
        return Transport("false", shapes.left, satisfiable=False)
    policy = policy or Policy()
    if backend == "xgrammar" and (policy.max_length or 0) > MAX_WIDE_COUNT:  # it cannot count so many characters
        policy = replace(policy, max_length=None)
    shapes, narrowed = apply(shapes, policy)
    schema, left = emit(shapes, backend)
    schema = apart(schema) if backend == "xgrammar" else schema
    return Transport(json.dumps(schema, ensure_ascii=False, separators=(",", ":")), left, narrowed)
