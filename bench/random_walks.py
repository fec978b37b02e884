"""Random answers under the real matchers: whether each one ends, and breaks only what the plan announced.

`python -m bench.random_walks [--documents N] [--save]`: over every schema of the repository and 100 handed ones, with
both back ends, by the sampler's chooser. Each schema and back end has a process of its own with a time limit. For the
repository's schemas, records that together show every branch, key and enum member are decoded, too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench import machine

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "bench/results/random_walks.json"
BACKENDS = ("xgrammar", "guidance")
HANDED = 100
MOST_TOKENS = 150
SECONDS = 120.0
"""For one schema under one back end."""


class Tools:
    """The embedded model's tokenizer in every form; made before the first fork, it starts no thread."""

    def __init__(self) -> None:
        from pipeline.engines.draw import Vocabulary as Tokens
        from pipeline.engines.models import load_tokenizer, resolve, vocabulary_size
        from pipeline.engines.vocabulary import Vocabulary

        model = resolve("embedded")
        tokenizer = load_tokenizer(model)
        self.vocabulary = Vocabulary(tokenizer, vocabulary_size(model))
        self.tokens = Tokens(tokenizer, self.vocabulary.size, frozenset())
        _ = self.vocabulary.xgrammar, self.vocabulary.guidance


def schemas() -> Iterator[tuple[str, bool, Any]]:
    """(name, whether it is the repository's, body)."""
    from pipeline.errors import SchemaError
    from pipeline.schema.registry import available, document_schema, load_schema

    for name in available(ROOT / "schemas"):
        yield name, True, load_schema(ROOT / "schemas", name).body
    shared = ROOT / os.environ.get("GRISTMILL_SHARED", "../shared")
    handed = shared / "data/schemas/jsonschemabench_300.jsonl"
    found = 0
    for line in handed.read_text(encoding="utf-8").split("\n") if handed.is_file() else ():
        if line and found < HANDED:
            row = json.loads(line)
            try:
                body = document_schema(row["schema"], "handed@1").body
            except SchemaError:
                continue
            found += 1
            yield str(row["id"]), False, body


def walked(tools: Tools, body: Any, backend: Any, count: int, steer: bool) -> dict[str, Any]:
    """How so many random answers of one schema end, and what they break."""
    from pipeline.engines.draw import Draw
    from pipeline.engines.grammar import Grammar
    from pipeline.errors import SchemaError
    from pipeline.schema.probe.walks import walk
    from pipeline.schema.shape.read import read
    from pipeline.schema.transport import written
    from pipeline.schema.validator import validator_of

    shapes = read(body)
    transport = written(shapes, backend)
    if not transport.satisfiable:
        return {"state": "unsatisfiable"}
    grammar = Grammar(tools.vocabulary, backend, True, tools.vocabulary.size)
    validator = validator_of(body)
    ends: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    cases: list[Any] = []
    try:
        for seed in range(count):
            matcher = grammar.matcher(transport.text)
            made = walk(matcher, Draw(tools.tokens, seed).choose, tools.tokens.end_ids, MOST_TOKENS)
            ends[made.end] += 1
            text = b"".join(tools.tokens.texts[token] for token in made.tokens).decode("utf-8", "replace")
            verdict, sites = _judged(body, validator, text, transport.left) if made.end == "finished" else ("cut", [])
            verdicts[verdict] += 1
            if made.end in ("dead_end", "error") or verdict in ("unannounced", "broken"):
                cases.append({"end": made.end, "seed": seed, "text": text[:500], "sites": sites, "words": made.words})
        answer = {"state": "walked", "ends": dict(ends), "verdicts": dict(verdicts), "cases": cases[:5]}
        return answer | (_steered(tools, grammar, shapes, body, transport.text) if steer else {})
    except SchemaError as error:
        return {"state": "refused", "words": error.message[:300]}


def _judged(body: Any, validator: Any, text: str, left: Any) -> tuple[str, list[Any]]:
    """valid, announced or unannounced; `unread` for JSON that is refused before it is validated (a key twice, a number
    beyond doubles, which no grammar holds back); `broken` for what is no JSON."""
    from pipeline.schema.shape.announced import unannounced
    from pipeline.steps.parse import Unparsable, loads

    try:
        value = loads(text)
    except Unparsable as error:
        return ("unread" if error.code in ("duplicate_key", "number_not_finite") else "broken"), []
    errors = list(islice(validator.iter_errors(value), 100))
    if not errors:
        return "valid", []
    sites = unannounced(body, errors, left)
    return ("unannounced", sites) if sites else ("announced", [])


def _steered(tools: Tools, grammar: Any, shapes: Any, body: Any, text: str) -> dict[str, Any]:
    """Records that show every option, key, count and enum member: the marks, and how many were not decoded."""
    from pipeline.schema.probe.draw import Drawer, covered_by
    from pipeline.schema.shape.canonical import canonical_text
    from pipeline.schema.shape.source import Source

    drawer, source = Drawer(shapes, random.Random(1)), Source(body)
    missed = set(drawer.atlas.marks())
    marks = len(missed)
    for drawn in covered_by(drawer, 2000):
        matcher = grammar.matcher(text)
        record = canonical_text(source, drawn.value)
        tokens = tools.vocabulary.tokenizer.encode(record, add_special_tokens=False, split_special_tokens=True)
        if all(map(matcher.accept, tokens)) and matcher.finished():
            missed -= drawn.marks
    return {"marks": marks, "marks_missed": len(missed)}


def guarded(tools: Tools, *task: Any) -> dict[str, Any]:
    """`walked` in a process of its own; `crashed` or `late` where it gives no answer."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, tools, *task))
    process.start()
    theirs.close()
    try:
        answer: dict[str, Any] = ours.recv() if ours.poll(SECONDS) else {"state": "late"}
    except EOFError:
        answer = {"state": "crashed"}
    process.kill()
    process.join()
    return answer


def _child(pipe: Any, tools: Tools, *task: Any) -> None:
    pipe.send(walked(tools, *task))


def run(documents: int) -> dict[str, Any]:
    """Walk all schemas evenly. The result is plain JSON."""
    tools, todo = Tools(), list(schemas())
    count = -(-documents // (len(todo) * len(BACKENDS)))
    started = time.monotonic()
    rows = []
    for name, ours, body in todo:
        for backend in BACKENDS:
            answer = guarded(tools, body, backend, count, ours)
            rows.append({"schema": name, "ours": ours, "backend": backend, **answer})
            if answer.get("cases") or answer["state"] != "walked":
                print(name, backend, answer["state"], str(answer.get("cases", ""))[:300], flush=True)
    return {
        "machine": machine.describe(),
        "seconds": round(time.monotonic() - started, 1),
        "schemas": {"repository": sum(ours for _, ours, _ in todo), "handed": sum(not ours for _, ours, _ in todo)},
        "walks_each": count,
        "most_tokens": MOST_TOKENS,
        "total": {backend: _total([row for row in rows if row["backend"] == backend]) for backend in BACKENDS},
        "not_walked": [row for row in rows if row["state"] != "walked"],
        "cases": [row for row in rows if row.get("cases")],
        "steered": [row for row in rows if "marks" in row],
    }


def _total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ends: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for row in rows:
        ends.update(row.get("ends", {}))
        verdicts.update(row.get("verdicts", {}))
    states = Counter(row["state"] for row in rows)
    return {"documents": sum(ends.values()), "states": dict(states), "ends": dict(ends), "verdicts": dict(verdicts)}


def main() -> None:
    """Run and print; `--save` writes the results file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    result = run(options.documents)
    print(json.dumps(result["total"], indent=1))
    if options.save:
        RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
