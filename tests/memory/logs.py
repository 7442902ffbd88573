"""What tests write into logs, and see in them."""

from docindex_dagster.memory.log import Log
from docindex_dagster.memory.message import Message, StoredMessage, compose, current_messages

DOMAIN = "memory/main"


def message(text: str, session: str = "s") -> Message:
    return compose(DOMAIN, session, text, role="user")


def write(log: Log, *texts: str, session: str = "s") -> None:
    """Each text as a write of its own."""
    for text in texts:
        log.append([message(text, session)])


def another(log: Log) -> Log:
    """The same log as another process has it."""
    return Log(log.home)


def written(log: Log) -> list[StoredMessage]:
    """The messages that are there, with their repeats."""
    return current_messages((), another(log).read().entries)


def texts(log: Log) -> list[str]:
    """The messages that are there."""
    return [each.message.text for each in written(log)]


def files(log: Log) -> bytes:
    """All bytes that lie in the home of the domain."""
    return b"".join(file.read_bytes() for file in sorted(log.home.home.rglob("*")) if file.is_file())
