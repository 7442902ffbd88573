"""Files that are no text, PDF: from their bytes to a text that is indexed in their place.

The text is Markdown as far as headings go. Lines and bytes of chunks count in it, and `pages` says where its pages
begin. It is made in a parsing worker, which a time-out ends, with a limit of memory: a hostile file costs itself alone.
"""

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from docindex_dagster.documents.model import Converted

_MOST_MEMORY = 1 << 30  # bytes that a file may take besides what the process has
_STATUS = Path("/proc/self/status")
_USED = re.compile(r"^VmData:\s*(\d+) kB$", re.MULTILINE)
_LONGEST_PROBLEM = 200


def convert(data: bytes, language: str) -> Converted:
    """The text of a file. What cannot be read of it is left out, and `problem` says why."""
    from docindex_dagster.documents.pdf import read_pdf  # a run pays only for what its files need

    try:
        with _limited_memory(_MOST_MEMORY):
            found = read_pdf(data)
    except Exception as error:  # noqa: BLE001 the parsers are not ours, and a hostile file may break them in any way
        found = Converted("", problem=f"{type(error).__name__}: {error}".rstrip(": "))
    return replace(found, problem=found.problem and f"{language}: {found.problem}"[:_LONGEST_PROBLEM])


@contextmanager
def _limited_memory(most: int) -> Iterator[None]:
    """Let this process take no more than so many bytes besides what it has; what would is a MemoryError.

    Where the system does not say what it has (macOS, which enforces no such limit either), nothing is limited.
    """
    if not _STATUS.exists():
        yield
        return
    used = _USED.search(_STATUS.read_text(encoding="ascii", errors="replace"))
    former, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = (int(used[1]) << 10 if used else 0) + most
    limits = [limit, *(each for each in (former, hard) if each != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (former, hard))
