"""Sources that were removed from the index although `docindex.toml` still declares them.

This happens in the Dagster UI, when a user deletes a partition or runs `remove_source`. No automatic run indexes such a
source; `docindex index KEY`, or adding its partition again, restores it.
"""

from contextlib import suppress

from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.layout import Layout


def removed_keys(layout: Layout) -> set[str]:
    """Return the keys of the removed sources."""
    keys = set()
    for file in layout.entries(layout.withdrawn):
        if file.suffix != ".key":  # still being written
            continue
        with suppress(FileNotFoundError):  # another process has just deleted it
            keys.add(file.read_text(encoding="utf-8"))
    return keys


def record_removal(layout: Layout, key: str) -> None:
    """Record that a source was removed."""
    file = layout.withdrawal(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as temporary:
        temporary.write_text(key, encoding="utf-8")


def clear_removal(layout: Layout, key: str) -> None:
    """Delete the record, so that the source is treated like any other again."""
    layout.withdrawal(key).unlink(missing_ok=True)
