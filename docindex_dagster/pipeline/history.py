"""The stage that reads the history of a source: its newest commits, and the figures of its repository."""

from docindex_dagster.pipeline.breakdown import changes
from docindex_dagster.pipeline.source_run import SourceRun
from docindex_dagster.pipeline.stage import Inputs, Outcome, Product, Report, Stage, previous, table_storage
from docindex_dagster.sources.commits import HISTORY_VERSION, read_history
from docindex_dagster.sources.history import RepositoryFigures
from docindex_dagster.sources.memory import head_of

_NAME = "commits"
_STORAGE = table_storage(_NAME)
_SAMPLE = ("commit", "authored_at", "author", "file_count", "insertions", "deletions")


def _read(run: SourceRun, inputs: Inputs) -> Outcome:
    before = previous(run, _STORAGE)
    # Of the commit that discovery saw, so that files and history are of one state.
    head = head_of(inputs["discovered_files"])
    history = read_history(run.source, head, before, run.settings.history.commits)
    table = history.commits
    report = Report(
        version=_STORAGE.version_of(table),
        numbers={**changes(table, before, "commit", "row_hash"), **_of_repository(history.figures)},
        rows=table,
        sample=table.select(list(_SAMPLE)),
    )
    return Outcome(table, {_NAME: report})


def _of_repository(figures: RepositoryFigures | None) -> dict[str, int]:
    if figures is None:
        return {}
    return {"all_commits": figures.commits, "branches": figures.branches, "tags": figures.tags}


COMMITS = Stage(
    name=_NAME,
    products=(
        Product(
            _NAME,
            "The newest commits of a git source, one row each: author, date, message, files and how they changed.\n\n"
            "See docs/architecture.md, “History”.",
            frozenset({"git", "parquet"}),
        ),
    ),
    group="discovery",
    version=HISTORY_VERSION,
    inputs=("discovered_files",),
    run=_read,
    storage=_STORAGE,
)
