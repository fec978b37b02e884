"""Schemas of Kubernetes objects, as strict as an API server with `fieldValidation: Strict`: unknown fields are errors.

KubeRay's kinds are read from its CRDs. The schemas of the kinds of Kubernetes' own are not at hand: their pod
templates are held against the one in a CRD, and the little else of them against schemas written here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators

from pipeline.schema.cel import Meter, compile_rule

Schema = dict[str, Any]

TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
METADATA: Schema = {
    "type": "object",
    "required": ["name", "namespace"],
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": TEXTS,
        "annotations": TEXTS,
    },
}


def problems(manifest: Mapping[str, Any], crds: Path) -> list[str]:
    """What an API server would refuse or drop, each with where it stands."""
    kind = manifest.get("kind", "")
    if not any((kind in PLAIN, kind in ("Job", "CronJob"), (crds / f"ray.io_{kind.lower()}s.yaml").is_file())):
        return [f"kind: {kind!r} is unknown"]
    if kind.startswith("Ray"):
        schema = _custom(kind, crds)
    elif kind in ("Job", "CronJob"):
        template = _custom("RayJob", crds)["properties"]["spec"]["properties"]["submitterPodTemplate"]
        schema = _batch(kind, template)
    else:
        schema = _strict(PLAIN[kind])
    errors = _VALIDATOR(schema).iter_errors(manifest)
    return sorted(f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in errors)


@functools.cache
def _custom(kind: str, crds: Path) -> Schema:
    path = crds / f"ray.io_{kind.lower()}s.yaml"
    definition = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    (version,) = [one for one in definition["spec"]["versions"] if one["name"] == "v1" and one["served"]]
    schema = version["schema"]["openAPIV3Schema"]
    properties = {key: value for key, value in schema["properties"].items() if key != "status"}
    whole = {**properties, "metadata": METADATA, **_named("ray.io/v1", kind)}
    return _strict({**schema, "properties": whole, "required": ["apiVersion", "kind", "metadata", "spec"]})


def _strict(schema: Schema) -> Schema:
    """The schema in which what Kubernetes would prune is an error."""
    made = {key: value for key, value in schema.items() if key not in ("properties", "items", "additionalProperties")}
    if "properties" in schema:
        made["properties"] = {key: _strict(value) for key, value in schema["properties"].items()}
        made.setdefault("additionalProperties", bool(schema.get("x-kubernetes-preserve-unknown-fields", False)))
    if isinstance(schema.get("items"), dict):
        made["items"] = _strict(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _strict(schema["additionalProperties"])
    if schema.get("x-kubernetes-int-or-string"):
        made["type"] = ["integer", "string"]
    if schema.get("nullable"):
        made["type"] = [schema["type"], "null"]
    return made


def _named(version: str, kind: str) -> Schema:
    return {"apiVersion": {"const": version}, "kind": {"const": kind}}


def _keys(_validator: Any, keys: list[str], items: Any, schema: Schema) -> Iterator[ValidationError]:
    """A list that is a map has no two items with the same keys."""
    if isinstance(items, list) and schema.get("x-kubernetes-list-type") == "map":
        defaults = {key: one.get("default") for key, one in schema["items"].get("properties", {}).items()}
        seen = [tuple(item.get(key, defaults.get(key)) for key in keys) for item in items]
        if len(set(seen)) < len(seen):
            yield ValidationError(f"two items have the same {', '.join(keys)}")


def _list_type(_validator: Any, kind: str, items: Any, _schema: Schema) -> Iterator[ValidationError]:
    if kind == "set" and isinstance(items, list) and len(set(map(repr, items))) < len(items):
        yield ValidationError("an item occurs twice")


def _rules(_validator: Any, rules: list[dict[str, str]], value: Any, _schema: Schema) -> Iterator[ValidationError]:
    """Rules in CEL; those about a change from `oldSelf` say nothing about an object that is created."""
    for one in rules:
        if "oldSelf" not in one["rule"] and not compile_rule(one["rule"], ["self"]).holds([value], Meter(1000, 1.0)):
            yield ValidationError(one.get("message", one["rule"]))


def _format(_validator: Any, name: str, value: Any, _schema: Schema) -> Iterator[ValidationError]:
    bits = {"int32": 31, "int64": 63}.get(name)
    if bits and isinstance(value, int) and not -(2**bits) <= value < 2**bits:
        yield ValidationError(f"{value} does not fit into {name}")


_VALIDATOR = validators.extend(
    Draft202012Validator,
    {
        "x-kubernetes-list-map-keys": _keys,
        "x-kubernetes-list-type": _list_type,
        "x-kubernetes-validations": _rules,
        "format": _format,
    },
)

_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0, "format": "int32"}
_STRINGS: Schema = {"type": "array", "items": {"type": "string"}}
_RELABELLING: Schema = {
    "type": "object",
    "properties": {
        "sourceLabels": _STRINGS,
        "regex": {"type": "string"},
        "targetLabel": {"type": "string"},
        "replacement": {"type": "string"},
        "action": {"type": "string"},
    },
}
_ENDPOINT: Schema = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$"},
        "honorLabels": _FLAG,
        "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
        "metricRelabelings": {"type": "array", "items": _RELABELLING},
    },
}


def _object(version: str, kind: str, fields: Schema) -> Schema:
    properties = {**_named(version, kind), "metadata": METADATA, **fields}
    return {"type": "object", "required": list(properties), "properties": properties}


_FAILURE_POLICY: Schema = {
    "type": "object",
    "required": ["rules"],
    "properties": {
        "rules": {
            "type": "array",
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["action", "onExitCodes"],
                "properties": {
                    "action": {"enum": ["FailJob", "Ignore", "Count"]},
                    "onExitCodes": {
                        "type": "object",
                        "required": ["operator", "values"],
                        "properties": {
                            "containerName": {"type": "string"},
                            "operator": {"enum": ["In", "NotIn"]},
                            "values": {
                                "type": "array",
                                "minItems": 1,
                                "maxItems": 255,
                                "items": {"type": "integer", "minimum": 1, "maximum": 255},
                            },
                        },
                    },
                },
            },
        }
    },
}

PLAIN: dict[str, Schema] = {
    "ServiceAccount": _object("v1", "ServiceAccount", {"automountServiceAccountToken": _FLAG}),
    "ConfigMap": _object("v1", "ConfigMap", {"immutable": _FLAG, "data": TEXTS}),
    "PodMonitor": _object(
        "monitoring.coreos.com/v1",
        "PodMonitor",
        {
            "spec": {
                "type": "object",
                "required": ["selector", "podMetricsEndpoints"],
                "properties": {
                    "selector": {"type": "object", "properties": {"matchLabels": TEXTS}},
                    "podTargetLabels": _STRINGS,
                    "podMetricsEndpoints": {"type": "array", "items": _ENDPOINT},
                },
            }
        },
    ),
}


def _batch(kind: str, template: Schema) -> Schema:
    job = {
        "type": "object",
        "required": ["template"],
        "properties": {
            "backoffLimit": _COUNT,
            "activeDeadlineSeconds": {"type": "integer", "minimum": 1},
            "ttlSecondsAfterFinished": _COUNT,
            "podFailurePolicy": _FAILURE_POLICY,
            "template": template,
        },
    }
    if kind == "Job":
        return _strict(_object("batch/v1", kind, {"spec": job}))
    fields = {
        "schedule": {"type": "string"},
        "timeZone": {"type": "string"},
        "suspend": _FLAG,
        "concurrencyPolicy": {"enum": ["Allow", "Forbid", "Replace"]},
        "jobTemplate": {
            "type": "object",
            "required": ["spec"],
            "properties": {"metadata": {"type": "object", "properties": {"labels": TEXTS}}, "spec": job},
        },
    }
    spec = {"type": "object", "required": ["schedule", "jobTemplate"], "properties": fields}
    return _strict(_object("batch/v1", kind, {"spec": spec}))
