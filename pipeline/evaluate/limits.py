"""Limits: what an evaluation is to reach, such as `f1=0.8`, `/total:recall=0.9` or `receipt@1/total:f1=0.9`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import JobFileError
from pipeline.evaluate.build import Evaluation
from pipeline.evaluate.intervals import Rate
from pipeline.evaluate.scores import Scores

_LIMIT = re.compile(r"(?:(?P<schema>[^/:=\s]*)(?P<pointer>/[^=]*):)?(?P<name>[a-z0-9_.]+)=(?P<bound>[0-9.eE+-]+)")


@dataclass(frozen=True, slots=True)
class Held:
    """One limit and whether it is kept. `value` is what is held against it: the rate, or the end of its interval; None
    where there is nothing to count, which keeps no limit."""

    limit: str
    bound: float
    at_least: bool
    value: float | None
    kept: bool


def held(found: Evaluation, least: Sequence[str], most: Sequence[str], *, sure: bool) -> list[Held]:
    """Hold an evaluation against limits; `sure`: the whole interval has to keep them.

    Raises:
        JobFileError: a limit cannot be read, or names no rate of the evaluation.
    """
    limits = [(text, True) for text in least] + [(text, False) for text in most]
    return [_held(found, text, at_least, sure) for text, at_least in limits]


def _held(found: Evaluation, text: str, at_least: bool, sure: bool) -> Held:
    match = _LIMIT.fullmatch(text)
    try:
        bound = float(match["bound"]) if match else None
    except ValueError:
        bound = None
    if match is None or bound is None:
        raise JobFileError(f"{text!r} is no limit: write NAME=NUMBER or /POINTER:NAME=NUMBER, such as f1=0.8.")
    rate = _rate(found, match["schema"] or "", match["pointer"], match["name"], text)
    value = (rate.low if at_least else rate.high) if sure else rate.value
    kept = value is not None and (value >= bound if at_least else value <= bound)
    return Held(text, bound, at_least, value, kept)


def _rate(found: Evaluation, schema: str, pointer: str | None, name: str, text: str) -> Rate:
    rates: dict[str, Rate]
    if pointer is None:
        rates = dict(found.overall.rates)
        for metric, parts in (found.published or {}).items():
            rates |= {f"{metric}.{part}": rate for part, rate in parts.items()}
    else:
        fields = list(_fields(found, schema, pointer))
        if len(fields) != 1:
            there = "several schemas have it: name one" if fields else "no field of this name was judged"
            raise JobFileError(f"{text!r}: {there}; pointers have * for indexes.")
        rates = dict(fields[0].rates)
    if name not in rates:
        raise JobFileError(f"{text!r}: there is no rate {name!r}, but {', '.join(rates)}.")
    return rates[name]


def _fields(found: Evaluation, schema: str, pointer: str) -> Iterator[Scores]:
    for name, fields in found.fields.items():
        if schema in ("", name, name.partition("@")[0]) and pointer in fields:
            yield fields[pointer]
