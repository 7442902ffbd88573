"""`docindex status`: what is indexed of each source, whether files have changed since, and how the last run ended."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster import console
from docindex_dagster.cli.common import Json
from docindex_dagster.errors import DocindexError
from docindex_dagster.layout import Layout
from docindex_dagster.printable import visible
from docindex_dagster.settings import Settings, load_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

if TYPE_CHECKING:
    from docindex_dagster.sources.repository import RepositoryFigures
    from docindex_dagster.standing import Outcome, Runs, Standing
    from docindex_dagster.stores.takeover import Takeover

_COLUMNS = ("source", "state", "files", "chunks", "commits", "MB", "changed (UTC)", "checked (UTC)")
# For looking whether files have changed, unless the user asks for all of it.
_BUDGET_S = 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    """One source. Times are UTC in ISO 8601."""

    source: str
    state: str
    files: int
    chunks: int
    commits: int
    megabytes: float
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
    """Show what is indexed, what is declared but is not, what has changed since, and which runs failed why.

    Remotes are not asked for news. A source that was not looked at for changes has `is_current` null in the JSON.
    """
    from docindex_dagster import catalog, currency, overview, standing

    settings = load_settings()
    entries = catalog.entries(Layout(settings.home))
    declared = registry.sources(settings)
    standings = standing.of_all(settings, entries, _runs(settings, {*declared, *(entry.source for entry in entries)}))
    local = [
        declared[one.source]
        for one in standings
        if one.entry is not None and currency.is_there(declared.get(one.source))
    ]
    current = currency.look(settings, local, None if check else _BUDGET_S)
    change = standing.change_of_model(settings)
    rows = [
        _row(one, declared.get(one.source), current, change) for one in sorted(standings, key=lambda one: one.source)
    ]
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: begin with `docindex index PATH`")
    else:
        _show(rows, left=sum(source.remote is None for source in local) - len(current))
        if change is not None:
            console.out.print(visible(overview.sentence(change)))


def _runs(settings: Settings, keys: set[str]) -> "Mapping[str, Runs]":
    """How the runs of sources ended; nothing where there was none yet, or Dagster's record cannot be opened."""
    layout = Layout(settings.home)
    has_instance = "DAGSTER_HOME" in os.environ or layout.dagster.is_dir()
    if not keys or not layout.home.is_dir() or not has_instance:
        return {}
    from docindex_dagster import runs
    from docindex_dagster.defs import outcomes

    try:
        with runs.instance(settings) as instance:
            return outcomes.of_sources(instance, keys)
    except (DocindexError, OSError) as error:  # such as one for who may not write here
        console.warning(f"how runs ended is not known: {error}")
        return {}


def _row(one: "Standing", source: Source | None, current: Mapping[str, bool | None], change: "Takeover | None") -> _Row:
    from docindex_dagster import currency

    entry, runs = one.entry, one.runs
    return _Row(
        source=one.source,
        state=currency.state(source, is_indexed=entry is not None, is_waiting=one.state == "waiting for the takeover"),
        files=entry.files if entry else 0,
        chunks=entry.chunks if entry else 0,
        commits=entry.commits if entry else 0,
        megabytes=round(entry.text_bytes / 1e6, 2) if entry else 0.0,
        changed_at=entry.changed_at if entry else "",
        checked_at=None if runs.checked_at is None else datetime.fromtimestamp(runs.checked_at, UTC).isoformat(),
        is_current=current.get(one.source),
        last_run=runs.outcome,
        run_id=runs.run_id,
        failure=runs.failure,
        repository=entry.repository if entry else None,
        goes_over_to=change.new if change else None,
        is_done=one.source not in change.missing and _is_indexed(one) if change else None,
    )


def _is_indexed(one: "Standing") -> bool:
    return one.entry is not None or one.state == "waiting for the takeover"


def _show(rows: list[_Row], left: int) -> None:
    """Print the table, a line for each failure, and what was not looked at."""
    console.table(_COLUMNS, [_cells(row) for row in rows])
    for row in rows:
        if row.failure is not None:
            console.out.print(visible(f"{row.source}: the last run failed: {row.failure}"))
    if left > 0:
        sources = console.count(left, "source")
        console.out.print(f"{sources} not looked at for changes: that takes longer, with `docindex status --check`")


def _cells(row: _Row) -> tuple[str | int | float, ...]:
    words = [row.state]
    words += ["changed since"] if row.is_current is False else []
    words += ["failed"] if row.failure is not None else []
    times = (row.changed_at, row.checked_at or "")
    figures = (row.files, row.chunks, row.commits, row.megabytes)
    return (row.source, ", ".join(words), *figures, *(moment[:16].replace("T", " ") for moment in times))
