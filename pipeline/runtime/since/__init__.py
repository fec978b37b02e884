"""Incremental runs (`input.since: last`): only what is new or changed since the job's last committed run."""

from pipeline.runtime.since.choose import AGAIN, Since, since_last
from pipeline.runtime.since.last import Base, last_run

__all__ = ["AGAIN", "Base", "Since", "last_run", "since_last"]
