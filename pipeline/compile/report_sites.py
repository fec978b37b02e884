"""Sites in the report: what each back end does with every keyword, and who catches a violation of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.compile.check import Trial
from pipeline.schema.formats import is_checked
from pipeline.schema.lint.keywords import KNOWN
from pipeline.schema.shape.shapes import Left, Site
from pipeline.schema.walk import descend, escape

_PARTNERS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
_DESCRIBING = frozenset({"contentEncoding", "contentMediaType", "contentSchema"})


class Spoken:
    """What the compiler left, to be asked for single sites. Both may be many: no list is searched."""

    def __init__(self, left: Iterable[Left]) -> None:
        self._sites: dict[Site, Left] = {}
        self._below: dict[str, Left] = {}
        for item in left:
            self._sites.setdefault((item.pointer, item.keyword), item)
            below = item.pointer if item.keyword == "*" else f"{item.pointer}/{escape(item.keyword)}"
            self._below.setdefault(below, item)

    def exactly(self, site: Site) -> Left | None:
        """What was left at just this site."""
        return self._sites.get(site)

    def over(self, site: Site) -> Left | None:
        """What covers a site: itself, else the nearest schema or keyword above it that was left."""
        if site in self._sites:
            return self._sites[site]
        pointer = site[0]
        while pointer not in self._below and pointer:
            pointer = pointer.rpartition("/")[0]
        return self._below.get(pointer)


def site_rows(body: Mapping[str, Any], trials: Mapping[str, Trial], chosen: Trial | None) -> list[dict[str, Any]]:
    """A row for each site: `pointer`, `keyword`, `caught_by`, and per back end `verdict`, `evidence`, `left`.

    `caught_by` speaks of the chosen back end: `grammar` if a trial showed that it holds the site; `nobody` if the
    validator does not judge it either; else `validator`, which judges whatever the grammar is not known to hold.
    """
    unwatched = dict.fromkeys(left_to_nobody(body))
    order: dict[Site, None] = {}
    for trial in trials.values():
        order |= dict.fromkeys(trial.verdicts) | dict.fromkeys((left.pointer, left.keyword) for left in trial.left)
    spoken = {name: Spoken(trial.left) for name, trial in trials.items()}
    held = held_sites(chosen) if chosen else frozenset()
    rows = [
        {
            "pointer": site[0],
            "keyword": site[1],
            "caught_by": "grammar" if site in held else "validator",
            "backends": {name: _of_backend(site, trial, spoken[name]) for name, trial in trials.items()},
        }
        for site in order
        if site not in unwatched
    ]
    nothing = {name: {"verdict": "ignored", "evidence": "", "left": ""} for name in trials}
    return rows + [
        {"pointer": pointer, "keyword": keyword, "caught_by": "nobody", "backends": nothing}
        for pointer, keyword in unwatched
    ]


def held_sites(trial: Trial) -> frozenset[Site]:
    """The sites that the grammar was shown to hold. One that lies below a keyword that is left may be among them."""
    spoken = Spoken(trial.left)
    return frozenset(
        site
        for site, (verdict, _) in trial.verdicts.items()
        if verdict in ("enforced", "over_tight") and spoken.exactly(site) is None
    )


def left_to_nobody(body: Mapping[str, Any]) -> Iterator[Site]:
    """Keywords that neither a grammar nor the validator judges, although their author may think so."""
    for pointer, node in descend(body):
        for keyword, value in node.items() if isinstance(node, Mapping) else ():
            unknown = keyword not in KNOWN and not keyword.startswith(("x-", "$"))
            orphan = keyword in _PARTNERS and _PARTNERS[keyword] not in node
            unchecked = keyword == "format" and isinstance(value, str) and not is_checked(value)
            if unknown or orphan or unchecked or keyword in _DESCRIBING:
                yield pointer, keyword


def _of_backend(site: Site, trial: Trial, spoken: Spoken) -> dict[str, str]:
    if not trial.usable:
        return {"verdict": "refused", "evidence": "", "left": ""}
    verdict, evidence = trial.verdicts.get(site, ("untried", ""))
    over = spoken.over(site)
    return {"verdict": verdict, "evidence": evidence, "left": over.why if over else ""}
