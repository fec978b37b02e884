"""Judge: what one schema's records are held against, built once per process; and the proof that formats are checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jsonschema.protocols import Validator

from pipeline.errors import EngineError
from pipeline.schema.alongside import Accepts, accepts_by
from pipeline.schema.columns import Column, column_of
from pipeline.schema.formats import format_checker
from pipeline.schema.lately import Lately
from pipeline.schema.plan import DecodingPlan
from pipeline.schema.validator import validator_of

BAD = {
    "date": "2024-02-30",
    "time": "25:00:00Z",
    "date-time": "yesterday",
    "duration": "1 day",
    "uuid": "2eb8aa08",
    "ipv4": "300.1.1.1",
    "ipv6": "12345::",
    "email": "nobody",
    "idn-email": "nobody",
    "hostname": "-a-",
    "uri": "not a uri",
    "uri-reference": "not a uri",
    "iri": "not an iri",
    "iri-reference": "not an iri",
    "json-pointer": "a",
    "relative-json-pointer": "-1",
    "regex": "(",
    "idn-hostname": "-a-",
    "uri-template": "{",
}
"""A value for each format that schemas may rely on, which a sound installation refuses."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The validators of what is accepted and of what was asked, and the columns of one schema, built once."""

    validator: Validator
    column: Column
    asked: Validator

    @property
    def accepts(self) -> Accepts:
        """Whether a subschema of what is accepted takes a value."""
        return accepts_by(self.validator)


_JUDGES: Lately[tuple[str, str], Judge] = Lately()
"""By schema name and digest."""


def judge_of(plan: DecodingPlan) -> Judge:
    """The judge of a plan's acceptance schema.

    Raises:
        EngineError: formats are not checked in this process.
    """
    return _JUDGES.get((plan.name, plan.schema_digest), lambda: _judge(plan))


def _judge(plan: DecodingPlan) -> Judge:
    check_formats()
    accepted = validator_of(plan.acceptance)
    same = not plan.asked or plan.asked is plan.acceptance or plan.asked == plan.acceptance
    return Judge(accepted, column_of(plan.acceptance), accepted if same else validator_of(plan.asked))


@cache
def check_formats() -> None:
    """See to it that this process refuses a bad value of every format: a check whose package is missing passes all.

    Raises:
        EngineError: it does not.
    """
    checker = format_checker()
    passed = [name for name, bad in BAD.items() if checker.conforms(bad, name)]
    if passed:
        raise EngineError(
            f"formats are not checked in this process: it accepts a bad {', '.join(passed)}. Install the locked "
            "packages (jsonschema with its extra format-nongpl) on every machine."
        )
