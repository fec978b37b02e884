"""The numbers of `gristmill check` for a person: what each back end costs, alone and with our transport; the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from pipeline.observe.visible import cell, visible

MAX_TEXT = 160
"""Characters of outside text that one place shows."""

_KINDS = ("enforced", "dropped", "over_tight", "unproven", "refused")


def safe(text: Any, most: int = MAX_TEXT) -> str:
    """Outside text on one line: controls as escapes, cut."""
    shown = str(text)
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return visible(shown).replace("\n", "\\n").replace("\t", "\\t")


def cost_table(report: Mapping[str, Any]) -> Table:
    """One column for each back end: how much it holds, and what it costs in time and memory on this machine."""
    table = Table("", *report["backends"], title="cost", title_justify="left")
    lines = {name: dict(_costs(trial)) for name, trial in report["backends"].items()}
    for label in next(iter(lines.values())):
        table.add_row(cell(label), *(cell(safe(costs[label])) for costs in lines.values()))
    return table


def _costs(trial: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    counts, size = trial["verdicts"], trial["grammar_bytes"]
    masks = trial["mask_seconds"]
    yield "state", trial["kind"]
    yield "vLLM's own check", trial["admission"]
    yield "sites", ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS if counts.get(kind)) or "none tried"
    yield "left to the validator", str(len(trial["left"]))
    yield "compile", f"{trial['compile_seconds'] * 1000:.1f} ms"
    yield "grammar", "not told by the library" if size is None else f"{size / 1024:.0f} KiB"
    yield "peak memory of the trial", f"{trial['peak_mib']:.0f} MiB"
    quantiles = ("p50", "p99", "p999")
    yield "mask P50 / P99 / P99.9", " / ".join(f"{masks.get(name, 0.0) * 1e6:.0f}" for name in quantiles) + " µs"
    yield "random answers", ", ".join(f"{count} {end}" for end, count in sorted(trial["walks"].items())) or "none"
    yield "trial", f"{trial['seconds']:.1f} s, {trial['valid']} legal answers tried"


def raw_table(report: Mapping[str, Any]) -> Table:
    """What each back end makes of the schema as it was written, beside what it makes of the transport schema."""
    table = Table(
        "back end", "schema", *_KINDS, "legal answers lost", title="as written, and as transport", title_justify="left"
    )
    for name, trial in report["backends"].items():
        if trial["raw"]:
            refused = trial["raw"]["refused"]
            shown = f"as written: refused: {safe(refused)}" if refused else "as written"
            _add(table, (name, shown), trial["raw"]["verdicts"], trial["raw"]["lost"])
        _add(table, (name, "transport"), trial["verdicts"], len(trial["lost"]))
    return table


def _add(table: Table, heads: tuple[str, str], counts: Mapping[str, int], lost: int) -> None:
    table.add_row(*map(cell, heads), *(str(counts.get(kind, 0)) for kind in _KINDS), str(lost))


def budget_lines(budget: Mapping[str, Any] | None) -> Iterator[str]:
    """The budget in words; a line that begins with `refused` is a refusal."""
    if not budget:
        return
    numbers = budget["numbers"]
    if numbers is None:
        yield f"budget: unknown: {budget['words']}"
    else:
        worst = numbers["worst_tokens"]
        places = ", ".join(pointer or "/" for pointer in numbers["unbounded_at"][:5])
        longest = f"{worst} at most" if worst is not None else f"unbounded at {places}"
        yield (
            f"budget in tokens: shortest {numbers['shortest_tokens']}, typical {numbers['typical_tokens']}, P99 "
            f"{numbers['p99_tokens']} (of {numbers['sample_count']} {numbers['calibrated_by']}), recommended "
            f"max_tokens {numbers['recommended_tokens']}, longest {longest}"
        )
        if numbers.get("skipped_samples"):
            yield f"warning: {numbers['skipped_samples']} samples do not satisfy the schema and were not counted"
    if budget["prompt_tokens"] is not None:
        yield (
            f"prompt in tokens: {budget['prompt_tokens']} with an empty document, {budget['system_tokens']} of them in "
            "the message that all documents share"
        )
    for finding in budget["findings"]:
        word = "refused" if finding["severity"] == "refuse" else "warning"
        yield f"{word} ({finding['code']}): {finding['message']}"
