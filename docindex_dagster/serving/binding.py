"""The domain that a server is bound to: what clients name can only narrow what it was started with."""

from docindex_dagster.core.errors import DomainError, QueryError
from docindex_dagster.memory.memory import Memory
from docindex_dagster.memory.results import Forgotten

_LONGEST_NAME = 100  # characters of what a client sent that are repeated


def check_written(memory: Memory, domain: str | None) -> None:
    """Let a client name the one domain that is written, or none; whether there is another one is not answered.

    Raises:
        DomainError: it names another one.
    """
    if domain is not None and domain != memory.bound:
        raise DomainError(
            f"{domain[:_LONGEST_NAME]!r} cannot be written here: leave the domain out, or give {memory.bound}"
        )


def forget(memory: Memory, *, message: str | None, session: str | None, domain: str | None) -> Forgotten:
    """Hide one message, one session, or all of the domain, which has to be named for it.

    Raises:
        QueryError: none of the three is given, or several are.
        DomainError: the domain is not the one that is written.
    """
    check_written(memory, domain)
    if sum(given is not None for given in (message, session, domain)) != 1:
        raise QueryError("give either a message, or a session, or the domain: what is given is forgotten, and no more")
    return memory.forget(message=message, session=session, everything=domain is not None)
