"""Helpers to write and read logs in tests."""

from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message, StoredMessage, compose, current_messages

DOMAIN = "memory/main"


def message(text: str, session: str = "s") -> Message:
    return compose(DOMAIN, session, text, role="user")


def write(log: Log, *texts: str, session: str = "s") -> None:
    """Write each text in a separate write."""
    for text in texts:
        log.append([message(text, session)])


def another(log: Log) -> Log:
    """Return the same log, opened as another process would."""
    return Log(log.home)


def written(log: Log) -> list[StoredMessage]:
    """Return the stored messages with their repeat counts."""
    return current_messages((), another(log).read().entries)


def texts(log: Log) -> list[str]:
    """Return the stored texts."""
    return [each.message.text for each in written(log)]


def files(log: Log) -> bytes:
    """Return all bytes stored in the home of the domain."""
    return b"".join(file.read_bytes() for file in sorted(log.home.home.rglob("*")) if file.is_file())
