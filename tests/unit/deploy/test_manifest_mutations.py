"""Every key of every example, taken away or changed: the checks find it, or it stands below why nothing can."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import ROOT
from kubernetes_schemas import problems
from manifest_checks import faults

EXAMPLES = ("nightly", "once", "pool_job", "service")
FEW = 23
"""One mutant of so many is tried in each run of the tests; all of them in the long one."""

Objects = list[dict[str, Any]]
Place = tuple[Any, ...]

FREE = {
    "any name": r"\w+ changed metadata/name",
    "further labels, annotations and nodes": r"\w+ unknown .*(labels|annotations|nodeSelector)",
    "false by default": r"\w+ taken .*/(privileged|volumeMounts/4/readOnly)",
    "containers of Ray have any name": r"Ray\w+ changed .*/containers/0/name",
    "what another cluster has": r"\w+ \w+ .*/(nodeSelector|claimName|secretKeyRef/(name|key)|secretName)(/.*)?",
    "who another cloud says that it is": r"ServiceAccount \w+ metadata/annotations(/.*)?",
    "what another Prometheus selects by": r"PodMonitor \w+ metadata/labels/release",
    "what nodes ask for: test_nodes_of_terraform": r"RayCronJob taken .*/workerGroupSpecs/1/.*/tolerations",
    "any path of the scratch disk": r"RayJob changed .*/env/3/value",
    "a pool may do without": r"RayService taken .*/workerGroupSpecs/1",
    "made by the values of the service": r"CronJob changed .*/serviceAccountName",
    "one pod agrees with itself": r"CronJob changed .*/image",
}


def loaded(name: str) -> Objects:
    text = (ROOT / "deploy" / "examples" / f"{name}.rendered.yaml").read_text(encoding="utf-8")
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Each key below a value, and the first and the last item of each list."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list) and value:
        items = [(number, value[number]) for number in sorted({0, len(value) - 1})]
    for key, one in items:
        yield (*at, key)
        if (*at, key) != ("data",):
            yield from places(one, (*at, key))


def mutations(objects: Objects) -> Iterator[tuple[str, int, Place, str]]:
    """What could be done where, told in words, and to which object."""
    for number, one in enumerate(objects):
        for place in places(one):
            value = one
            for key in place:
                value = value[key]
            kinds = ["taken", *(["unknown"] if isinstance(value, dict) else [])]
            kinds += ["changed"] if isinstance(value, bool | str | int) else []
            for how in kinds:
                yield f"{one['kind']} {how} {'/'.join(map(str, place))}", number, place, how


def mutated(objects: Objects, number: int, place: Place, how: str) -> Objects:
    """The objects after it."""
    one = copy.deepcopy(objects[number])
    value: Any = one
    for key in place[:-1]:
        value = value[key]
    key, old = place[-1], value[place[-1]]
    if how == "taken":
        del value[key]
    elif how == "unknown":
        old["unknownField"] = "x"
    else:
        value[key] = (not old) if isinstance(old, bool) else f"{old}x" if isinstance(old, str) else -1
    return [*objects[:number], one, *objects[number + 1 :]]


def survivors(name: str, crds: Path, every: int) -> tuple[list[str], int]:
    objects, found = loaded(name), []
    tried = list(mutations(objects))[::every]
    for told, number, place, how in tried:
        if any(re.fullmatch(free, told) for free in FREE.values()):
            continue
        mutant = mutated(objects, number, place, how)
        if not faults(mutant) and not problems(mutant[number], crds):
            found.append(told)
    return found, len(tried)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sample_of_mutants_is_found(name: str, shared: Path) -> None:
    found, tried = survivors(name, shared / "data" / "kuberay-crds", FEW)
    assert found == [] and tried > 8


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_mutant_is_found(name: str, shared: Path) -> None:
    found, tried = survivors(name, shared / "data" / "kuberay-crds", 1)
    assert found == [] and tried > 80


def test_no_reason_to_survive_is_left_over() -> None:
    told = [one for name in EXAMPLES for one, *_ in mutations(loaded(name))]
    assert [why for why, free in FREE.items() if not any(re.fullmatch(free, one) for one in told)] == []
