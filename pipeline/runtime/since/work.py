"""Work: what makes a record reusable besides its document, by schema.

That is the acceptance schema with its annotations, instructions, examples, policy, rules' params, cleaning, citing, and
what values are looked up in. Engine, back end, sampling and retries are not in it: a record that was judged by the same
schema and rules stays a record when a better model comes, and is made again only on request.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pipeline.errors import SchemaError
from pipeline.job import JobConfig
from pipeline.runtime.lookups import Digests
from pipeline.runtime.output.secrets import without_secrets
from pipeline.schema.fingerprint import digest
from pipeline.schema.registry import load_schema

REFUSED = "refused"
NO_SCHEMA = "none"


class Work:
    """Loads a schema when it is first asked for: which ones an input names is not known before it is read."""

    def __init__(self, job: JobConfig, lookups: Digests) -> None:
        policy = job.policy.model_dump(mode="json", exclude={"preset"})  # what the preset fills in is there
        params = without_secrets(job.model_dump(mode="json", include={"params"})["params"])[0]
        self._settings = [policy, job.clean, job.cite, params, list(dict.fromkeys(job.input.columns))]
        self._job = job
        self._lookups = lookups
        self.known: dict[str, str] = {}
        """The digests that were asked for, by schema."""

    def of(self, schema: str) -> str:
        """The digest for documents of a schema, "" where they name none.

        A schema that cannot be loaded has one, too: its documents are rejected once and not every night.
        """
        found = self.known.get(schema)
        if found is None:
            found = self.known[schema] = digest([*self._settings, self._schema(schema), self._looked_up(schema)])
        return found

    def _schema(self, name: str) -> Any:
        if not name:
            return NO_SCHEMA
        try:
            schema = load_schema(self._job.schemas, name)
        except SchemaError:
            return [name, REFUSED]
        return [name, schema.digest, schema.instructions, [asdict(example) for example in schema.examples]]

    def _looked_up(self, schema: str) -> list[Any]:
        """The lookups that speak of a schema, by what they hold and not by where they lie."""
        return [
            [lookup.model_dump(mode="json", exclude={"path"}), self._lookups[lookup.path, lookup.column]]
            for lookup in self._job.lookups
            if lookup.schema_name in (None, schema)
        ]
