"""Sources that were taken out of the index while `docindex.toml` still declares them.

That happens in the Dagster UI: a user deletes a partition, or runs `remove_source`. No run indexes such a source
unasked; `docindex index KEY`, or adding its partition again, brings it back.
"""

from contextlib import suppress

from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout


def all_of(layout: Layout) -> set[str]:
    """The keys of the sources that were taken out."""
    keys = set()
    for file in layout.entries(layout.withdrawn):
        if file.suffix != ".key":  # it is being written
            continue
        with suppress(FileNotFoundError):  # another process just forgot it
            keys.add(file.read_text(encoding="utf-8"))
    return keys


def note(layout: Layout, key: str) -> None:
    """Remember that a source was taken out."""
    file = layout.withdrawal(key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary:
        temporary.write_text(key, encoding="utf-8")


def forget(layout: Layout, key: str) -> None:
    """Treat a source like any other again."""
    layout.withdrawal(key).unlink(missing_ok=True)
