"""Journal: finished outcomes of a unit that is not committed yet, so that a kill does not lose them.

An object is one save: a line of ASCII with its unit, session, size and hash, and JSON lines below, compressed. (500
outcomes of receipts: 1.7 MB of JSON, 0.2 MB compressed, 33 ms of CPU time, of which zstd takes 2.) What is torn, from
elsewhere or about another document is passed over: it costs work, never a wrong row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.errors import OutputError
from pipeline.records import Document, Outcome
from pipeline.runtime.input import Unit
from pipeline.runtime.output.outcomes import from_bytes, outcome_of, to_bytes
from pipeline.runtime.store import Store, writing
from pipeline.schema.fingerprint import digest
from pipeline.schema.plan import NO_PLAN, DecodingPlan

JOURNAL = "_journal"
_FORMAT = b"gristmill-journal-2"
_MAX_HEADER = 200


class Journal:
    """The saved outcomes of one unit. `plans` are the run's, by which it is told whether an outcome is of today's work;
    without them that is left to the run's directory, which belongs to one set of plans. `session` is who saves.

    `news` are rows that another session saved: those of this one were counted when they finished.
    """

    def __init__(
        self, store: Store, unit: Unit, plans: Mapping[str, DecodingPlan] | None = None, session: str = "-"
    ) -> None:
        self._store = store
        self._unit = unit.id
        self._plans = plans
        self._folder = f"{JOURNAL}/{unit.id}/"
        self._known: set[str] = set()
        self._session = session
        self.news: set[int] = set()

    def read(self, documents: Sequence[Document]) -> dict[int, Outcome]:
        """The saved outcomes by row in the unit, whose documents these are.

        Raises:
            OutputError: the store cannot be listed. An object that cannot be read is passed over.
        """
        try:
            self._known.update(entry.key for entry in self._store.list(self._folder))
        except OSError as error:
            raise OutputError(f"cannot look into {self._store.where}/{self._folder}: {error}") from error
        found: dict[int, Outcome] = {}
        mine: set[int] = set()
        for key in sorted(self._known):
            with contextlib.suppress(OSError):
                session, lines = _opened(self._store.get(key) or b"", self._unit)
                rows = dict(filter(None, (self._saved(line, documents) for line in lines)))
                mine |= rows.keys() if session == self._session else set()
                found |= rows
        self.news = found.keys() - mine
        return found

    def save(self, outcomes: Mapping[int, Outcome]) -> None:
        """Keep outcomes by row in the unit, as one new object. One that JSON cannot hold is left out.

        Raises:
            OutputError: the object cannot be written.
        """
        lines = list(filter(None, (_line(row, outcome) for row, outcome in outcomes.items())))
        if not lines:
            return
        key = f"{self._folder}{uuid.uuid4().hex}.jsonl.zst"
        with writing(f"finished documents of unit {self._unit} below {self._store.where}"):
            self._store.put(key, _packed(b"\n".join(lines), self._unit, self._session))
        self._known.add(key)

    def clear(self) -> None:
        """Remove what this process read and saved of the unit. What others saved meanwhile, and what cannot be removed
        now, is swept when the run is committed."""
        for key in sorted(self._known):
            with contextlib.suppress(OSError):
                self._store.delete(key)
                self._known.discard(key)

    def _saved(self, line: bytes, documents: Sequence[Document]) -> tuple[int, Outcome] | None:
        """A line's row and outcome, if it is about the document of that row."""
        try:
            item = from_bytes(line)
            row, outcome = item["row"], outcome_of(item["outcome"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if type(row) is not int or not 0 <= row < len(documents):
            return None
        document = documents[row]
        # The same input may be known under another relative path by now.
        return (row, dataclasses.replace(outcome, source=document.source)) if self._is_of(outcome, document) else None

    def _is_of(self, outcome: Outcome, document: Document) -> bool:
        if (outcome.document_id, outcome.schema) != (document.id, document.schema):
            return False
        if self._plans is None:
            return True
        plan = self._plans.get(document.schema) if document.schema else NO_PLAN
        return plan is not None and outcome.work_digest == digest([document.text, plan.digest])


def _line(row: int, outcome: Outcome) -> bytes:
    try:
        return to_bytes({"row": row, "outcome": outcome})
    except (ValueError, TypeError, RecursionError):  # it is only saved: after a kill the document is extracted again
        return b""


def _packed(content: bytes, unit: str, session: str) -> bytes:
    import pyarrow as pa

    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    about = b"%s %s %s %d" % (_FORMAT, unit.encode(), session.encode(), len(content))
    return b"%s %s\n%s" % (about, _hash(about, packed), packed)


def _opened(data: bytes, unit: str) -> tuple[str, list[bytes]]:
    """The session and the lines of an object that is whole and of this unit; no lines of any other."""
    import pyarrow as pa

    header, _, packed = data.partition(b"\n")
    about, _, found = header.rpartition(b" ") if len(header) <= _MAX_HEADER else (b"", b"", b"")
    words = about.split(b" ")
    if len(words) != 4 or words[:2] != [_FORMAT, unit.encode()] or found != _hash(about, packed):
        return "", []
    with contextlib.suppress(pa.ArrowException, OSError, ValueError):
        content: Any = pa.decompress(packed, decompressed_size=int(words[3]), codec="zstd", asbytes=True)
        return words[2].decode(), content.split(b"\n")
    return "", []


def _hash(about: bytes, packed: bytes) -> bytes:
    """Of all that an object says, its header included: a flipped bit anywhere makes it another object."""
    return hashlib.sha256(b"%s\n%s" % (about, packed)).hexdigest().encode()
