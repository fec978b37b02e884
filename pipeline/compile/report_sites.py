"""Sites in the report: what each back end does with every keyword, and who catches a violation of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pipeline.compile.check import Trial
from pipeline.schema.formats import is_checked
from pipeline.schema.lint.keywords import KNOWN
from pipeline.schema.shape.shapes import Left, Site
from pipeline.schema.walk import descend, escape

CaughtBy = Literal["grammar", "validator", "nobody"]

_PARTNERS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
_DESCRIBING = frozenset({"contentEncoding", "contentMediaType", "contentSchema"})


def site_rows(body: Mapping[str, Any], trials: Mapping[str, Trial], chosen: Trial | None) -> list[dict[str, Any]]:
    """A row for each site: `pointer`, `keyword`, `caught_by`, and per back end `verdict`, `evidence`, `left`.

    `caught_by` speaks of the chosen back end: `grammar` if a trial showed that it holds the site; `nobody` if the
    validator does not judge it either; else `validator`, which judges whatever the grammar is not known to hold.
    """
    unwatched = list(left_to_nobody(body))
    order: dict[Site, None] = {}
    for trial in trials.values():
        order |= dict.fromkeys(trial.verdicts) | dict.fromkeys((left.pointer, left.keyword) for left in trial.left)
    rows = [
        {
            "pointer": site[0],
            "keyword": site[1],
            "caught_by": caught_by(site, chosen),
            "backends": {name: _of_backend(site, trial) for name, trial in trials.items()},
        }
        for site in order
        if site not in unwatched
    ]
    nothing = {name: {"verdict": "ignored", "evidence": "", "left": ""} for name in trials}
    return rows + [
        {"pointer": pointer, "keyword": keyword, "caught_by": "nobody", "backends": nothing}
        for pointer, keyword in unwatched
    ]


def caught_by(site: Site, trial: Trial | None) -> CaughtBy:
    """Who catches a violation of a site that the validator judges."""
    if trial is None or site not in trial.verdicts:
        return "validator"
    verdict, _ = trial.verdicts[site]
    spoken = spoken_for(site, trial.left)
    # A keyword that is left as a whole may still be held in some of its parts, where a trial shows it.
    held = verdict in ("enforced", "over_tight") and (spoken is None or (spoken.pointer, spoken.keyword) != site)
    return "grammar" if held else "validator"


def spoken_for(site: Site, left: Iterable[Left]) -> Left | None:
    """What the compiler left that covers a site: the site itself before its schema, before what lies above."""
    pointer = site[0]
    best: tuple[int, Left] | None = None
    for item in left:
        inside = f"{item.pointer}/" if item.keyword == "*" else f"{item.pointer}/{escape(item.keyword)}/"
        if (item.pointer, item.keyword) == site:
            return item
        if (item.pointer == pointer and item.keyword == "*") or f"{pointer}/".startswith(inside):
            rank = len(inside)
            best = (rank, item) if best is None or rank > best[0] else best
    return best[1] if best else None


def enforced(trial: Trial) -> int:
    """Sites that the grammar of a trial was shown to hold."""
    return sum(caught_by(site, trial) == "grammar" for site in trial.verdicts)


def left_to_nobody(body: Mapping[str, Any]) -> Iterator[Site]:
    """Keywords that neither a grammar nor the validator judges, although their author may think so."""
    for pointer, node in descend(body):
        for keyword, value in node.items() if isinstance(node, Mapping) else ():
            unknown = keyword not in KNOWN and not keyword.startswith(("x-", "$"))
            orphan = keyword in _PARTNERS and _PARTNERS[keyword] not in node
            unchecked = keyword == "format" and isinstance(value, str) and not is_checked(value)
            if unknown or orphan or unchecked or keyword in _DESCRIBING:
                yield pointer, keyword


def _of_backend(site: Site, trial: Trial) -> dict[str, str]:
    if not trial.usable:
        return {"verdict": "refused", "evidence": "", "left": ""}
    verdict, evidence = trial.verdicts.get(site, ("untried", ""))
    spoken = spoken_for(site, trial.left)
    return {"verdict": verdict, "evidence": evidence, "left": spoken.why if spoken else ""}
