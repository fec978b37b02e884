"""Handed instances: who accepts which, and every one that is lost or gets through unannounced.

A text is *lost* if our validator accepts it and the grammar cannot produce it, *let through* if our validator refuses
it and the grammar can. What a trial found with instances of its own is listed in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.coverage.measure import BACKENDS, Row

Pair = tuple[Row, bool]
"""A handed instance that could be judged, and whether a grammar takes it."""


def handed(rows: Sequence[Row]) -> dict[str, Any]:
    """What our validator says of all handed instances, beside what their set says."""
    every = [item | {"group": _group(row["id"])} for row in rows for item in row["instances"]]
    judged = [item for item in every if "accepted" in item]
    differ = [item for item in judged if item["accepted"] != item["label"]]
    refused = Counter(item["reason"] for item in differ if item["label"])
    accepted = Counter(item["group"] for item in differ if not item["label"])
    return {
        "handed": len(every),
        "unjudged": len(every) - len(judged),
        "accepted": sum(item["accepted"] for item in judged),
        "refused": sum(not item["accepted"] for item in judged),
        "labelled_valid_but_refused": dict(refused.most_common()),
        "labelled_invalid_but_accepted": dict(accepted.most_common()),
    }


def _group(key: str) -> str:
    """What a set groups its schemas by: a file of the official suite, a source of the others."""
    return key.split("#")[0].removeprefix("tests/") if "#" in key else key.split("/")[0]


def of_backend(backend: str, rows: Iterable[Row]) -> dict[str, int]:
    """Lost and let through under our transport schema for one back end."""
    return _added([_ours(row, backend) for row in rows])


def chosen(rows: Iterable[Row]) -> dict[str, int]:
    """The same, each schema under the back end chosen for it; a schema without a plan loses all that is legal."""
    return _added([_ours(row, row["chosen"] or BACKENDS[0]) for row in rows])


def of_raw(backend: str, rows: Iterable[Row], *, vllm: bool) -> dict[str, Any]:
    """The same for the untouched schema, judged as the set's labels have it and as our validator has it. Schemas that
    fail are apart: nothing of theirs is lost or let through. `vllm`: those that vLLM refuses fail as well."""
    pairs: list[Pair] = []
    failed: Counter[str] = Counter()
    for row in rows:
        found = row.get("raw", {}).get(backend)
        if found is None:
            continue
        if found["refused"] or (vllm and found["admission"] == "refused"):
            failed.update("valid" if item["label"] else "invalid" for item in judged(row))
        else:
            pairs += zip(judged(row), found["taken"], strict=True)
    return {
        "of_failed_schemas": dict(failed),
        "by_label": _judged_by(pairs, lambda item: bool(item["label"])),
        "by_our_validator": _judged_by(pairs, lambda item: bool(item["accepted"])),
    }


def _without_text(name: str, item: Row) -> Row:
    """A handed instance by its name: its text belongs to others."""
    return {"id": name, **{key: value for key, value in item.items() if key != "text"}}


def cases(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Every case that somebody may want to look into."""
    found: dict[str, list[Row]] = {"lost": [], "unannounced": [], "label_differs": [], "unjudged": []}
    for row in rows:
        found["label_differs"] += [_without_text(row["id"], item) for item in row["instances"] if "reason" in item]
        found["unjudged"] += [{"id": row["id"], "words": words} for words in row["unjudged"]]
        for backend in BACKENDS:
            found["lost"] += _lost(row, backend)
            found["unannounced"] += _unannounced(row, backend)
    return found


def judged(row: Row) -> list[Row]:
    """The instances of a row that could be judged: those that were walked, in their order."""
    return [item for item in row["instances"] if "accepted" in item]


def _ours(row: Row, backend: str) -> Counter[str]:
    found = row["ours"][backend]
    walk = found.get("walk", {})
    if "taken" not in walk:
        # A schema said to be unsatisfiable must not have legal instances.
        lost = "lost" if found["kind"] == "unsatisfiable" else "without_plan"
        return Counter(lost for item in judged(row) if item["accepted"])
    counts: Counter[str] = Counter()
    for index, (item, taken) in enumerate(zip(judged(row), walk["taken"], strict=True)):
        if item["accepted"]:
            counts.update(["valid"] if taken else ["valid", "lost"])
        else:
            through = "unannounced" if str(index) in walk["unannounced"] else "announced"
            counts.update(["invalid", through] if taken else ["invalid"])
    return counts


def _added(counts: Iterable[Counter[str]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return {name: total[name] for name in ("valid", "lost", "without_plan", "invalid", "announced", "unannounced")}


def _judged_by(pairs: Sequence[Pair], accepts: Callable[[Row], bool]) -> dict[str, int]:
    valid = [taken for item, taken in pairs if accepts(item)]
    invalid = [taken for item, taken in pairs if not accepts(item)]
    return {
        "valid": len(valid),
        "lost": valid.count(False),
        "invalid": len(invalid),
        "let_through": invalid.count(True),
    }


def _lost(row: Row, backend: str) -> Iterator[Row]:
    found = row["ours"][backend]
    shown = {"id": row["id"], "backend": backend, "chosen": row["chosen"] == backend}
    taken = found.get("walk", {}).get("taken")
    if taken is not None or found["kind"] == "unsatisfiable":
        for item, through in zip(judged(row), taken or [False] * len(judged(row)), strict=True):
            if item["accepted"] and not through:
                yield shown | {"from": "handed", "text": item["text"], "transport": found["transport"]}
    for text in found.get("lost", []):
        yield shown | {"from": "generated", "text": text, "transport": found["transport"]}


def _unannounced(row: Row, backend: str) -> Iterator[Row]:
    found = row["ours"][backend]
    shown = {"id": row["id"], "backend": backend, "chosen": row["chosen"] == backend}
    sites: Mapping[str, Any] = found.get("walk", {}).get("unannounced", {})
    for index, where in sites.items():
        text = judged(row)[int(index)]["text"]
        yield shown | {"from": "handed", "sites": where, "text": text, "transport": found["transport"]}
    if found.get("leaks"):
        sites_ = [[pointer, keyword] for pointer, keyword, _ in found["surprises"]]
        for text in found["leaks"]:
            yield shown | {"from": "generated", "sites": sites_, "text": text, "transport": found["transport"]}
