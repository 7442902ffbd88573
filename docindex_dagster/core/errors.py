"""Every error that docindex raises on purpose.

Each message says what happened, where, and what to do, in one or two lines, so that the command line can print it as
it is. Anything else that escapes is a bug and shows a traceback.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEBUG = "DOCINDEX_DEBUG"


def is_debugging() -> bool:
    """Whether stack traces are wanted."""
    return os.environ.get(_DEBUG) == "1"


def start_debugging() -> None:
    """Ask for stack traces, in this process and in those that it starts."""
    os.environ[_DEBUG] = "1"


class DocindexError(Exception):
    """Base of all errors that a user can act on."""


class SettingsError(DocindexError):
    """`docindex.toml` or a `DOCINDEX_*` variable holds something that cannot be used."""


class OwnershipError(SettingsError):
    """A project, home or cache belongs to another user, or other users may write it."""


class SourceError(DocindexError):
    """A source is unknown, missing on disk, or cannot be read as what it claims to be."""


class DeclaredError(SourceError):
    """A source is declared already."""


class NoRootError(SourceError):
    """A folder is not the root of a git work tree, or its `.git` cannot be read as one."""


class NotThereError(SourceError):
    """A repository answers, but the branch, tag or commit that is followed is not there."""


class NoAnswerError(SourceError):
    """Git was ended since it, or the disk or server that it waited for, did not answer in time."""


class EmbeddingError(DocindexError):
    """An embedding provider failed or returned vectors that cannot be used."""


class PluginError(DocindexError):
    """A stage that a package offers cannot be loaded, or does not fit between the others."""


class ConceptError(DocindexError):
    """An extractor of concepts is not there, cannot be loaded, or returned what are no concepts."""


class PartialEmbeddingError(EmbeddingError):
    """A provider failed after it had embedded some texts of a call.

    `vectors`, shape (texts, dimension), has rows of NaN where there are none. With `go_on`, the fault
    lies with the texts that have none, and others can be embedded.
    """

    def __init__(self, message: str, vectors: "NDArray[np.float32]", *, go_on: bool) -> None:
        self.vectors = vectors
        self.go_on = go_on
        super().__init__(message)


class StoreError(DocindexError):
    """A store is missing, damaged, or written by another version."""


class DamagedStoreError(StoreError):
    """Files of a store are missing or cannot be read; building the stores anew mends it.

    `problem` is the message without its advice, for who is at work on it already.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        self.problem = problem
        super().__init__(f"{problem}; {advice}" if advice else problem)


class LostTableError(StoreError):
    """A table that an earlier stage made is missing or damaged."""


class ErasureError(StoreError):
    """A file still holds text that was erased, or cannot be searched for it."""


class AccessError(DocindexError):
    """The index may be well, but this process may not use it: files are denied to its user, or another holds a lock.

    It is no `StoreError`: nothing would be mended by building the stores anew.
    """


class LinkError(AccessError):
    """A home contains a symbolic link, which docindex does not follow."""


class LockError(DocindexError):
    """The locks between machines cannot be used."""


class LostLockError(LockError):
    """A process does not hold a lock any more: it, or what keeps the lock, was away for too long.

    Nothing that it did since is visible; a new run does it.
    """


class ChunkerError(DocindexError):
    """A chunker that the settings name is not there, cannot be loaded, or returned what does not fit its file."""


class WorkerError(DocindexError):
    """The processes that parse files cannot be started."""


class FullDiskError(DocindexError):
    """There is no space left for what is to be written; what was published stays."""


class VerificationError(DocindexError):
    """Rows break a rule of the index and were not written.

    `failures` maps the name of each broken check to a sentence with the first offenders.
    """

    def __init__(self, stage: str, failures: dict[str, str]) -> None:
        self.stage = stage
        self.failures = failures
        super().__init__(f"{stage}: " + "; ".join(f"{name}: {text}" for name, text in failures.items()))


class AgentError(DocindexError):
    """The file of an agent cannot be read or edited; nothing was written to it."""


class WatchError(DocindexError):
    """The system reports no changes of files."""


class AlertError(DocindexError):
    """The report of a failure could not be sent."""


class QueryError(DocindexError):
    """A search cannot be run as asked."""


class QuestionError(DocindexError):
    """A file of questions is wrong, or there is no question to evaluate a search by."""


class CollectingOffError(DocindexError):
    """Somewhere a question is to be noted, where the settings do not collect any."""


class ScipError(DocindexError):
    """A file of SCIP is damaged, or does not fit the source for which it is imported."""


class LLMError(DocindexError):
    """A language model cannot be loaded or reached, or answers what cannot be used. It never stops a run."""


class LLMKeyError(LLMError):
    """A language model wants a key or a login, or does not accept the one that it was given."""


class LLMUnreachableError(LLMError):
    """Nobody answers where a language model should."""


class LLMFailedError(LLMError):
    """The server of a language model fails for now; `retry_after_s` is how long it asks to wait, if it does."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class LLMLimitError(LLMFailedError):
    """A language model is asked too often, or the account is used up."""


class LLMTimeoutError(LLMError):
    """A language model did not answer in time."""


class LLMBrokenError(LLMError):
    """The answer of a language model broke off."""


class LLMNonsenseError(LLMError):
    """What is asked as a language model answers what is none of its answers."""


class LLMBudgetError(LLMError):
    """What a question may cost, in tokens or money, is used up."""


class RerankError(DocindexError):
    """A reranker cannot be loaded or reached, or answers what cannot be used."""


class JobError(DocindexError):
    """A job cannot be made, found or ended as asked."""


class UnknownJobError(JobError):
    """There is no job with this id, or no longer."""


class EndedJobError(JobError):
    """A job has ended already."""


class FullQueueError(JobError):
    """As many jobs wait as may; it is worth trying again after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class UsedKeyError(JobError):
    """The key of a request was used for another one."""


class JobsOffError(JobError):
    """The server takes no jobs."""


class DomainError(DocindexError):
    """What is given as the key of a domain is none."""


class MessageError(DocindexError):
    """A message cannot be taken as it is: its session is no name, or its text is too long."""


class LongMessageError(MessageError):
    """The text of a message is too long."""


class RateError(DocindexError):
    """More messages come than may; it is worth trying again after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class QuotaError(DocindexError):
    """A domain is as large as it may be."""


class LogError(DocindexError):
    """The log of a domain cannot be written or read; nothing that was to be written is acknowledged."""


class ObjectStoreError(DocindexError):
    """The object store does not answer, refuses, or holds what cannot be read; what was published stays."""


class DamagedObjectError(ObjectStoreError):
    """An object is missing, or its bytes are not what they were; to ask for it again is of no use."""


class ConflictError(ObjectStoreError):
    """Another process replaced meanwhile what this one was about to replace, so its work is given up."""


class DocindexWarning(UserWarning):
    """Something made an answer worse, and did not stop it: the Python API's warnings."""


def first_line(error: BaseException) -> str:
    """What an error of a library says, without the pages that some add."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
