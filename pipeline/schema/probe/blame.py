"""Blame: which site is over-tight, when valid values were rejected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pipeline.schema.probe.found import Instances, Valid
from pipeline.schema.shape.shapes import Site


def over_tight(instances: Instances, accepted: Mapping[int, bool]) -> dict[Site, str]:
    """The sites that make a grammar reject valid values, each with one. `accepted` is by position in `valid`."""
    found: dict[Site, str] = {}
    for index, valid in enumerate(instances.valid):
        if valid.base is None or valid.aim is None or index not in accepted or valid.base not in accepted:
            continue
        if accepted[index] != accepted[valid.base]:
            lost = valid if accepted[valid.base] else instances.valid[valid.base]
            found.setdefault(valid.aim, lost.text)
    return found | _never_taken(instances.valid, accepted, found.keys())


def _never_taken(valid: Sequence[Valid], accepted: Mapping[int, bool], blamed: Collection[Site]) -> dict[Site, str]:
    """The sites of the innermost subschemas none of whose valid values is accepted while others are.

    Values that a site already `blamed` judges say nothing more: they may be lost for that alone.
    """
    if not any(accepted.values()):
        return {}
    told = {index for index, taken in accepted.items() if taken or not valid[index].sites & set(blamed)}
    reached: dict[str, set[int]] = {}
    sites: dict[str, set[Site]] = {}
    for index in accepted:
        for site in valid[index].sites:
            reached.setdefault(site[0], set()).add(index)
            sites.setdefault(site[0], set()).add(site)
    never = {
        pointer: found & told
        for pointer, found in reached.items()
        if found & told and not any(accepted[index] for index in found)
    }
    innermost = [
        pointer
        for pointer, found in never.items()
        if not any(other != pointer and other.startswith(f"{pointer}/") and never[other] >= found for other in never)
    ]
    return {site: valid[min(never[pointer])].text for pointer in innermost for site in sites[pointer]}
