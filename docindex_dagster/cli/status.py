"""`docindex status`: how each source stands, what is indexed of it, and whether files have changed since."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster import console
from docindex_dagster.cli.common import Json
from docindex_dagster.settings import load_settings

if TYPE_CHECKING:
    from docindex_dagster.currency import Present
    from docindex_dagster.sources.repository import RepositoryFigures
    from docindex_dagster.standing import Outcome, Standing, State
    from docindex_dagster.stores.takeover import Takeover

_COLUMNS = ("source", "state", "files", "chunks", "commits", "MB", "changed (UTC)", "checked (UTC)")
# For looking whether files have changed, unless the user asks for all of it.
_BUDGET_S = 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One source. Times are UTC in ISO 8601."""

    source: str
    state: "State"
    problem: str | None  # why it needs attention, and what to do
    files: int
    chunks: int
    commits: int
    megabytes: float
    fallbacks: int  # files that are cut as text, since they could not be parsed
    lacks_of_graph: bool
    changed_at: str  # when the content did that can be found
    checked_at: str | None  # when the last run ended well that looked at all files
    is_current: bool | None  # whether the index is that of the present files; None: not looked at
    last_run: "Outcome | None"
    run_id: str | None
    failure: str | None  # why the last run that ended failed
    repository: "RepositoryFigures | None"
    goes_over_to: str | None  # the model of the settings, as long as searches use another one
    is_done: bool | None  # whether the source has vectors of that one


def status(
    check: Annotated[
        bool,
        typer.Option("--check", help="Look whether files have changed since, however long it takes (usual: 1 s)."),
    ] = False,
    json: Json = False,
) -> None:
    """Show how each source stands, what is indexed of it, what has changed since, and which runs failed why.

    Remotes are not asked for news. A source that was not looked at for changes has `is_current` null in the JSON.
    """
    from docindex_dagster import currency, overview, runs, standing

    settings = load_settings()
    found = currency.of_all(settings, None if check else _BUDGET_S, runs.outcomes, console.warning)
    change = standing.change_of_model(settings)
    if json:
        console.as_json([_row(present, change) for present in found])
    elif not found:
        console.out.print("no sources yet: begin with `docindex index PATH`")
    else:
        _show(found, [_row(present, change) for present in found])
        if change is not None:
            console.out.print(overview.sentence(change))


def _row(present: "Present", change: "Takeover | None") -> _Row:
    one = present.standing
    entry, runs = one.entry, one.runs
    return _Row(
        source=one.source,
        state=one.state,
        problem=one.problem,
        files=entry.files if entry else 0,
        chunks=entry.chunks if entry else 0,
        commits=entry.commits if entry else 0,
        megabytes=round(entry.text_bytes / 1e6, 2) if entry else 0.0,
        fallbacks=entry.fallbacks if entry else 0,
        lacks_of_graph=bool(entry and entry.lacks_of_graph),
        changed_at=entry.changed_at if entry else "",
        checked_at=None if runs.checked_at is None else datetime.fromtimestamp(runs.checked_at, UTC).isoformat(),
        is_current=present.is_current,
        last_run=runs.outcome,
        run_id=runs.run_id,
        failure=runs.failure,
        repository=entry.repository if entry else None,
        goes_over_to=change.new if change else None,
        is_done=one.source not in change.missing and _is_indexed(one) if change else None,
    )


def _is_indexed(one: "Standing") -> bool:
    return one.entry is not None or one.state == "waiting for the takeover"


def _show(found: "list[Present]", rows: list[_Row]) -> None:
    """Print the table, what there is to say of each source, and what was not looked at."""
    console.table(_COLUMNS, [_cells(row) for row in rows])
    for present in found:
        for note in _notes(present.standing):
            console.out.print(f"{present.standing.source}: {note}")
    if left := sum(present.was_left for present in found):
        sources = console.count(left, "source")
        console.out.print(f"{sources} not looked at for changes: that takes longer, with `docindex status --check`")


def _notes(one: "Standing") -> list[str]:
    from docindex_dagster.catalog import lacks

    notes = [f"{one.state}: {one.problem}"] if one.problem is not None else []
    if one.runs.failure is not None and one.state != "failed":
        notes.append(f"the last run failed: {one.runs.failure}")
    if one.entry is not None and one.state != "degraded":
        notes += lacks(one.entry)
    return notes


def _cells(row: _Row) -> tuple[str | int | float, ...]:
    state = f"{row.state}, changed since" if row.is_current is False else row.state
    times = (row.changed_at, row.checked_at or "")
    figures = (row.files, row.chunks, row.commits, row.megabytes)
    return (row.source, state, *figures, *(moment[:16].replace("T", " ") for moment in times))
