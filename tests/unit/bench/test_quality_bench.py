"""The sets of `bench.quality`: what is measured is not shown to the model, and what is laid out is a job."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from bench.quality import EMBEDDED, Arm
from bench.quality_sets import SETS, Set, lay_out
from pipeline.errors import InputError
from pipeline.evaluate.gold import GoldConfig, fault_of, read_gold
from pipeline.jobfile import load_engine, load_job
from pipeline.schema.registry import available, load_schema
from pipeline.schema.validator import validator_of

SHARED = Path(os.environ.get("GRISTMILL_SHARED") or Path(__file__).resolve().parents[4] / "shared") / "data" / "docs"


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_a_set_is_laid_out_as_a_job_with_valid_gold_and_other_examples(one: Set, tmp_path: Path) -> None:
    if not (SHARED / one.folder / "docs.jsonl").is_file():
        pytest.skip(f"{one.folder} is not here: set GRISTMILL_SHARED")
    laid = lay_out(one, 5, tmp_path)
    assert laid.count == 5 < laid.there
    documents = [json.loads(line) for line in laid.documents.read_text(encoding="utf-8").split("\n") if line]
    gold = {row.id: row for row in read_gold(GoldConfig(str(laid.gold)))}
    assert [row["id"] for row in documents] == list(gold)
    for name in available(laid.schemas):
        schema = load_schema(laid.schemas, name)
        assert not {example.document for example in schema.examples} & {row["text"] for row in documents}
        validator = validator_of(schema.body)
        assert not [
            fault_of(row.record, validator)
            for row in gold.values()
            if row.schema == name and fault_of(row.record, validator)
        ]
    again = lay_out(one, 5, tmp_path / "again")
    assert again.documents.read_bytes() == laid.documents.read_bytes()
    for arm in ("constrained", "free"):
        engine = load_engine(EMBEDDED.partition("=")[2]).model_dump(mode="json")
        path = tmp_path / f"{arm}.yaml"
        path.write_text(yaml.safe_dump(Arm(one, "embedded", engine, arm, 5).job(laid, tmp_path)))
        assert load_job(path).sampling.constrained == (arm == "constrained")


def test_a_set_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_SHARED", str(tmp_path))
    with pytest.raises(InputError, match="GRISTMILL_SHARED"):
        lay_out(SETS[0], 5, tmp_path)
