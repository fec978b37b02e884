"""Sample: the first prompts of some documents of each schema, picked by seed, in the engine's own tokens."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from pipeline.compile.plans import max_tokens_of
from pipeline.cost.estimate import Estimate, count_of, total_of
from pipeline.engines.chat import ChatTokenizer
from pipeline.engines.models import resolve
from pipeline.job import EMBEDDED_MODEL, JobConfig, RecordedConfig
from pipeline.records import Document, Prompt
from pipeline.runtime.input import Unit, read_unit
from pipeline.schema.plan import DecodingPlan
from pipeline.steps.clean import clean
from pipeline.steps.prompt import render
from pipeline.steps.route import worth_asking


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was seen of a schema of `documents` documents. `prompts` are the tokens of the first prompts of sampled
    documents that an engine decodes for, 0 for those that it does not: `unasked` are rejected as they are read
    (empty, unreadable, repeated ids), `too_long` leave no room for an answer in the context. `longest` is the
    longest prompt that was counted, `prefix` what all of them begin with."""

    documents: int
    prompts: tuple[int, ...]
    unasked: int
    too_long: int
    longest: int
    prefix: int

    @property
    def prompt_tokens(self) -> Estimate:
        """Tokens of the first prompts of all documents."""
        return total_of(self.prompts, self.documents)

    @property
    def asked(self) -> Estimate:
        """Documents that an engine decodes something for."""
        return count_of(len(self.prompts) - self.unasked - self.too_long, len(self.prompts), self.documents)

    @property
    def rejected_unasked(self) -> Estimate:
        """Documents that are rejected as they are read."""
        return count_of(self.unasked, len(self.prompts), self.documents)

    @property
    def beyond_context(self) -> Estimate:
        """Documents that do not fit the engine's context together with an answer."""
        return count_of(self.too_long, len(self.prompts), self.documents)


def sample(
    units: Sequence[Unit], job: JobConfig, plans: Mapping[str, DecodingPlan], most: int, seed: int
) -> dict[str, Sampled]:
    """At most `most` documents of each schema that is not refused, each document with the same chance.

    The same seed picks the same documents. Each unit that holds one is read whole.

    Raises:
        EngineError: the model's tokenizer is missing, or it has no chat template.
        InputError: the input cannot be read, or was changed since the scan.
    """
    names = [name for name, plan in plans.items() if not plan.refused]
    if not names:
        return {}
    counter = _Counter(job)
    return {
        name: counter.counted(group, plans[name], picked(group, most, f"{seed} {name}"))
        for name in names
        if (group := [unit for unit in units if unit.schema == name])
    }


def picked(group: Sequence[Unit], most: int, seed: str) -> dict[int, list[int]]:
    """Rows of a group of units, picked by seed, `most` of them: by the place of their unit in the group, counted from
    the unit's first document."""
    ends = list(accumulate(unit.rows for unit in group))
    rows: Sequence[int] = range(ends[-1])
    if len(rows) > most:
        rows = sorted(random.Random(seed).sample(rows, most))
    picked: dict[int, list[int]] = {}
    for row in rows:
        place = bisect_right(ends, row)
        picked.setdefault(place, []).append(row - (ends[place] - group[place].rows))
    return picked


class _Counter:
    """Counts as the job's engine does before it decodes: cleaned text, real prompt, chat template, room to answer."""

    def __init__(self, job: JobConfig) -> None:
        self._job = job
        model = EMBEDDED_MODEL if isinstance(job.engine, RecordedConfig) else job.engine.tokenizer_model
        self._chat = ChatTokenizer(resolve(model))
        self._context = job.context_of("")
        self._room = max_tokens_of(job)

    def counted(self, group: Sequence[Unit], plan: DecodingPlan, picked: Mapping[int, Sequence[int]]) -> Sampled:
        """What these rows of a schema's units come to."""
        prompts: list[int] = []
        unasked = too_long = longest = 0
        for document in self._documents(group, picked):
            if not worth_asking(document):
                prompts.append(0)
                unasked += 1
                continue
            tokens = self._tokens(document, plan)
            fits = tokens is not None and (self._context is None or tokens + self._room <= self._context)
            prompts.append(tokens if tokens is not None and fits else 0)
            too_long += not fits
            longest = max(longest, tokens or 0)
        documents = sum(unit.rows for unit in group)
        return Sampled(documents, tuple(prompts), unasked, too_long, longest, self._prefix(plan))

    def _documents(self, group: Sequence[Unit], picked: Mapping[int, Sequence[int]]) -> Iterator[Document]:
        for place, rows in picked.items():
            documents = read_unit(group[place], self._job.input)
            yield from (documents[row] for row in rows)

    def _tokens(self, document: Document, plan: DecodingPlan) -> int | None:
        """Tokens of the first prompt; None if it is so long that it need not be counted."""
        prompt = render(clean(document.text, self._job.clean).text, plan, cite=self._job.cite)
        if self._context is not None and self._chat.surely_exceeds(prompt, self._context):
            return None
        return len(self._chat.encode(prompt))

    def _prefix(self, plan: DecodingPlan) -> int:
        """Tokens that the prompts of all documents begin with: they differ where the fence names the document."""
        one, other = (self._chat.encode(Prompt(plan.prefix, user)) for user in ("", "x"))
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
