"""The page of metrics: what each counts, a healthy range, what an anomaly indicates and what to do.

`python -m pipeline.observe.metrics.page` writes docs/metrics.md from `catalogue.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.observe.left import MAX_SITES
from pipeline.observe.metrics.catalogue import METRICS, Group, Metric
from pipeline.observe.metrics.labels import MOST
from pipeline.observe.paths import MAX_ENGINE, MAX_ENGINES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"

GROUPS: dict[Group, str] = {
    "documents": "What became of documents",
    "answers": "What the model's answers were, layer by layer",
    "quality": "What was wrong, and what the constraint cost",
    "cost": "Tokens and time",
    "schemas": "Grammars",
    "run": "The run as a whole",
    "endpoint": "The online endpoint",
}
_ANSWERS, _FIRST, _REPAIRED = (
    f"sum(rate(gristmill_answers_{name}[5m]))" for name in ("total", "format_first_total", "format_repaired_total")
)
RATES = {
    "JSON as it came": f"{_FIRST} / {_ANSWERS}",
    "JSON after repairs": f"({_FIRST} + {_REPAIRED}) / {_ANSWERS}",
    "rules and grounding, of what satisfies the schema": "sum(rate(gristmill_answers_semantic_total[5m])) / "
    "sum(rate(gristmill_answers_schema_total[5m]))",
    "mean clipped mass of a token of a value": 'sum(rate(gristmill_clipped_mass_total{part="value"}[1h])) / '
    'sum(rate(gristmill_clipped_tokens_total{part="value"}[1h]))',
    "output tokens of a valid record": "sum(rate(gristmill_output_tokens_total[5m])) / "
    'sum(rate(gristmill_documents_total{status="valid"}[5m]))',
    "documents per second": "sum(rate(gristmill_documents_total[5m]))",
}
_HEAD = f"""\
# Metrics

<!-- Written by `python -m pipeline.observe.metrics.page` from pipeline/observe/metrics/catalogue.toml. Do not edit. -->

A single success rate hides which layer broke. These counts keep the layers apart, and each rate has its own
denominator:

| rate | PromQL |
|---|---|
{chr(10).join(f"| {name} | `{query}` |" for name, query in RATES.items())}

## Where they are

- **One machine**: `gristmill run JOB --metrics-port 9400` serves them at `http://127.0.0.1:9400/metrics` while the
  command runs; `--metrics-port 0.0.0.0:9400` lets other machines in, and nobody is asked for a token there. Numbers are
  at most some seconds old.
- **Ray**: every run also exports them through Ray, whose nodes serve them beside Ray's own: at the port that
  `ray.nodes()` has as `MetricsExportPort`, which Ray's file for Prometheus's service discovery names, too. Names have
  the prefix `ray_` there, and Ray adds labels of its own. All are gauges there, with the values that counters have
  elsewhere: `rate` and `histogram_quantile` read them alike, a count of 0 is there from the start, and they go some
  seconds after the run's driver does. Ray takes them every 10 s, so the last seconds of a run may be missing: the file
  has them.
- **The online endpoint**: `GET /metrics`, with the endpoint's token, and through Ray. It is one process, which counts
  since it started; if you give its deployment `num_replicas`, scrape Ray, since a request reaches any one of them.
- **A file**: every committed run has `metrics.prom`, named in `manifest.json` under `totals.metrics`. It is made from
  the run's commit records, so it counts each document once. Live numbers count from when the command took the run up,
  and documents whose outcome was lost with a process count again.

Prometheus gives each series a label `job` of its own, and renames ours to `exported_job`, unless the scrape config says
`honor_labels: true`.

## Labels

Labels come from closed sets: no id, no text of a document, of a model or of a stranger's schema is in one.

- `job`: the job's `name`; of an endpoint the application's.
- `schema`: the {MOST} schemas with the most documents in the input (an endpoint: the first {MOST} by name); `other` for
  further ones, `unknown` for rows that name a schema which cannot be loaded, `none` for rows that name none, `inline`
  for all schemas that came with requests. Chosen when a run begins: no series moves to `other` later.
- `engine`: the engine's fingerprint, at most {MAX_ENGINE} characters; {MAX_ENGINES} engines and `other` where more than
  a dozen answered.
- `path`: `constrained` if the engine had proved that its constraint is in force, else `free`. `answer`: `1`, `2`, `3+`,
  the how many-th of its document.
- `site`: a place of the schema and a keyword, of {MAX_SITES} sites that the plan left to the validator, else `other`.
- `code`, `kind`, `match`, `status`, `state`, `part`, `result`, `http`, `percentile`: words of this program.

Series of `gristmill_documents_total` and of the codes that alarm are there from the start with 0, so that the first of
them is an increase.
"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_HEAD, *(line for group in GROUPS for line in _section(group))])


def _section(group: Group) -> Iterator[str]:
    yield f"## {GROUPS[group]}"
    yield ""
    yield "| metric | type and labels | what it counts | healthy | an anomaly | what to do |"
    yield "|---|---|---|---|---|---|"
    for metric in METRICS.values():
        if metric.group == group:
            yield _row(metric)
    yield ""


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{name}`" for name in metric.labels)
    cells = (f"`{metric.name}`", f"{metric.type}: {labels}", metric.help, metric.healthy, metric.anomaly, metric.action)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
