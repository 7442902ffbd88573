"""Index: bring a source up to date."""

from typing import TYPE_CHECKING

from pydantic import Field

from docindex_dagster.operations.fields import RawText, Request
from docindex_dagster.runner.entries import Launcher, Mode

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.runner.journal import Writer
    from docindex_dagster.runner.runs import RunOutcome


class IndexRequest(Request):
    """Bring a source, or some of its files, up to date."""

    mode: Mode = Field(
        default="changes",
        description="changes: what differs; verify: also compare every file and row; full: reuse nothing.",
    )
    paths: list[RawText] = Field(
        default=[], description="Only these files, named as in search results. Default: all files."
    )


def index(
    settings: "Settings",
    source: str,
    request: IndexRequest,
    launched_by: Launcher = "command line",
    begun: "Writer | None" = None,
) -> "RunOutcome":
    """Bring a source up to date and wait for it.

    Args:
        settings: the project's settings.
        source: the key of the source.
        request: the request.
        launched_by: what launched the run.
        begun: the journal entry of a queued run; without it, a new run is started.

    Raises:
        DocindexError: As for `runner.runs.index`.
        KeyboardInterrupt: The user stopped the run.
    """
    from docindex_dagster.runner import runs

    only = tuple(request.paths)
    return runs.index(settings, source, mode=request.mode, only=only, launched_by=launched_by, begun=begun)
