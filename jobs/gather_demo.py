"""Gather the demo's input: the READMEs of the installed packages and both sample files, in one mixed JSONL.

    python -m jobs.gather_demo [--out jobs/.data/demo.jsonl] [--packages N] [--characters N]

The package rows need no download and are as uneven as real documents: from a few hundred characters to far
more than a context window, in Markdown, reStructuredText and plain text. Their ground truth is the core
metadata, which a README need not repeat: a null that disagrees with it may still be the right answer.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "schemas" / "package" / "1" / "schema.json"
SAMPLES = (ROOT / "jobs" / "samples" / "receipts.jsonl", ROOT / "jobs" / "samples" / "advisories.jsonl")
OUT = ROOT / "jobs" / ".data" / "demo.jsonl"

MIN_CHARACTERS = 400
OWN_PACKAGES = frozenset({"gristmill"})  # installed or not, our README as it is today is no input
HOME_LABELS = ("homepage", "home", "repository", "source", "sourcecode", "code", "github")  # best first
UNSAID = frozenset({"", "UNKNOWN", "NONE", "OSI APPROVED"})
FEW_WORDS = 3  # keywords without a comma: up to this many words are one topic, more are a list of topics

Row = dict[str, Any]


def main() -> None:
    options = parse_options()
    rows = [*chosen(package_rows(), options.characters)[: options.packages], *sample_rows()]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(b"".join(json_line(row) for row in rows))
    counts = Counter(row["schema"] for row in rows)
    summary = ", ".join(f"{schema} {count}" for schema, count in sorted(counts.items()))
    print(f"{options.out}: {len(rows)} documents ({summary})")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Gather the demo's documents into one JSONL file.")
    parser.add_argument("--out", type=Path, default=OUT, help="default: jobs/.data/demo.jsonl")
    parser.add_argument("--packages", type=int, help="take the first N packages by name (default: all)")
    parser.add_argument("--characters", type=int, default=4000, help="longest README to take (default: 4000)")
    options = parser.parse_args()
    if options.packages is not None and options.packages < 0:
        parser.error("--packages must not be negative")
    return options


def chosen(rows: list[Row], characters: int) -> list[Row]:
    """The rows of at most `characters`, and the longest of all: it shows what becomes of a document that no context
    holds. Reading the others would take a CPU longer than a demo should."""
    longest = max(rows, key=lambda row: len(row["text"]), default=None)
    return [row for row in rows if len(row["text"]) <= characters or row is longest]


def package_rows() -> list[Row]:
    properties: dict[str, Row] = json.loads(SCHEMA.read_text(encoding="utf-8"))["properties"]
    found: dict[str, Row] = {}
    for distribution in distributions():
        metadata = distribution.metadata
        name = canonical_name(distribution)
        text = raw(metadata, "Description").strip()
        # The first of two distributions of one name is the one that Python imports.
        if name in found or name in OWN_PACKAGES or not name or len(text) < MIN_CHARACTERS:
            continue
        found[name] = {
            "id": f"package-{name}",
            "schema": "package@1",
            "text": text,
            "ground_truth": ground_truth(metadata, properties),
        }
    return [found[name] for name in sorted(found)]


def sample_rows() -> Iterator[Row]:
    for path in SAMPLES:
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def canonical_name(distribution: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", raw(distribution.metadata, "Name")).lower()


def ground_truth(metadata: PackageMetadata, properties: dict[str, Row]) -> Row:
    """The record that the core metadata gives. What is over the schema's limits is null, never cut short."""
    record: Row = {
        "name": text_of(metadata, "Name"),
        "summary": text_of(metadata, "Summary"),
        "license": license_of(metadata, properties["license"]["maxLength"]),
        "requires_python": text_of(metadata, "Requires-Python"),
        "home_page": home_page_of(metadata),
    }
    for field, value in record.items():
        if value is not None and len(value) > properties[field]["maxLength"]:
            record[field] = None
    keywords = properties["keywords"]
    fitting = (word for word in keywords_of(metadata) if len(word) <= keywords["items"]["maxLength"])
    record["keywords"] = list(fitting)[: keywords["maxItems"]]
    return record


def raw(metadata: PackageMetadata, field: str) -> str:
    return str(metadata[field] or "") if field in metadata else ""


def text_of(metadata: PackageMetadata, field: str) -> str | None:
    value = " ".join(raw(metadata, field).split())
    return None if value.upper() in UNSAID else value


def license_of(metadata: PackageMetadata, longest: int) -> str | None:
    """The expression, else the old field unless it holds the whole licence, else the classifiers."""
    expression = text_of(metadata, "License-Expression")
    if expression is not None:
        return expression
    named = text_of(metadata, "License")
    if named is not None and len(named) <= longest:
        return named
    classifiers = (str(line) for line in metadata.get_all("Classifier") or [])
    names = (line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::"))
    return " OR ".join(name for name in names if name.upper() not in UNSAID) or None


def home_page_of(metadata: PackageMetadata) -> str | None:
    home = text_of(metadata, "Home-page")
    if home is not None:
        return home
    links: dict[str, str] = {}
    for entry in metadata.get_all("Project-URL") or []:
        label, _, address = str(entry).partition(",")
        links.setdefault(re.sub(r"[^a-z]", "", label.lower()), address.strip())
    return next((links[label] for label in HOME_LABELS if links.get(label)), None)


def keywords_of(metadata: PackageMetadata) -> Iterable[str]:
    joined = text_of(metadata, "Keywords") or ""
    if "," in joined:
        words = joined.split(",")
    elif len(joined.split()) <= FEW_WORDS:
        words = [joined]
    else:
        words = joined.split()
    return dict.fromkeys(stripped for word in words if (stripped := word.strip()))


def json_line(row: Row) -> bytes:
    """One UTF-8 line. A lone surrogate has no UTF-8 form, so it stays the JSON escape that it came from."""
    text = json.dumps(row, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode() + b"\n"


if __name__ == "__main__":
    main()
