"""The page `docs/lint.md`: `python -m pipeline.schema.lint.page > docs/lint.md` writes it anew."""

from __future__ import annotations

from pipeline.schema.lint import policy
from pipeline.schema.lint.rules import FAMILIES

_HEAD = f"""# Lint

Remarks on a document schema, made before any model runs. A remark never refuses a schema. Each has a code, a JSON
pointer, the reason and what to change. Pointers lead into the schema as it was loaded: brought to draft 2020-12 and
closed.

A *warning* is likely to cost valid records, correct values or speed; an *info* is worth a look. All remarks are
counted; {policy.MAX_FINDINGS} are shown per schema, at least one of each code. Only parts of the schema that its root
leads to are looked at. The thresholds are in `pipeline/schema/lint/policy.py`, these texts in
`pipeline/schema/lint/catalogue.py`.

Not covered: what each back end holds of a keyword (the probe says), and names in other languages than English.
"""


def page() -> str:
    """The page as Markdown: a table per family of checks."""
    lines = [_HEAD]
    for family, rules in FAMILIES.items():
        lines += [f"## {family}", "", "| code | severity | this schema has | what to do |", "|---|---|---|---|"]
        lines += [f"| `{code}` | {r.severity} | {_cell(r.meaning)} | {_cell(r.fix)} |" for code, r in rules.items()]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
