"""What may be recorded of an error: no word of a message, since what is forgotten could not be erased from records."""

from docindex_dagster.core.errors import (
    AccessError,
    DomainError,
    FullDiskError,
    LogError,
    PluginError,
    SettingsError,
    StoreError,
)
from docindex_dagster.core.printable import command

# They name files, keys and numbers. An extractor, a chunker or the API of a model may quote what it was given.
_WORDLESS = (AccessError, DomainError, FullDiskError, LogError, PluginError, SettingsError, StoreError)


def is_wordless(error: BaseException) -> bool:
    """Whether what an error says can hold no word of a message."""
    return isinstance(error, _WORDLESS)


def reason(error: BaseException, key: str) -> str:
    """Why a domain could not be folded, as it may be recorded."""
    if is_wordless(error):
        return str(error)
    again = command("docindex", "memory", "fold", "--domain", key)
    return f"{type(error).__name__}: what it says may quote messages, and is not recorded: {again} shows it"
