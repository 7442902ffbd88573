"""Every error that docindex raises deliberately.

Each message says in one or two lines what happened, where, and what to do, so the command line prints it unchanged.
Any other exception that escapes is a bug and shows a traceback.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEBUG = "DOCINDEX_DEBUG"


def is_debugging() -> bool:
    """Return whether to show stack traces."""
    return os.environ.get(_DEBUG) == "1"


def start_debugging() -> None:
    """Enable stack traces in this process and its child processes."""
    os.environ[_DEBUG] = "1"


class DocindexError(Exception):
    """Base class of all errors that a user can act on."""


class SettingsError(DocindexError):
    """`docindex.toml` or a `DOCINDEX_*` variable contains an invalid value."""


class OwnershipError(SettingsError):
    """A project, home or cache belongs to another user, or other users can write to it."""


class SourceError(DocindexError):
    """A source is unknown, missing on disk, or cannot be read as its declared kind."""


class AlreadyDeclaredError(SourceError):
    """A source is already declared."""


class NotARepositoryRootError(SourceError):
    """A folder is not the root of a git working tree, or its `.git` is invalid."""


class RevisionNotFoundError(SourceError):
    """A repository responds, but the followed branch, tag or commit does not exist in it."""


class GitTimeoutError(SourceError):
    """Git was terminated because it, or the disk or server it was waiting for, timed out."""


class EmbeddingError(DocindexError):
    """An embedding provider failed or returned unusable vectors."""


class PluginError(DocindexError):
    """A stage from a plugin package cannot be loaded, or does not fit into the pipeline."""


class ConceptError(DocindexError):
    """A concept extractor is missing, cannot be loaded, or returned an invalid result."""


class PartialEmbeddingError(EmbeddingError):
    """An embedding provider failed after it had embedded some of the texts of a call.

    `vectors` has the shape (texts, dimension), with rows of NaN for the missing ones. If `go_on` is set, those texts
    caused the failure, and the caller can go on to embed others.
    """

    def __init__(self, message: str, vectors: "NDArray[np.float32]", *, go_on: bool) -> None:
        self.vectors = vectors
        self.go_on = go_on
        super().__init__(message)


class StoreError(DocindexError):
    """A store is missing, damaged, or was written by another version."""


class DamagedStoreError(StoreError):
    """Files of a store are missing or unreadable; rebuilding the stores repairs them.

    `problem` is the message without its advice, for callers that are already rebuilding.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        self.problem = problem
        super().__init__(f"{problem}; {advice}" if advice else problem)


class LostTableError(StoreError):
    """A table from an earlier stage is missing or damaged."""


class ErasureError(StoreError):
    """A file still contains erased text, or cannot be searched for it."""


class AccessError(DocindexError):
    """This process cannot use the index: it lacks permissions, or another process holds a lock.

    The index itself may be intact, so this is not a `StoreError`: rebuilding the stores would not help.
    """


class LinkError(AccessError):
    """A home contains a symlink, which docindex does not follow."""


class LockError(DocindexError):
    """The locks between machines are unavailable."""


class LostLockError(LockError):
    """A process lost its lock because it, or the server that stores the lock, was unresponsive for too long.

    None of its work since then is visible; a new run repeats it.
    """


class ChunkerError(DocindexError):
    """A configured chunker is missing, cannot be loaded, or returned chunks that do not match the file."""


class WorkerError(DocindexError):
    """The processes that parse files cannot be started."""


class FullDiskError(DocindexError):
    """The disk is full; everything already published stays."""


class VerificationError(DocindexError):
    """Rows violate a rule of the index and were not written.

    `failures` maps the name of each failed check to a sentence that lists the first invalid rows.
    """

    def __init__(self, stage: str, failures: dict[str, str]) -> None:
        self.stage = stage
        self.failures = failures
        super().__init__(f"{stage}: " + "; ".join(f"{name}: {text}" for name, text in failures.items()))


class AgentError(DocindexError):
    """The config file of an agent cannot be read or edited; it is unchanged."""


class WatchError(DocindexError):
    """The system cannot report file changes."""


class AlertError(DocindexError):
    """A failure alert could not be sent."""


class QueryError(DocindexError):
    """A search request is invalid."""


class QuestionError(DocindexError):
    """A question file is invalid, or contains no questions to evaluate search with."""


class CollectionDisabledError(DocindexError):
    """A question cannot be recorded because the settings disable collection."""


class ScipError(DocindexError):
    """A SCIP file is damaged, or does not match the source that it is imported for."""


class LLMError(DocindexError):
    """A language model cannot be loaded or reached, or returned an unusable answer. Never stops a run."""


class LLMKeyError(LLMError):
    """A language model requires a key or login, or rejected the one it received."""


class LLMUnreachableError(LLMError):
    """A language model's endpoint is unreachable."""


class LLMFailedError(LLMError):
    """A language model's server failed temporarily; `retry_after_s` is the wait it requested, if any."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class LLMLimitError(LLMFailedError):
    """A rate limit or quota of a language model was exceeded."""


class LLMTimeoutError(LLMError):
    """A request to a language model timed out."""


class LLMTruncatedError(LLMError):
    """The answer of a language model was cut off."""


class LLMInvalidResponseError(LLMError):
    """An endpoint responded with something other than a language model's answer."""


class LLMBudgetError(LLMError):
    """A question's budget, in tokens or money, is exhausted."""


class RerankError(DocindexError):
    """A reranker cannot be loaded or reached, or returned an unusable answer."""


class JobError(DocindexError):
    """A job cannot be created, found or cancelled."""


class UnknownJobError(JobError):
    """No job has this ID, or it has been deleted."""


class EndedJobError(JobError):
    """A job has already ended."""


class FullQueueError(JobError):
    """The job queue is full; retry after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ReusedKeyError(JobError):
    """The idempotency key of a request was already used for a different request."""


class JobsDisabledError(JobError):
    """The server does not accept jobs."""


class DomainError(DocindexError):
    """The key of a domain is invalid."""


class MessageError(DocindexError):
    """A message is rejected because its session name is invalid or its text is too long."""


class LongMessageError(MessageError):
    """The text of a message is too long."""


class MessageRateError(DocindexError):
    """Messages exceed the rate limit; retry after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class QuotaError(DocindexError):
    """A domain has reached its maximum size."""


class LogError(DocindexError):
    """The log of a domain cannot be written or read; no pending write is acknowledged."""


class ObjectStoreError(DocindexError):
    """The object store does not respond, rejects a request, or holds unreadable data. Published data stays."""


class DamagedObjectError(ObjectStoreError):
    """An object is missing or its content has changed; retrying does not help."""


class ConflictError(ObjectStoreError):
    """Another process replaced the same object first, so this one discards its work."""


class DocindexWarning(UserWarning):
    """Warning of the Python API: an answer is complete but degraded."""


def first_line(error: BaseException) -> str:
    """Return the first line of a library's error message, since some span pages."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
