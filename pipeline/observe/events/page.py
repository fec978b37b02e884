"""The page of events: `python -m pipeline.observe.events.page` writes docs/events.md from `catalogue`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.observe.events.catalogue import ALWAYS, KINDS, MEMBERS, TEXT_MEMBERS, Kind
from pipeline.observe.events.line import MAX_ITEMS, MAX_STRING, MAX_TEXT, PATTERN_SECONDS, REDACTED, UNSHOWN
from pipeline.observe.events.log import QUEUE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "events.md"

_HEAD = f"""\
# Events: a run as JSON lines

<!-- Written by `python -m pipeline.observe.events.page` from pipeline/observe/events/catalogue.py. Do not edit. -->

A run writes no log unless its job says where:

```yaml
events:
  path: ../logs          # a directory, on each machine of the run; null (default): nothing is written
  text: false            # true: also what documents, models and servers say
  redact: []             # regular expressions; what they find in any string becomes {REDACTED}
  max_bytes: 10000000    # of one file
  keep: 5                # files of one process; the oldest go first
```

Each process appends to files of its own, `<job>-<run>-<process>.<number>.jsonl` (`no-run` where there is none), one
JSON object a line, in ASCII. A collector (Vector, Fluent Bit, Promtail, Filebeat) can follow `*.jsonl` there; each
command adds files for its processes, so remove old ones as you do with other logs. The keys are no part of a run's
identity, and nothing that is written, lost or late changes what becomes of a document.

```json
{{"time":"2026-11-30T09:14:03.518204Z","event":"document_rejected","level":"warning","job":"receipts","run":"9f1c…","process":"extract-1c7b02f4",\
"document":"r-17","schema":"receipt@1","status":"rejected","attempt":2,"attempts":2,"code":"truncated","codes":["truncated"],"seq":41}}
```

The settings of an [online endpoint](online.md) take the same `events`; it writes those of its documents, with the
application's name as `job`.

- **Quiet**: a document whose first answer is valid has no line.
- **At least once**: what a process did last before it died may be done, and told, again. What counts is the manifest.
- **No text**: without `text: true` a line holds ids, names, codes and numbers, and `reason`, which is made of these.
  Messages of problems and errors quote documents, answers or servers, and pointers hold keys that a model may have made
  up, so they count as text. Ids are written as the input has them.
- **Bounded**: strings are cut at {MAX_STRING} characters, texts and reasons at {MAX_TEXT}, lists at {MAX_ITEMS} items.
  {QUEUE:,} events may wait for the disk; further ones are lost.
- **Redaction** comes before anything is cut. No pattern is tried on `time`, `event`, `level` and `run`. A string on
  which one takes longer than {PATTERN_SECONDS:g} s is written as `{UNSHOWN}`. Patterns are not kept in
  `run.json`.
- **Nothing fails for it**: what cannot be written is counted in `events_lost`, and the command says so once on the
  terminal (an endpoint in its replica's log).

Library users can change or drop events: `flow.run(job, observe, hook=mask)`, where `mask` is called with each event, a
dict, in a thread of each process, and returns the one to be written, or None. Patterns are tried on what it returns. Of
an event for which it raises, nothing is written.

"""


def page() -> str:
    """The whole page as Markdown."""
    return "\n".join([_HEAD + _members("On every line", ALWAYS), *_events(), *_tables()])


def _events() -> Iterator[str]:
    yield "## Events"
    yield ""
    yield "| event | level | what happened | members | with `text: true` |"
    yield "|---|---|---|---|---|"
    for name, kind in KINDS.items():
        yield _row(name, kind)
    yield ""


def _row(name: str, kind: Kind) -> str:
    members, text = (", ".join(f"`{one}`" for one in group) for group in (kind.members, kind.text))
    return f"| `{name}` | {kind.level} | {kind.meaning} | {members} | {text} |"


def _tables() -> Iterator[str]:
    yield _members("Members", MEMBERS)
    yield _members("Members with `text: true`", TEXT_MEMBERS)


def _members(title: str, members: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in members.items()]
    return "\n".join([f"## {title}", "", "| member | what it is |", "|---|---|", *rows, ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
