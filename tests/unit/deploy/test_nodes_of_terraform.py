"""Pods of the examples and of the guide on the nodes and with the claims that terraform/ makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import terraform_files
import yaml
from deployments import ROOT, deployment
from manifest_checks import templates
from pod_checks import SPOT
from test_guides import FILES

from pipeline.deploy.manifests import manifests_of

TERRAFORM = ROOT / "terraform"
GUIDE = sorted(name for name in FILES if name.endswith(".values.yaml"))
EXAMPLES = sorted(path.name for path in (ROOT / "deploy" / "examples").glob("*.values.yaml"))


def pools() -> dict[str, list[dict[str, str]]]:
    """The taints of each pool of nodes that environments/aws makes."""
    text = (TERRAFORM / "modules" / "node_pools" / "main.tf").read_text(encoding="utf-8")
    taints = [
        dict(re.findall(r'(\w+) = "([^"]*)"', one)) for one in re.findall(r"\[(\{ key = \"[^}]*effect[^}]*\})\]", text)
    ]
    gpu, spot = ([one for one in taints if one["key"].endswith(word)] for word in ("gpu", "spot"))
    assert gpu and spot and "pool.gpus > 0 ?" in text and 'contains(pool.capacity, "spot") ?' in text
    declared = terraform_files.read(TERRAFORM / "environments" / "aws").variables["pools"]["default"]
    return {
        terraform_files.plain(name): [
            *(gpu if int(pool.get("gpus", 0)) else []),
            *(spot if any("spot" in one for one in pool["capacity"]) else []),
        ]
        for name, pool in declared.items()
        if isinstance(pool, dict)
    }


def values_of(name: str) -> dict[str, Any]:
    text = FILES.get(name) or (ROOT / "deploy" / "examples" / name).read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def tolerates(pod: dict[str, Any], taint: dict[str, str]) -> bool:
    """As Kubernetes' scheduler has it."""
    return any(
        one.get("key") in (None, taint["key"])
        and one.get("effect") in (None, taint["effect"])
        and (one.get("operator", "Equal") == "Exists" or one.get("value", "") == taint["value"])
        for one in pod.get("tolerations", [])
    )


def test_the_pools_are_there_and_tainted_as_the_module_says() -> None:
    keys = {name: {one["key"] for one in taints} for name, taints in pools().items()}
    assert keys == {"steady": set(), "cpu": {"gristmill.dev/spot"}, "gpu": {"nvidia.com/gpu", "gristmill.dev/spot"}}
    (spot,) = pools()["cpu"]
    assert SPOT[spot["key"]] == spot["value"]


def test_groups_that_say_spot_may_be_on_every_pool(tmp_path: Path) -> None:
    size = {"cpu": 1, "memory": "1Gi", "spot": True}
    found = manifests_of(deployment(tmp_path, values={"engines": size, "workers": size}))
    pods = dict(pair for one in found for pair in templates(one))
    for group, pool in (("engines", "gpu"), ("workers", "cpu")):
        assert all(tolerates(pods[group]["spec"], taint) for taint in pools()[pool])
    assert not any(tolerates(pods["headGroupSpec"]["spec"], taint) for taint in pools()["cpu"])


@pytest.mark.parametrize("name", [*EXAMPLES, *GUIDE])
def test_pods_tolerate_the_nodes_that_they_choose(tmp_path: Path, name: str) -> None:
    values = values_of(name)
    for group in ("head", "engines", "workers"):
        chosen = values.get(group, {}).get("node_selector", {}).get("gristmill.dev/pool")
        if chosen is None:
            continue
        found = manifests_of(deployment(tmp_path, values={group: values[group]}))
        pod = dict(pair for one in found for pair in templates(one))["headGroupSpec" if group == "head" else group]
        assert pod["spec"]["nodeSelector"] == {"gristmill.dev/pool": chosen}
        assert all(tolerates(pod["spec"], taint) for taint in pools()[chosen]), (name, group)


@pytest.mark.parametrize("name", [*EXAMPLES, *GUIDE])
def test_claims_that_they_name_are_made(name: str) -> None:
    values = values_of(name)
    aws, local = (terraform_files.read(TERRAFORM / "environments" / one) for one in ("aws", "local"))
    models = terraform_files.read(TERRAFORM / "modules" / "models").variables["claim"]["default"]
    assert aws.variables["models_folder"]["default"] not in (None, "null")
    if (claim := values.get("models", {}).get("claim")) is not None:
        assert claim == terraform_files.plain(models)
    (made,) = [body for (kind, _), body in local.resources.items() if kind == "kubernetes_persistent_volume_claim_v1"]
    for volume in values.get("volumes", ()):
        assert volume["claim"] in set(terraform_files.constants(made))
