"""What stops a job. A document's failure is never one of these: it is a coded Problem in its Outcome.

Each class has its own exit code, so that a scheduler can tell a typo from a full disk without reading text.
A message says what happened, where, and what to do about it.
"""

from __future__ import annotations


class GristmillError(Exception):
    """Base of everything that the command line reports without a traceback."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        # Not `args`: Ray Data appends advice about its own settings there on the way to the driver.
        return self.message


class JobFileError(GristmillError):
    """The job file, or an engine config that it names, cannot be used as written."""

    exit_code = 2


class InputError(GristmillError):
    """The input is missing, empty, unreadable, or lacks a column that the job names."""

    exit_code = 3


class SchemaError(GristmillError):
    """A document schema is unknown, malformed, or refused by the grammar back end. `code` says which, for programs."""

    exit_code = 4

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class EngineError(GristmillError):
    """The engine could not start, could not prove its constraint, or died."""

    exit_code = 5


class OutputError(GristmillError):
    """The output directory cannot be written, or what it holds does not add up."""

    exit_code = 6


class RunChangedError(GristmillError):
    """An unfinished run exists whose schema, job or engine is not today's; resuming would mix the two."""

    exit_code = 7


class ResourceError(GristmillError):
    """The machine lacks the memory that the job asks for."""

    exit_code = 8


class OutcomeUnknownError(OutputError):
    """Nobody can tell whether something was published. Nothing was deleted; running again finds out."""


class RunBusyError(GristmillError):
    """Another driver is at this run."""

    exit_code = 9


class StoppedError(GristmillError):
    """`stop_if` of the job stopped a schema's documents before they were all processed. The run can be resumed."""

    exit_code = 10


class StalledError(GristmillError):
    """No document finished for too long. The run can be resumed."""

    exit_code = 11


class SubmissionError(GristmillError):
    """A job server does not answer, refuses, or lost what was submitted to it."""

    exit_code = 12


class NotReachedError(SubmissionError):
    """A job server did not answer, or not sensibly. It may have done what it was asked, and may answer later."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came. As Ctrl-C, it leaves what is in flight a while to finish."""
